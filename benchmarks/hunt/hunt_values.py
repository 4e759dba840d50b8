"""Rare values: zeros of either sign, ties, halves, large and tiny numbers, whole numbers at the ends of their range."""

# ruff: noqa: C408
from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("values")


def one(batch=3, seq=5):
    return (torch.randn(batch, seq),)


def pair(batch=3, seq=5):
    return (torch.randn(batch, seq), torch.randn(batch, seq))


def from_list(*numbers, dtype=torch.float32, count=1):
    """A maker that draws from these numbers, independently for each input."""
    values = torch.tensor(numbers, dtype=dtype)

    def make(batch=3, seq=5):
        return tuple(values[torch.randint(0, len(values), (batch, seq))] for _ in range(count))

    return make


SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, 1e-20, -1e-20)
RARE1 = {"special": from_list(*SPECIAL)}
RARE2 = {
    "special": from_list(*SPECIAL, count=2),
    "second zero": lambda batch=3, seq=5: (torch.randn(batch, seq), torch.zeros(batch, seq)),
    "first zero": lambda batch=3, seq=5: (torch.zeros(batch, seq), torch.randn(batch, seq)),
}


def whole(low, high, dtype=torch.int64, count=2, nonzero=False):
    def make(batch=3, seq=5):
        made = [torch.randint(low, high, (batch, seq), dtype=dtype) for _ in range(count)]
        return tuple(
            torch.where(one == 0, torch.ones_like(one), one) if nonzero and n == count - 1 else one
            for n, one in enumerate(made)
        )

    return make


@model("sign bit of a negative zero", one, rare=RARE1)
def signbit(self, x):
    return torch.where(torch.signbit(x), x - 1, x + 1)


@model("one over a signed zero is an infinity with a sign", one, rare=RARE1)
def reciprocal_of_zero(self, x):
    return torch.clamp(1 / x, -5, 5)


@model("round half to even", one, rare=RARE1)
def round_halves(self, x):
    return torch.round(x) + torch.round(x * 10, decimals=1)


@model("round to two decimals of exact halves", one, rare={"halves": from_list(0.125, 0.375, -0.625, 2.5, 1.005)})
def round_decimals(self, x):
    return torch.round(x, decimals=2)


@model(
    "remainder and fmod of either sign", pair, rare={"signs": from_list(-7.5, 7.5, -3.0, 3.0, 2.0, -2.0, 0.5, count=2)}
)
def remainders(self, x, y):
    y = torch.where(y.abs() < 0.1, torch.ones_like(y), y)
    return torch.remainder(x, y), torch.fmod(x, y)


@model(
    "floor and truncated division of negatives",
    pair,
    rare={"signs": from_list(-7.0, 7.0, -3.0, 3.0, 2.0, -2.0, count=2)},
)
def rounded_division(self, x, y):
    y = torch.where(y.abs() < 0.1, torch.ones_like(y), y)
    return torch.div(x, y, rounding_mode="floor"), torch.div(x, y, rounding_mode="trunc")


@model(
    "integer floor division and remainder, all signs",
    whole(1, 9),
    rare={
        "signs": whole(-9, 9, nonzero=True),
        "ends": lambda batch=3, seq=5: (torch.full((batch, seq), -(2**62)), torch.full((batch, seq), 3)),
    },
)
def integer_division(self, x, y):
    return x // y, x % y, torch.div(x, y, rounding_mode="trunc"), torch.fmod(x, y)


@model("int32 products wrap", whole(0, 9, torch.int32), rare={"large": whole(2**20, 2**30, torch.int32)})
def int32_wraps(self, x, y):
    return x * y, (x + y) // 2


@model("uint8 differences wrap at zero", whole(0, 9, torch.uint8), rare={"all": whole(0, 256, torch.uint8)})
def uint8_wraps(self, x, y):
    return x - y, x + y, x * 2


@model("int8 means through floats", whole(-5, 5, torch.int8), rare={"ends": whole(-128, 128, torch.int8)})
def int8_mean(self, x, y):
    return (x.float() + y.float()).mean(1), torch.maximum(x, y), x.sum(1)


@model(
    "shifts by up to 63 places",
    whole(0, 5),
    rare={"far": lambda batch=3, seq=5: (torch.randint(-1000, 1000, (batch, seq)), torch.randint(0, 63, (batch, seq)))},
)
def shifts(self, x, y):
    return x << y, x >> y


@model("bitwise operators on negative numbers", whole(0, 9), rare={"negative": whole(-1000, 1000)})
def bitwise(self, x, y):
    return x & y, x | y, x ^ y, ~x


@model("hypot of large and tiny numbers", pair, rare={"large": from_list(1e20, -3e19, 1e-25, 0.0, count=2)})
def hypot(self, x, y):
    return torch.hypot(x, y)


@model("logaddexp of far apart numbers", pair, rare={"far": from_list(-200.0, 200.0, 0.0, 88.0, -103.0, count=2)})
def logaddexp(self, x, y):
    return torch.logaddexp(x, y), torch.logsumexp(torch.stack([x, y]), 0)


@model(
    "xlogy: zero times the logarithm of zero is zero",
    lambda batch=3, seq=5: (torch.rand(batch, seq), torch.rand(batch, seq)),
    rare={"zeros": from_list(0.0, 1.0, 0.5, count=2)},
)
def xlogy(self, x, y):
    return torch.xlogy(x, y), torch.special.entr(x)


@model("heaviside at zero takes the second input", pair, rare=RARE2)
def heaviside(self, x, y):
    return torch.heaviside(x, y)


@model("sinc at zero, and sign of zero", one, rare=RARE1)
def sinc_and_sign(self, x):
    return torch.sinc(x), torch.sign(x), torch.sgn(x)


@model("power with zero and negative bases", pair, rare={"special": from_list(0.0, 1.0, -1.0, 2.0, -2.0, 3.0, count=2)})
def powers(self, x, y):
    return torch.pow(x, y), torch.float_power(x.abs(), y), x**2, x**3, x**-1


@model("square root and logarithm at zero; NaN for negatives is replaced", one, rare=RARE1)
def replaced_nan(self, x):
    return torch.nan_to_num(torch.log(x), nan=-3.0, neginf=-9.0), torch.nan_to_num(torch.sqrt(x), nan=7.0)


@model(
    "softplus, elu, celu and friends far from zero",
    one,
    rare={"far": from_list(-100.0, 100.0, 20.0, 21.0, -20.0, 0.0, -0.0)},
)
def activations_far(self, x):
    return F.softplus(x), F.elu(x), F.celu(x, 0.5), F.mish(x), F.logsigmoid(x)


@model("thresholds are open or closed at exactly 0.5", one, rare=RARE1)
def thresholds(self, x):
    return F.hardshrink(x, 0.5), F.softshrink(x, 0.5), F.threshold(x, 0.5, -1.0), (x >= 0.5).long() + (x > -0.5).long()


@model(
    "hardsigmoid, hardswish and hardtanh at their corners",
    one,
    rare={"corners": from_list(-3.0, 3.0, 0.0, -1.0, 1.0, 6.0, 3.0000002)},
)
def hard_corners(self, x):
    return F.hardsigmoid(x), F.hardswish(x), F.hardtanh(x), F.relu6(x)


@model(
    "cosine similarity of a zero vector",
    lambda batch=3: (torch.randn(batch, 4), torch.randn(batch, 4)),
    rare={
        "zero": lambda batch=3: (torch.zeros(batch, 4), torch.randn(batch, 4)),
        "same": lambda batch=3: (torch.ones(batch, 4), torch.ones(batch, 4)),
    },
)
def cosine(self, x, y):
    return F.cosine_similarity(x, y), F.normalize(x, dim=-1)


@model(
    "distance between equal points",
    lambda n=3, m=4: (torch.randn(n, 2), torch.randn(m, 2)),
    rare={
        "equal": lambda n=3, m=4: (torch.ones(n, 2), torch.ones(m, 2)),
        "far": lambda n=3, m=4: (1e3 + torch.randn(n, 2), 1e3 + torch.randn(m, 2)),
    },
    points=[dict(n=1, m=1), dict(n=26, m=27), dict(n=30, m=2)],
)
def distances(self, x, y):
    return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist"), F.pairwise_distance(x[:1], y[:1])


@model("argmax of equal elements: the first", one, rare={"ties": from_list(0.0, 1.0), "all equal": from_list(2.0)})
def argmax_ties(self, x):
    return x.argmax(1), x.argmin(1)


@model("stable sort of equal elements", one, rare={"ties": from_list(0.0, 1.0, -0.0)})
def stable_sort(self, x):
    values, order = torch.sort(x, dim=1, stable=True)
    return values, order


@model("descending stable sort keeps the order of equal ones", one, rare={"ties": from_list(0.0, 1.0)})
def stable_descending(self, x):
    return torch.sort(x, dim=1, descending=True, stable=True)[1]


@model(
    "cummax of equal elements: the last index",
    one,
    rare={
        "ties": from_list(0.0, 1.0),
        "falling": lambda batch=3, seq=5: (-torch.arange(seq).float().expand(batch, seq).clone(),),
    },
)
def cummax_ties(self, x):
    values, index = x.cummax(1)
    return values, index


@model(
    "searchsorted at equal values, both sides",
    lambda n=5, m=4: (torch.randn(n).sort().values, torch.randn(m)),
    rare={
        "equal": lambda n=5, m=4: (torch.zeros(n), torch.zeros(m)),
        "whole": lambda n=5, m=4: (torch.arange(n).float(), torch.randint(-1, n + 1, (m,)).float()),
    },
    far={"n": (1, 2, 255, 256, 257), "m": (1, 300)},
)
def searched(self, edges, x):
    edges = edges.sort().values
    return torch.searchsorted(edges, x), torch.searchsorted(edges, x, right=True)


@model("bucketize with a fixed table, on its borders", one, rare={"borders": from_list(-1.0, 0.0, 0.5, 2.0, 3.0, -9.0)})
class Buckets(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("borders", torch.tensor([-1.0, 0.0, 0.5, 2.0]))

    def forward(self, x):
        return torch.bucketize(x, self.borders), torch.bucketize(x, self.borders, right=True)


@model(
    "median and mode of an even count",
    lambda batch=3, seq=6: (torch.randn(batch, seq),),
    rare={"ties": lambda batch=3, seq=6: (torch.randint(0, 3, (batch, seq)).float(),)},
    far={"seq": (1, 2, 3, 4, 255, 256)},
)
def medians(self, x):
    return x.median(1).values, x.nanmedian(1).values, x.quantile(0.5, dim=1)


@model("quantiles between elements", lambda n=7: (torch.randn(n),), far={"n": (1, 2, 3, 4, 9, 10, 255, 256, 1000)})
def quantiles(self, x):
    return torch.quantile(x, torch.tensor([0.0, 0.1, 0.9, 1.0]))


@model(
    "variance of one element is NaN, of two is not",
    lambda batch=2, seq=4: (torch.randn(batch, seq),),
    far={"seq": (1, 2, 3, 256)},
)
def variance_of_one(self, x):
    return x.var(1), x.std(1, correction=0)


@model(
    "a mean far from zero: the variance must not cancel",
    one,
    rare={"far": lambda batch=3, seq=5: (1e4 + torch.randn(batch, seq),)},
    far={"seq": (2, 256, 1000)},
    where=["seq >= 2"],
)
def variance_far(self, x):
    return x.var(1), F.layer_norm(x, (x.shape[1],))


@model(
    "softmax of very large numbers and of equal ones",
    one,
    rare={"large": from_list(1e4, -1e4, 0.0), "equal": from_list(3.0)},
)
def softmax_large(self, x):
    return x.softmax(1), x.log_softmax(1), F.softmin(x, 1)


@model(
    "all masked: softmax over minus infinities",
    lambda batch=3, seq=4: (torch.randn(batch, seq), torch.zeros(batch, seq)),
    rare={
        "one row": lambda batch=3, seq=4: (
            torch.randn(batch, seq),
            torch.zeros(batch, seq).index_fill(0, torch.tensor([0]), -math.inf),
        )
    },
)
def softmax_masked(self, x, bias):
    return torch.nan_to_num((x + bias).softmax(1))


@model(
    "clamp with bounds as tensors, crossed in part",
    lambda batch=3, seq=5: (torch.randn(batch, seq), -torch.rand(seq), torch.rand(seq)),
    rare={"crossed": lambda batch=3, seq=5: (torch.randn(batch, seq), torch.rand(seq), -torch.rand(seq))},
)
def crossed_clamp(self, x, low, high):
    return torch.clamp(x, low, high)


@model("lerp and addcdiv at their ends", pair, rare={"ends": from_list(0.0, 1.0, 0.5, count=2)})
def lerp_ends(self, x, y):
    return torch.lerp(x, y, y.clamp(0, 1)), torch.addcdiv(x, y, y.abs() + 1, value=0.5)


@model("fraction and truncation of negatives", one, rare={"mixed": from_list(-1.5, 1.5, -0.2, 7.0, -7.0, 0.0)})
def fractions(self, x):
    return torch.frac(x), torch.trunc(x), torch.floor(x), torch.ceil(x)


@model("float to integer of negatives and halves", one, rare={"mixed": from_list(-1.5, 1.5, -0.9, 0.9, 2.999999, -7.0)})
def cast_to_integer(self, x):
    return (x * 3).long(), (x * 3).int(), (x.abs() * 3).to(torch.uint8), x.bool()


@model("next float: gaps near zero and one", one, rare={"gaps": from_list(0.0, 1.0, -1.0, 1e-38)})
def comparisons_near(self, x):
    return (x + 1e-8 > x).long(), (x == x.half().float()).long()


@model(
    "kthvalue and topk values with ties",
    lambda batch=3, seq=6: (torch.randn(batch, seq),),
    where=["seq >= 3"],
    rare={"ties": lambda batch=3, seq=6: (torch.randint(0, 2, (batch, seq)).float(),)},
    far={"seq": (3, 4, 255, 256, 300)},
)
def kth_values(self, x):
    return x.kthvalue(2, 1).values, x.topk(3, 1).values, x.topk(3, 1, largest=False).values


@model(
    "isclose with equal infinities and NaN",
    pair,
    rare={"odd": from_list(math.inf, -math.inf, math.nan, 1.0, 1.000001, count=2)},
)
def close_pairs(self, x, y):
    return torch.isclose(x, y), torch.isclose(x, y, equal_nan=True), x == y


@model("maximum and fmax with a NaN on one side", pair, rare={"nan": from_list(math.nan, 1.0, -2.0, count=2)})
def nan_maximum(self, x, y):
    return torch.maximum(x, y), torch.fmax(x, y), torch.fmin(x, y)


@model("amax and max over a row with a NaN", one, rare={"nan": from_list(math.nan, 1.0, -2.0, 3.0)})
def nan_reduction(self, x):
    return x.amax(1), x.min(1).values, x.nansum(1), x.nanmean(1)


@model("relu, clamp and where keep NaN", one, rare={"nan": from_list(math.nan, 1.0, -2.0)})
def nan_through(self, x):
    return F.relu(x), x.clamp(-1, 1), torch.where(x > 0, x, -x), F.leaky_relu(x), F.gelu(x)


@model(
    "erf, erfinv, lgamma and digamma at special points",
    lambda batch=3, seq=5: (torch.rand(batch, seq),),
    rare={"ends": from_list(0.5, 0.25, 0.999, 1e-6)},
)
def special_functions(self, x):
    return torch.erf(x), torch.erfinv(x), torch.lgamma(x + 0.5), torch.digamma(x + 1)


@model(
    "tan, asin, acosh at the ends of their ranges",
    lambda batch=3, seq=5: (torch.rand(batch, seq),),
    rare={"ends": from_list(0.0, -0.0, 1.0, -1.0, 0.5)},
)
def inverse_ends(self, x):
    return torch.asin(x), torch.acos(x), torch.atan(1 / x), torch.asinh(x), torch.tan(x)
