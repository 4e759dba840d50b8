"""Code that decides by the values of tensors, and lengths that follow from values."""

# ruff: noqa: C408, B023
from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("branches")


def flat(batch=3, seq=6):
    return (torch.randn(batch, seq),)


def filled(value):
    return lambda batch=3, seq=6: (torch.full((batch, seq), float(value)),)


def ramp(scale):
    return lambda batch=3, seq=6: (torch.linspace(-scale, scale, batch * seq).reshape(batch, seq),)


VALUES = {
    "zeros": filled(0),
    "ones": filled(1),
    "minus ones": filled(-1),
    "tens": filled(10),
    "ramp": ramp(3),
    "tiny": filled(1e-9),
}


def asked(value=2):
    return lambda batch=3, seq=6: dict(x=torch.randn(batch, seq), k=torch.tensor(value))


ANY = {str(value): asked(value) for value in (-5, -2, -1, 0, 1, 3, 5, 6, 7, 100, 10**7)}
FEW = {str(value): asked(value) for value in (0, 1, 3, 5)}
FAR = {"seq": (255, 256, 257, 300, 600)}


@model("three-way branch whose middle is a narrow band", flat, rare=VALUES | {"band": filled(0.5)}, unproved=True)
def narrow_band(self, x):
    mean = x.mean()
    if mean > 0.51:
        return x - 1
    return x * 7 if mean > 0.49 else x + 1


@model(
    "equality with a constant that random values never meet",
    flat,
    rare=VALUES | {"forty two": filled(42)},
    unproved=True,
)
def equals_42(self, x):
    return x * 0 if x.max() == 42 else x + 1


@model(
    "branch on one element, far inside",
    lambda batch=3, seq=6: (torch.rand(batch, seq),),
    where=["seq >= 3", "batch >= 2"],
    rare={"set": lambda batch=3, seq=6: (torch.rand(batch, seq).index_fill(1, torch.tensor([2]), -1.0),)},
    far=FAR,
    unproved=True,
)
def one_element(self, x):
    return x.flip(1) if x[1, 2] < 0 else x


@model(
    "branch within a branch, the inner one on another input",
    lambda batch=3: (torch.randn(batch), torch.randn(batch)),
    rare={
        "inner": lambda batch=3: (torch.ones(batch), -torch.ones(batch)),
        "outer": lambda batch=3: (-torch.ones(batch), torch.ones(batch)),
    },
    unproved=True,
)
def nested_branch(self, x, y):
    if x.sum() > 0:
        if y.sum() > 0:
            return x + y
        return x - y
    return x * y


@model("branch on the sum of a size and a value", flat, rare=VALUES, far={"seq": (1, 9, 10, 11, 300)}, unproved=True)
def size_and_value(self, x):
    return x * 2 if x.shape[1] + int(x[0, 0] > 0) > 10 else x / 2


@model(
    "branch on isnan: never met by numbers",
    flat,
    rare={"nan": lambda batch=3, seq=6: (torch.full((batch, seq), math.nan),)},
    unproved=True,
)
def on_nan(self, x):
    return torch.zeros_like(x) if torch.isnan(x).any() else x.sqrt().nan_to_num(0.5)


@model(
    "branch on infinity in one element",
    flat,
    unproved=True,
    rare={"one infinite": lambda batch=3, seq=6: (torch.randn(batch, seq).index_fill(1, torch.tensor([0]), math.inf),)},
)
def on_infinity(self, x):
    if torch.isinf(x).any():
        return torch.where(torch.isinf(x), torch.zeros_like(x), x)
    return x + 1


@model(
    "allclose of two inputs",
    lambda n=4: (torch.randn(n), torch.randn(n)),
    unproved=True,
    rare={
        "same": lambda n=4: (torch.ones(n), torch.ones(n)),
        "near": lambda n=4: (torch.ones(n), torch.ones(n) + 1e-7),
    },
)
def on_allclose(self, a, b):
    return a if torch.allclose(a, b) else a - b


@model(
    "torch.equal of two inputs",
    lambda n=4: (torch.randn(n), torch.randn(n)),
    unproved=True,
    rare={"same": lambda n=4: (torch.ones(n), torch.ones(n))},
)
def on_equal(self, a, b):
    return a * 100 if torch.equal(a, b) else b


@model(
    "ordering: branch on whether it is sorted",
    flat,
    rare={"sorted": ramp(1)},
    unproved=True,
    where=["seq >= 2"],
    far=FAR,
)
def on_sorted(self, x):
    return x if bool((x[:, 1:] >= x[:, :-1]).all()) else x.sort(1).values


@model(
    "argmax picks one of three layers",
    flat,
    unproved=True,
    rare={
        name: (lambda at: lambda batch=3, seq=6: (F.one_hot(torch.full((batch,), at), seq).float(),))(at)
        for name, at in (("first", 0), ("second", 1), ("third", 2))
    },
    where=["seq >= 3"],
)
class ChosenLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = [0.5, 3.0, -1.0]

    def forward(self, x):
        chosen = int(x.sum(0)[:3].argmax())
        return x * self.scales[chosen]


@model(
    "a dictionary is looked up by a value",
    lambda batch=3: dict(x=torch.randn(batch), kind=torch.tensor(1)),
    unproved=True,
    rare={
        str(kind): (lambda k: lambda batch=3: dict(x=torch.randn(batch), kind=torch.tensor(k)))(kind)
        for kind in (0, 2, 7)
    },
)
def dictionary_by_value(self, x, kind):
    table = {0: 1.0, 1: 2.0, 2: -3.0}
    return x * table.get(int(kind), 10.0)


@model("match statement on an integer", asked(1), rare=ANY, unproved=True)
def match_integer(self, x, k):
    match int(k):
        case 0:
            return x
        case 1 | 2:
            return x * 2
        case n if n < 0:
            return -x
        case _:
            return x * 100


@model(
    "boolean scalar input",
    lambda batch=3: dict(x=torch.randn(batch), on=torch.tensor(True)),
    unproved=True,
    rare={"off": lambda batch=3: dict(x=torch.randn(batch), on=torch.tensor(False))},
)
def boolean_scalar(self, x, on):
    return torch.sin(x) if on else torch.cos(x)


@model(
    "two booleans, four ways",
    lambda batch=3: dict(x=torch.randn(batch), a=torch.tensor(True), b=torch.tensor(True)),
    unproved=True,
    rare={
        f"{a} {b}": (lambda a, b: lambda batch=3: dict(x=torch.randn(batch), a=torch.tensor(a), b=torch.tensor(b)))(
            a, b
        )
        for a, b in ((True, False), (False, True), (False, False))
    },
)
def two_booleans(self, x, a, b):
    if a and not b:
        return x + 1
    if b and not a:
        return x - 1
    return x * 2 if a or b else x * 3


@model(
    "any over a mask decides whether a second output is scaled",
    lambda batch=3, seq=4: (torch.randn(batch, seq), torch.ones(batch, seq, dtype=torch.bool)),
    unproved=True,
)
def any_of_mask(self, x, mask):
    y = x.masked_fill(~mask, 0.0)
    if not mask[-1].any():
        y = y + 5
    return y


@model(
    "int() of a float tensor truncates toward zero",
    lambda batch=3: dict(x=torch.randn(batch), s=torch.tensor(2.7)),
    unproved=True,
    rare={
        str(s): (lambda s: lambda batch=3: dict(x=torch.randn(batch), s=torch.tensor(s)))(s)
        for s in (-2.7, -0.5, 0.5, 0.0, 1e6)
    },
)
def truncated(self, x, s):
    return x * int(s)


@model(
    "float() and Python's floor and ceil",
    lambda batch=3: dict(x=torch.randn(batch), s=torch.tensor(2.5)),
    unproved=True,
    rare={
        str(s): (lambda s: lambda batch=3: dict(x=torch.randn(batch), s=torch.tensor(s)))(s)
        for s in (-2.5, -0.1, 3.0, 0.0)
    },
)
def floor_and_ceil(self, x, s):
    value = float(s)
    return x * math.floor(value) + math.ceil(value)


@model(
    "round() of a float tensor",
    lambda batch=3: dict(x=torch.randn(batch), s=torch.tensor(2.2)),
    unproved=True,
    rare={
        str(s): (lambda s: lambda batch=3: dict(x=torch.randn(batch), s=torch.tensor(s)))(s)
        for s in (0.5, 1.5, 2.5, -0.5, -1.5)
    },
)
def rounded(self, x, s):
    return x + round(s.item())


@model(
    "power with a whole exponent that may be negative",
    asked(2),
    rare=FEW | {"-1": asked(-1), "-2": asked(-2)},
    unproved=True,
)
def whole_power(self, x, k):
    return (x.abs() + 1) ** int(k)


@model("number as divisor: zero has its own branch", asked(2), rare=ANY, unproved=True)
def divisor_or_zero(self, x, k):
    n = int(k)
    return x / n if n else torch.zeros_like(x)


@model(
    "length by a value: the first k columns, k up to all of them",
    asked(2),
    rare=FEW,
    where=["seq >= 5"],
    far=FAR,
    unproved=True,
)
def first_columns(self, x, k):
    return x[:, : int(k)]


@model(
    "both sides of a cut are outputs; one may be empty",
    asked(2),
    rare=FEW | {"-1": asked(-1)},
    where=["seq >= 5"],
    unproved=True,
)
def both_sides(self, x, k):
    n = int(k)
    return x[:, :n], x[:, n:]


@model("tensor_split at a value", asked(2), rare=FEW, where=["seq >= 5"], unproved=True)
def split_at(self, x, k):
    n = int(k)
    left, right = x.tensor_split([n], dim=1)
    return left.sum(1) - right.sum(1)


@model(
    "repeat by a value; zero gives an empty answer", asked(2), rare={str(v): asked(v) for v in (0, 1, 4)}, unproved=True
)
def repeat_by(self, x, k):
    return x.repeat(int(k), 1)


@model(
    "one-hot width from a value",
    lambda n=4: (torch.randint(0, 3, (n,)), torch.tensor(5)),
    unproved=True,
    rare={
        "three": lambda n=4: (torch.randint(0, 3, (n,)), torch.tensor(3)),
        "forty": lambda n=4: (torch.randint(0, 3, (n,)), torch.tensor(40)),
    },
)
def one_hot_width(self, ids, width):
    return F.one_hot(ids, int(width))


@model(
    "mask from lengths with max() as its width",
    lambda batch=3: (torch.randint(1, 6, (batch,)),),
    unproved=True,
    rare={
        "equal": lambda batch=3: (torch.full((batch,), 4),),
        "long": lambda batch=3: (torch.randint(200, 400, (batch,)),),
    },
)
def mask_of_lengths(self, lengths):
    return torch.arange(int(lengths.max())) < lengths[:, None]


@model("nonzero: as many rows as there are positives, perhaps none", flat, rare=VALUES, unproved=True)
def positives(self, x):
    return x[x > 0]


@model("nonzero, then a mean with a fallback for none", flat, rare=VALUES, unproved=True)
def mean_of_positives(self, x):
    picked = x[x > 0.5]
    return picked.mean() if picked.numel() > 0 else x.new_tensor(-1.0)


@model("rows are kept by their sum; none may be left", flat, rare=VALUES, unproved=True)
def rows_kept(self, x):
    return x[x.sum(1) > 0] * 2


@model(
    "unique: sorted, counted",
    lambda n=8: (torch.randint(0, 4, (n,)),),
    unproved=True,
    rare={"same": lambda n=8: (torch.full((n,), 3),), "all different": lambda n=8: (torch.randperm(n),)},
)
def unique_counted(self, ids):
    values, counts = torch.unique(ids, return_counts=True)
    return values, counts


@model(
    "bincount: as long as the largest value",
    lambda n=8: (torch.randint(0, 5, (n,)),),
    unproved=True,
    rare={
        "zeros": lambda n=8: (torch.zeros(n, dtype=torch.int64),),
        "large": lambda n=8: (torch.randint(0, 300, (n,)),),
    },
)
def counted(self, ids):
    return torch.bincount(ids)


@model(
    "repeat_interleave by a tensor of counts, zeros among them",
    lambda n=4: (torch.randn(n, 2), torch.randint(0, 4, (n,))),
    unproved=True,
    rare={
        "none": lambda n=4: (torch.randn(n, 2), torch.zeros(n, dtype=torch.int64)),
        "many": lambda n=4: (torch.randn(n, 2), torch.full((n,), 50)),
    },
)
def interleaved(self, x, counts):
    return torch.repeat_interleave(x, counts, dim=0)


@model(
    "split by a list of lengths taken from a tensor",
    lambda n=6: (torch.randn(n), torch.tensor([2, 4])),
    unproved=True,
    true_refusal=False,
    where=["n == 6"],
    rare={
        "other": lambda n=6: (torch.randn(n), torch.tensor([5, 1])),
        "empty": lambda n=6: (torch.randn(n), torch.tensor([0, 6])),
    },
)
def split_by_tensor(self, x, lengths):
    return tuple(part.sum() for part in x.split(lengths.tolist()))


@model(
    "tolist of three numbers as weights",
    lambda batch=2: (torch.randn(batch, 3), torch.tensor([1, 2, 3])),
    unproved=True,
    rare={
        "negative": lambda batch=2: (torch.randn(batch, 3), torch.tensor([-1, 0, 5])),
        "large": lambda batch=2: (torch.randn(batch, 3), torch.tensor([10**9, 0, -4])),
    },
)
def weights_from_list(self, x, w):
    a, b, c = w.tolist()
    return x[:, 0] * a + x[:, 1] * b + x[:, 2] * c


@model("count of elements above zero steers a scale by Python", flat, rare=VALUES, far=FAR, unproved=True)
def count_scale(self, x):
    count = int((x > 0).sum())
    return x * (1.0 if count < 4 else 0.5 if count < 200 else 0.1)


@model(
    "maximum index as a slice end",
    lambda n=6: (torch.randn(n),),
    far={"n": (255, 256, 257)},
    unproved=True,
    rare={"first": lambda n=6: (-torch.arange(n).float(),), "last": lambda n=6: (torch.arange(n).float(),)},
)
def up_to_maximum(self, x):
    return x[: int(x.argmax()) + 1].sum()


@model(
    "last valid step of every row by a Python loop over rows",
    lambda batch=3, seq=5: (torch.randn(batch, seq, 2), torch.randint(1, seq + 1, (batch,))),
    where=["batch <= 8"],
    rare={"full": lambda batch=3, seq=5: (torch.randn(batch, seq, 2), torch.full((batch,), seq))},
    unproved=True,
)
def last_valid(self, x, lengths):
    return torch.stack([x[i, int(lengths[i]) - 1] for i in range(x.shape[0])])


@model(
    "mean of every row up to its own length, by slices",
    lambda batch=3, seq=5: (torch.randn(batch, seq), torch.randint(1, seq + 1, (batch,))),
    where=["batch <= 6"],
    rare={"ones": lambda batch=3, seq=5: (torch.randn(batch, seq), torch.ones(batch, dtype=torch.int64))},
    unproved=True,
)
def mean_to_length(self, x, lengths):
    return torch.stack([x[i, : int(n)].mean() for i, n in enumerate(lengths)])


@model(
    "assertion on values: eager raises there, the file has to as well",
    flat,
    rare={"positive": lambda batch=3, seq=6: (torch.rand(batch, seq) + 1,)},
    unproved=True,
)
def asserts_values(self, x):
    if bool((x.abs() > 100).any()):
        raise ValueError("too large")
    return x.sum(1)


@model("clip by the norm, only where it is larger than one", flat, rare=VALUES, unproved=True)
def clip_by_norm(self, x):
    norm = x.norm()
    return x / norm if norm > 1 else x


@model(
    "ternary on a comparison of two sums that may tie",
    lambda n=4: (torch.randn(n), torch.randn(n)),
    unproved=True,
    rare={
        "tie": lambda n=4: (torch.ones(n), torch.ones(n)),
        "zero signs": lambda n=4: (torch.zeros(n), -torch.zeros(n)),
    },
)
def ties(self, a, b):
    return a + 1 if a.sum() >= b.sum() else b - 1


@model("min and max by Python over 0-d tensors", flat, rare=VALUES, unproved=True)
def python_min_max(self, x):
    return max(x.sum(), x.new_tensor(0.0)) + min(x[0, 0], x[0, -1])


@model("chained comparison of tensors", flat, rare=VALUES, unproved=True)
def chained_comparison(self, x):
    return x * 5 if -0.2 < x.mean() < 0.2 else x


@model(
    "sign of a determinant",
    lambda batch=2: (torch.randn(batch, 2, 2),),
    unproved=True,
    rare={
        "singular": lambda batch=2: (torch.ones(batch, 2, 2),),
        "mirrored": lambda batch=2: (torch.tensor([[0.0, 1], [1, 0]]).expand(batch, 2, 2).clone(),),
    },
)
def determinant_sign(self, m):
    det = m[:, 0, 0] * m[:, 1, 1] - m[:, 0, 1] * m[:, 1, 0]
    return m if bool((det > 0).all()) else m.transpose(1, 2)
