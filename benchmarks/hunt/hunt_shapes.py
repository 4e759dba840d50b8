"""Views, broadcasting, pads, slices, integer division of sizes, dims that are tied to one another."""

# ruff: noqa: C408
from __future__ import annotations

import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("shapes")


def flat(batch=3, seq=6):
    return (torch.randn(batch, seq),)


def deep(batch=2, seq=6):
    return (torch.randn(batch, seq, 4),)


def image(batch=1, height=6, width=8):
    return (torch.randn(batch, 2, height, width),)


FAR = {"seq": (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 127, 128, 129, 255, 256, 257, 300, 511, 513, 1000)}
PLANE = [dict(height=h, width=w) for h, w in ((1, 1), (1, 9), (9, 1), (7, 5), (16, 16), (31, 33), (64, 3))]


@model("ceil division by minus signs", flat, far=FAR)
def ceil_division(self, x):
    return x[:, : -(-x.shape[1] // 3)]


@model("floor division of a negative difference", flat, far=FAR)
def negative_floor(self, x):
    return x + (3 - x.shape[1]) // 4


@model("remainder of a negative difference has the divisor's sign", flat, far=FAR)
def negative_remainder(self, x):
    return F.pad(x, (0, (-x.shape[1]) % 8))


@model("slice with negative bounds that reach before the start", flat, far=FAR)
def negative_bounds(self, x):
    return x[:, -8:-1].sum(1)


@model("slice whose start lies beyond the end: empty", flat, far=FAR)
def empty_slice(self, x):
    return x[:, 4:].sum(1) + x[:, :2].prod(1)


@model("steps of three from an offset that is the size's remainder", flat, far=FAR)
def stepped_from_remainder(self, x):
    return x[:, x.shape[1] % 3 :: 3]


@model("flip, then every second", flat, far=FAR)
def reversed_stride(self, x):
    return x.flip(1)[:, ::2]


@model("pad by a negative amount crops", flat, where=["seq >= 3"], far=FAR)
def negative_pad(self, x):
    return F.pad(x, (-1, 2 - x.shape[1] % 4), value=0.5)


@model(
    "circular pad as long as the size itself",
    lambda seq=5: (torch.randn(1, 2, seq),),
    far={"seq": (1, 2, 3, 7, 255, 256, 300)},
)
def circular_full(self, x):
    return F.pad(x, (x.shape[-1] - 1, x.shape[-1] // 2), mode="circular")


@model(
    "reflect pad of n - 1: the most there is",
    lambda seq=5: (torch.randn(1, 2, seq),),
    where=["seq >= 2"],
    far={"seq": (2, 3, 4, 255, 300)},
)
def reflect_most(self, x):
    return F.pad(x, (x.shape[-1] - 1, x.shape[-1] - 1), mode="reflect")


@model("replicate pad by a third of the height on one side only", image, points=PLANE)
def replicate_third(self, x):
    return F.pad(x, (0, x.shape[-1] // 3, x.shape[-2] // 3, 0), mode="replicate")


@model("view by a remainder: pad if odd, then pairs", deep, far=FAR)
def pad_if_odd(self, x):
    if x.shape[1] % 2:
        x = F.pad(x, (0, 0, 0, 1))
    return x.view(x.shape[0], -1, 8)


@model(
    "space to depth with a crop to a multiple of two",
    image,
    where=["height >= 2", "width >= 2"],
    points=[dict(height=h, width=w) for h, w in ((2, 2), (3, 2), (2, 3), (7, 9), (16, 31))],
)
def space_to_depth(self, x):
    x = x[..., : x.shape[-2] // 2 * 2, : x.shape[-1] // 2 * 2]
    return F.pixel_unshuffle(x, 2)


@model(
    "windows of four with a shift, as in Swin",
    image,
    points=[dict(height=h, width=w) for h, w in ((4, 4), (5, 7), (8, 12), (17, 3))],
)
def swin_windows(self, x):
    b, c, h, w = x.shape
    x = F.pad(x, (0, (4 - w % 4) % 4, 0, (4 - h % 4) % 4)).roll((-2, -2), (2, 3))
    x = x.view(b, c, x.shape[2] // 4, 4, x.shape[3] // 4, 4).permute(0, 2, 4, 1, 3, 5).reshape(-1, c, 16)
    return x.softmax(-1)


@model(
    "broadcast of a size-one axis against a dim that may be one",
    lambda a=3, b=4: (torch.randn(a, 1), torch.randn(1, b)),
    points=[dict(a=1, b=1), dict(a=1, b=5), dict(a=300, b=2)],
)
def outer_broadcast(self, x, y):
    return x * y + x.sum()


@model(
    "two inputs that broadcast only where one of them has size one",
    lambda batch=3, seq=4: (torch.randn(batch, seq), torch.randn(batch, 1)),
    points=[dict(batch=1, seq=1), dict(batch=1, seq=7)],
)
def column_broadcast(self, x, y):
    return torch.where(x > y, x, y)


@model("expand, then in-place on a clone", flat, far=FAR)
def expanded_in_place(self, x):
    y = x[:, :1].expand(-1, x.shape[1]).clone()
    y[:, ::2] += x[:, ::2]
    return y


@model("a view is written to, and the original is the answer", flat, far=FAR)
def written_through_view(self, x):
    y = x.clone()
    y.view(-1)[:: x.shape[1]] = 0
    return y


@model(
    "transposed in-place write",
    lambda n=4, m=5: (torch.randn(n, m),),
    points=[dict(n=1, m=1), dict(n=9, m=2), dict(n=2, m=9)],
)
def transposed_write(self, x):
    y = x.clone()
    y.T[0] = -1.0
    return y.cumsum(0)


@model(
    "diagonal of a matrix that is not square",
    lambda n=4, m=6: (torch.randn(n, m),),
    points=[dict(n=n, m=m) for n, m in ((1, 1), (1, 8), (8, 1), (7, 3), (3, 7), (5, 5))],
)
def diagonals(self, x):
    return x.diagonal().sum() + x.flip(1).diagonal().sum()


@model(
    "offset diagonal, which is empty for narrow matrices",
    lambda n=4, m=6: (torch.randn(n, m),),
    points=[dict(n=n, m=m) for n, m in ((1, 1), (1, 3), (8, 2), (3, 3))],
)
def offset_diagonal(self, x):
    return x.diagonal(2).sum() + x.sum()


@model("unfold with a step, remainder dropped", flat, where=["seq >= 4"], far={"seq": (4, 5, 6, 7, 255, 256, 300)})
def unfolded(self, x):
    return x.unfold(1, 4, 3).mean(-1)


@model(
    "as many groups as the batch has rows",
    lambda batch=3, seq=4: (torch.randn(batch, seq, 5),),
    points=[dict(batch=1), dict(batch=7, seq=1)],
)
def grouped_by_batch(self, x):
    kernel = torch.ones(x.shape[0], 1, 3) / 3
    y = F.conv1d(x.mean(1)[None], kernel, padding=1, groups=x.shape[0])
    return y[0]


@model(
    "kernel size is a dim: cross-correlation of two inputs",
    lambda seq=9, k=3: (torch.randn(1, 1, seq), torch.randn(1, 1, k)),
    where=["k <= seq"],
    points=[dict(seq=9, k=9), dict(seq=300, k=1), dict(seq=300, k=257), dict(seq=10, k=4)],
)
def correlation(self, x, kernel):
    return F.conv1d(x, kernel, padding=kernel.shape[-1] // 2)


@model(
    "sizes that are tied by a sum",
    lambda past=2, now=3: (torch.randn(1, past, 4), torch.randn(1, now, 4), torch.zeros(1, past + now)),
    points=[dict(past=1, now=1), dict(past=300, now=1), dict(past=1, now=300)],
)
def tied_by_sum(self, past, now, bias):
    keys = torch.cat([past, now], 1)
    return torch.softmax(now @ keys.transpose(1, 2) + bias[:, None], -1) @ keys


@model(
    "sizes that are tied by a product",
    lambda heads=2, dim=3, seq=4: (torch.randn(seq, heads * dim), torch.randn(heads)),
    points=[dict(heads=1, dim=1, seq=1), dict(heads=8, dim=2, seq=5), dict(heads=3, dim=7, seq=300)],
)
def tied_by_product(self, x, scale):
    return (x.view(x.shape[0], scale.shape[0], -1) * scale[:, None]).sum(-1)


@model(
    "one size is twice another plus one",
    lambda n=3: (torch.randn(2 * n + 1), torch.randn(n)),
    far={"n": (1, 2, 127, 128, 300)},
)
def tied_affine(self, x, y):
    return x[1::2] * y + x[0:-1:2] - x[2::2]


@model(
    "one size is the square of another",
    lambda side=3: (torch.randn(2, side * side), torch.randn(side, side)),
    far={"side": (1, 2, 7, 16, 17, 30)},
)
def tied_square(self, x, kernel):
    return x.view(-1, kernel.shape[0], kernel.shape[1]) * kernel


@model(
    "batch of a second input is a multiple of the first's: beams",
    lambda batch=2, beams=3: (torch.randn(batch, 4), torch.randn(batch * beams, 4)),
    points=[dict(batch=1, beams=1), dict(batch=5, beams=1), dict(batch=1, beams=7), dict(batch=16, beams=5)],
)
def beams_of_batch(self, x, y):
    beams = y.shape[0] // x.shape[0]
    return y + x.repeat_interleave(beams, 0)


@model(
    "where= ties the dims: a <= b <= 2a",
    lambda a=4, b=6: (torch.randn(a), torch.randn(b)),
    where=["a <= b", "b <= 2 * a"],
    points=[dict(a=1, b=1), dict(a=1, b=2), dict(a=300, b=600), dict(a=300, b=300), dict(a=17, b=33)],
)
def tied_by_where(self, x, y):
    return y[: x.shape[0]] + x * (y.shape[0] - x.shape[0])


@model(
    "multiples only: seq % 12 == 0",
    lambda batch=2, seq=24: (torch.randn(batch, seq, 4),),
    where=["seq % 12 == 0", "seq <= 720"],
    far={"seq": (12, 24, 252, 264, 708, 720)},
)
def multiples_of_twelve(self, x):
    return x.unflatten(1, (-1, 12)).amax(2) + x.unflatten(1, (12, -1)).mean((1, 2), keepdim=True)[:, 0]


@model(
    "zero rows are declared",
    lambda batch=3, seq=4: (torch.randn(batch, seq),),
    where=["0 <= batch <= 9", "1 <= seq"],
    points=[dict(batch=0), dict(batch=0, seq=1), dict(batch=9)],
)
def zero_rows(self, x):
    return F.softmax(x, 1), x.sum(0)


@model(
    "zero steps are declared, and the mean of none is NaN",
    lambda seq=4: (torch.randn(2, seq),),
    where=["0 <= seq <= 300"],
    far={"seq": (0, 1, 299, 300)},
)
def zero_steps(self, x):
    return x.mean(1), x.sum(1), torch.cat([x, x.new_ones(2, 1)], 1).amax(1)


@model(
    "empty cache at first: past may be zero",
    lambda past=2, seq=3: (torch.randn(1, past, 4), torch.randn(1, seq, 4)),
    where=["0 <= past <= 400"],
    points=[dict(past=0, seq=1), dict(past=0, seq=9), dict(past=400, seq=1)],
)
def empty_cache(self, past, x):
    full = torch.cat([past, x], 1)
    place = torch.arange(full.shape[1])
    causal = place[None] <= place[past.shape[1] :, None]
    return torch.softmax((x @ full.transpose(1, 2)).masked_fill(~causal, -1e9), -1) @ full


@model(
    "squeeze drops an axis only where it is one",
    lambda batch=3, seq=4: (torch.randn(batch, seq),),
    where=["batch >= 2", "seq >= 2"],
    points=[dict(batch=2, seq=2)],
)
def squeeze_all(self, x):
    return x.squeeze() * 2


@model(
    "chunk gives fewer pieces for short sizes",
    lambda batch=3, seq=13: (torch.randn(batch, seq),),
    where=["seq >= 12"],
    far={"seq": (12, 13, 14, 15, 16, 255, 300)},
)
def chunked(self, x):
    first, *_, last = x.chunk(4, 1)
    return first.sum(1) - last.sum(1)


@model("tensor_split gives uneven pieces", flat, where=["seq >= 3"], far={"seq": (3, 4, 5, 7, 8, 256, 257, 301)})
def uneven_pieces(self, x):
    a, b, c = x.tensor_split(3, 1)
    return torch.stack([a.mean(1), b.mean(1), c.mean(1)], 1)


@model("narrow from the middle, length by parity", flat, where=["seq >= 3"], far=FAR)
def narrowed(self, x):
    start = (x.shape[1] - 1) // 2
    return x.narrow(1, start, 1 + (x.shape[1] + 1) % 2)


@model("centre crop to the smaller of two sides", image, points=PLANE)
def square_crop(self, x):
    side = min(x.shape[-2], x.shape[-1])
    top, left = (x.shape[-2] - side) // 2, (x.shape[-1] - side) // 2
    return x[..., top : top + side, left : left + side]


@model("longer side decides the padding: to a square", image, points=PLANE)
def square_pad(self, x):
    h, w = x.shape[-2:]
    extra = abs(h - w)
    pads = (extra // 2, extra - extra // 2)
    return F.pad(x, (0, 0, *pads)) if h < w else F.pad(x, (*pads, 0, 0))


@model("portrait and landscape take different layers", image, points=PLANE)
class Orientation(nn.Module):
    def __init__(self):
        super().__init__()
        self.tall, self.wide = nn.Conv2d(2, 2, (3, 1), padding=(1, 0)), nn.Conv2d(2, 2, (1, 3), padding=(0, 1))

    def forward(self, x):
        return self.tall(x) if x.shape[-2] > x.shape[-1] else self.wide(x)


@model("three size branches, the last from 600 on", flat, far={"seq": (9, 10, 11, 599, 600, 601, 1200)})
def three_size_branches(self, x):
    if x.shape[1] < 10:
        return x
    return x * 2 if x.shape[1] < 600 else x * 3


@model(
    "branch on a product of two sizes",
    lambda rows=3, columns=4: (torch.randn(rows, columns),),
    points=[
        dict(rows=r, columns=c) for r, c in ((50, 20), (20, 50), (1, 1000), (1000, 1), (999, 1), (32, 31), (40, 25))
    ],
)
def area_branch(self, x):
    return x.T if x.shape[0] * x.shape[1] >= 1000 else x.T * 2


@model(
    "numel decides",
    deep,
    far={"seq": (1, 124, 125, 126, 250, 251)},
    points=[dict(batch=5, seq=50), dict(batch=4, seq=63)],
)
def numel_branch(self, x):
    return x * 2 if x.numel() > 1000 else x


@model(
    "stack, then index by a size",
    lambda batch=3, seq=4: (torch.randn(batch, seq),),
    points=[dict(batch=1, seq=1), dict(batch=7, seq=2)],
)
def indexed_by_size(self, x):
    return torch.stack([x, -x, x * 0.5])[x.shape[1] % 3]


@model("meshgrid of two sizes", image, points=PLANE)
def coordinates(self, x):
    rows, columns = torch.meshgrid(torch.arange(x.shape[2]), torch.arange(x.shape[3]), indexing="ij")
    return x + rows / x.shape[2] - columns / x.shape[3]


@model("linspace from minus one to one; a single point is minus one", flat, far=FAR)
def linspaced(self, x):
    return x * torch.linspace(-1, 1, x.shape[1])


@model(
    "tril of a rectangle with an offset by sizes",
    lambda n=3, m=5: (torch.randn(n, m),),
    points=[dict(n=n, m=m) for n, m in ((1, 1), (6, 2), (2, 6), (300, 7))],
)
def rectangle_tril(self, x):
    return x.tril(x.shape[1] - x.shape[0])


@model("cumulative product of sizes as strides", image, points=PLANE)
def as_strided_rows(self, x):
    x = x.contiguous()
    return x.flatten(1)[:, :: x.shape[-1]]


@model("movedim, flatten and unflatten with a dim in front", image, points=PLANE)
def moved_and_flattened(self, x):
    y = x.movedim(1, -1).flatten(0, 2)
    return y.unflatten(0, (x.shape[0], -1)).sum(-1)


@model(
    "concatenate along a dim with itself as often as it has rows, up to three",
    lambda rows=2, seq=3: (torch.randn(rows, seq),),
    far={"rows": (1, 2, 3, 4, 300)},
)
def self_concatenated(self, x):
    return torch.cat([x] * min(int(x.shape[0]), 3), 1)
