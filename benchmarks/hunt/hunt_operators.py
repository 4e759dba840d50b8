"""Tensor operators at unusual arguments that depend on the sizes."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("operators")


def steps(batch=2, seq=5):
    return (torch.randn(batch, seq, 3),)


def image(batch=2, height=6, width=8):
    return (torch.randn(batch, 3, height, width),)


def whole(batch=2, seq=5):
    return (torch.randint(0, 4, (batch, seq)),)


@model(
    "roll by half the width, by minus the height, and by more than one turn",
    image,
    far={"height": (1, 2, 7), "width": (1, 3, 9)},
    points=({"height": 5, "width": 3}, {"height": 1, "width": 1}),
)
def rolled(self, x):
    h, w = x.shape[-2:]
    return torch.roll(x, (w // 2, -h), (2, 3)) + torch.roll(x, h * w + 1) * 0.5


@model(
    "reflect padding to a multiple of eight: amounts below the size, the rest replicates",
    steps,
    far={"seq": (4, 5, 7, 8, 9, 15, 16, 17, 57)},
)
def reflected(self, x):
    x = x.transpose(1, 2)
    need = -x.shape[-1] % 8
    mirror = min(need, x.shape[-1] - 1)
    x = F.pad(x, (0, mirror), mode="reflect")
    return F.pad(x, (0, need - mirror), mode="replicate")


@model(
    "negative padding crops: the crop grows with the length, dilation with its logarithm",
    steps,
    far={"seq": (8, 9, 15, 16, 17, 31, 32, 33)},
)
class CroppedDilated(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 3, 3) / 3)

    def forward(self, x):
        n = x.shape[1]
        d = max(1, n.bit_length() - 2)
        y = F.conv1d(x.transpose(1, 2), self.weight, dilation=d, padding=d)
        return F.pad(y, (-(n // 4), n // 8))


@model(
    "overlap-add: unfold with a hop by the length, then fold back, windows counted",
    steps,
    where=["seq >= 4"],
    far={"seq": (4, 6, 7, 8, 9, 12, 13, 24, 25, 40)},
)
def overlap_add(self, x):
    n = x.shape[1]
    hop = max(1, n // 6)
    frames = x.unfold(1, 2 * hop, hop)
    b, count, c, size = frames.shape
    columns = frames.permute(0, 2, 3, 1).reshape(b, c * size, count)
    total = hop * (count + 1)
    back = F.fold(columns, (1, total), (1, size), stride=(1, hop))
    return back[:, :, 0], x[:, total:]


@model(
    "interpolate to round(0.3 n) with align_corners: one output sample is special",
    steps,
    far={"seq": (2, 3, 4, 5, 6, 15, 25, 35, 45)},
)
def resampled(self, x):
    n = max(1, round(0.3 * x.shape[1]))
    y = x.transpose(1, 2)
    return (
        F.interpolate(y, n, mode="linear", align_corners=True),
        F.interpolate(y, n, mode="nearest-exact"),
        F.interpolate(y, n),
    )


@model(
    "adaptive pools to a third, with windows of unequal sizes",
    image,
    far={"height": (1, 2, 3, 10, 11, 13), "width": (1, 4, 5, 17)},
    points=({"height": 7, "width": 5}, {"height": 13, "width": 11}),
)
def adaptive_thirds(self, x):
    h, w = x.shape[-2:]
    return F.adaptive_avg_pool2d(x, (max(1, h // 3), (w + 1) // 2)) + F.adaptive_max_pool2d(
        x, (max(1, h // 3), (w + 1) // 2)
    )


@model(
    "pooling in ceil mode whose last window would start in the padding is dropped",
    image,
    where=["height >= 2", "width >= 2"],
    far={"height": (2, 3, 4, 5, 7), "width": (2, 3, 5, 9, 10)},
    points=({"height": 5, "width": 5}, {"height": 2, "width": 2}, {"height": 7, "width": 4}),
)
def ceil_pools(self, x):
    a = F.max_pool2d(x, 2, stride=3, padding=1, ceil_mode=True)
    b = F.avg_pool2d(x, 2, stride=3, padding=1, ceil_mode=True, count_include_pad=True)
    return a, b, F.avg_pool2d(x, 2, stride=3, padding=1, ceil_mode=True, divisor_override=3)


@model(
    "topk with k from the square root of the length, stable only in values; kth from the median",
    steps,
    far={"seq": (3, 4, 8, 9, 15, 16, 24, 25, 63, 64)},
)
def root_topk(self, x):
    k = math.isqrt(x.shape[1])
    top = x.topk(k, 1).values
    low = x.topk((x.shape[1] + 1) // 2, 1, largest=False, sorted=True)
    return top.mean(1), low.values, x.kthvalue(k, 1).values, x.median(1).values


@model(
    "ties: stable sort, descending stable sort, argmax of equals, unique with counts",
    whole,
    far={"seq": (1, 2, 17, 40)},
    rare={
        "same": lambda batch=2, seq=5: (torch.ones(batch, seq, dtype=torch.int64),),
        "falling": lambda batch=2, seq=5: (
            torch.arange(seq - 1, -1, -1).div(2, rounding_mode="floor").expand(batch, seq).contiguous(),
        ),
    },
)
def ties(self, x):
    up = torch.sort(x, dim=1, stable=True).indices
    down = torch.sort(x, dim=1, stable=True, descending=True).indices
    return up, down, x.argmax(1), x.argmin(1), torch.argsort(-x, dim=1, stable=True)


@model(
    "a discrete Fourier transform as two products with tables made of the length", steps, far={"seq": (1, 2, 8, 31, 32)}
)
def dft(self, x):
    n = x.shape[1]
    index = torch.arange(n)
    angle = (index[:, None] * index % n) * (-2 * math.pi / n)
    half = n // 2 + 1
    real = torch.einsum("kt,btc->bkc", angle.cos()[:half], x)
    imag = torch.einsum("kt,btc->bkc", angle.sin()[:half], x)
    return (real.square() + imag.square()) / n


@model(
    "torch's rfft and irfft: the odd length must be handed to the inverse", steps, far={"seq": (1, 2, 3, 8, 9, 15, 16)}
)
def low_pass(self, x):
    spectrum = torch.fft.rfft(x, dim=1)
    keep = (torch.arange(spectrum.shape[1]) <= spectrum.shape[1] // 2)[None, :, None]
    return torch.fft.irfft(spectrum * keep, n=x.shape[1], dim=1)


@model(
    "rotary embedding by complex numbers",
    lambda batch=2, seq=5: (torch.randn(batch, seq, 2, 8),),
    far={"seq": (1, 2, 50)},
)
def rotary_complex(self, x):
    freqs = 1.0 / 100 ** (torch.arange(0, 8, 2) / 8)
    turns = torch.polar(torch.ones(x.shape[1], 4), torch.outer(torch.arange(x.shape[1]).float(), freqs))
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], 4, 2))
    return torch.view_as_real(pairs * turns[:, None]).flatten(-2)


@model("bfloat16 positions: integers above 256 round", steps, far={"seq": (255, 256, 257, 258, 259, 300)})
def bfloat16_positions(self, x):
    position = torch.arange(x.shape[1], dtype=torch.bfloat16)
    return x + position[:, None].float(), (position * 2 + 1).float()


@model(
    "float16 sums overflow to infinity; a count of 70000 does not fit",
    lambda batch=2, seq=5: (torch.rand(batch, seq).half(),),
    far={"seq": (1, 64)},
    rare={
        "large": lambda batch=2, seq=5: (torch.full((batch, seq), 30000.0).half(),),
        "tiny": lambda batch=2, seq=5: (torch.full((batch, seq), 6e-8).half(),),
    },
)
def half_overflow(self, x):
    doubled = x * 2 + x * 2
    scale = torch.tensor(float(x.shape[1] * 7000), dtype=torch.float16)
    return doubled, x / scale, (x.float() * x.shape[1]).half()


@model(
    "forward substitution row by row for a unit lower triangle made of the input",
    steps,
    where=["1 <= seq <= 32"],
    far={"seq": (1, 2, 31, 32)},
)
def substitution(self, x):
    lower = (x @ x.mT).tanh().tril(-1) * 0.3
    rows = []
    for i in range(x.shape[1]):
        row = x[:, i]
        if rows:
            row = row - torch.einsum("bj,bjc->bc", lower[:, i, :i], torch.stack(rows, 1))
        rows.append(row)
    return torch.stack(rows, 1)


@model(
    "one_hot without a number of classes: the width is a value; with one from the size beside it",
    whole,
    rare={
        "zeros": lambda batch=2, seq=5: (torch.zeros(batch, seq, dtype=torch.int64),),
        "three": lambda batch=2, seq=5: (torch.full((batch, seq), 3),),
    },
    far={"seq": (1, 30)},
    unproved=True,
)
def open_one_hot(self, x):
    return F.one_hot(x).sum(1), F.one_hot(x, x.shape[1] + 4).float().mean(1)


@model(
    "searchsorted and bucketize with bounds made of the length; right and left at exact bounds",
    lambda batch=2, seq=5: (torch.rand(batch, 6), torch.randn(seq)),
    far={"seq": (1, 2, 4, 9)},
    rare={
        "bounds": lambda batch=2, seq=5: (torch.linspace(0, 1, 5)[torch.randint(0, 5, (batch, 6))], torch.zeros(seq)),
        "nan": lambda batch=2, seq=5: (torch.full((batch, 6), float("nan")), torch.randn(seq)),
    },
)
def bucketized(self, x, weights):
    bounds = torch.arange(weights.shape[0]) / 4
    left = torch.searchsorted(bounds, x)
    right = torch.bucketize(x, bounds, right=True)
    return left, right, F.pad(weights, (0, 1))[left]


@model(
    "masked_scatter reads its source in the order of the mask",
    lambda batch=2, seq=5, extra=3: (
        torch.randn(batch, seq, 3),
        torch.rand(batch, seq) > 0.5,
        torch.randn(batch * seq + extra, 3),
    ),
    far={"seq": (1, 12), "extra": (1, 9)},
    rare={
        "none": lambda batch=2, seq=5, extra=3: (
            torch.randn(batch, seq, 3),
            torch.zeros(batch, seq, dtype=torch.bool),
            torch.randn(batch * seq + extra, 3),
        ),
        "all": lambda batch=2, seq=5, extra=3: (
            torch.randn(batch, seq, 3),
            torch.ones(batch, seq, dtype=torch.bool),
            torch.randn(batch * seq + extra, 3),
        ),
    },
)
def images_into_text(self, x, place, features):
    return x.masked_scatter(place[..., None], features)


@model(
    "grid_sample on a grid of the size itself, at exact borders, nearest and reflected",
    image,
    far={"height": (1, 2, 9), "width": (1, 3, 11)},
    points=({"height": 1, "width": 1},),
)
def warped(self, x):
    b, _, h, w = x.shape
    ys, xs = torch.meshgrid(torch.linspace(-1.4, 1.4, h), torch.linspace(-1.3, 1.3, w // 2 + 1), indexing="ij")
    grid = torch.stack([xs, ys], -1).expand(b, -1, -1, -1)
    return F.grid_sample(x, grid, padding_mode="reflection", align_corners=False), F.grid_sample(
        x, grid, padding_mode="border", align_corners=True
    )


@model(
    "embedding_bag by offsets made of the sizes; an empty bag is zero, max of none too",
    lambda count=10, bags=3: (
        torch.randint(0, 12, (count,)),
        torch.sort(torch.randint(0, count, (bags,))).values * (torch.arange(bags) > 0),
    ),
    far={"count": (1, 2, 30), "bags": (1, 2, 9)},
    points=({"count": 2, "bags": 8},),
)
class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.EmbeddingBag(12, 4, mode="mean")
        self.top = nn.EmbeddingBag(12, 4, mode="max", padding_idx=0)

    def forward(self, ids, offsets):
        return self.mean(ids, offsets), self.top(ids, offsets)


@model(
    "repeat_interleave by a tensor: the repeats are ramp of the position",
    steps,
    far={"seq": (1, 2, 7, 12)},
    where=["1 <= seq <= 20"],
)
def staircase(self, x):
    n = x.shape[1]
    repeats = torch.arange(n) % 3
    index = torch.arange(n).repeat_interleave(repeats)
    return x[:, index], x.repeat_interleave(repeats + 1, dim=1, output_size=n + int(repeats.sum()))


@model(
    "nested inputs: a list of pairs and an optional mask, dict output with names from the list",
    lambda batch=2, past=3, seq=4: dict(
        x=torch.randn(batch, seq, 4),
        cache=[(torch.randn(batch, past, 4), torch.randn(batch, past, 4)) for _ in range(2)],
        mask=None,
    ),
    far={"past": (1, 9), "seq": (1, 5, 12)},
)
def nested(self, x, cache, mask=None):
    out, present = x, {}
    for index, (k, v) in enumerate(cache):
        k, v = torch.cat([k, out], 1), torch.cat([v, x], 1)
        drop = max(0, k.shape[1] - 8)
        k, v = k[:, drop:], v[:, drop:]
        out = F.scaled_dot_product_attention(out, k, v, attn_mask=mask, is_causal=mask is None and x.shape[1] > 1)
        present[f"layer{index}"] = {"k": k, "v": v}
    return {"hidden": out, **present}


@model(
    "as_strided and stride() of the input: skewed attention by a flat view of the padded scores",
    lambda batch=2, seq=5: (torch.randn(batch, seq, 4), torch.randn(batch, seq, seq)),
    far={"seq": (1, 2, 3, 20)},
)
def relative_shift(self, x, position):
    b, n, _ = position.shape
    padded = F.pad(position, (1, 0))
    shifted = padded.view(b, n + 1, n)[:, 1:]
    band = x.as_strided((b, max(1, n - 1), 4), (x.stride(0), x.stride(1), 1), x.storage_offset() + (4 if n > 1 else 0))
    return shifted.tril() @ x, band


@model(
    "std without correction at one element is zero, with it NaN; var of a size-dependent correction",
    steps,
    points=({"batch": 1, "seq": 1}, {"batch": 3, "seq": 1}),
    far={"seq": (1, 2, 3, 10, 20, 21)},
)
def corrections(self, x):
    n = x.shape[1]
    return (
        x.std(1),
        x.var(1, correction=min(n // 10, n - 1)),
        x.std((0, 1), unbiased=False),
        F.normalize(x, p=1 + n % 3, dim=1),
        torch.logcumsumexp(x, 1),
    )


@model(
    "a group number that depends on the size: groups of a convolution and of a group norm",
    lambda batch=2, width=6, length=9: (torch.randn(batch, width * 2, length),),
    far={"width": (1, 2, 3, 4, 9, 10), "length": (1, 4, 20)},
)
def grouped(self, x):
    c = x.shape[1]
    groups = c // 2 if c % 4 else 2
    y = F.group_norm(x, groups) if x.shape[-1] > 1 else x
    kernel = torch.ones(c, 1, 3) / torch.arange(1, c + 1)[:, None, None]
    return F.conv1d(y, kernel, padding=1, groups=c)
