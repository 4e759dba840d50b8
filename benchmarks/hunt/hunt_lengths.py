"""Whole numbers, tables and numpy arrays that Python computes from sizes."""

# ruff: noqa: C408
from __future__ import annotations

import bisect
import functools
import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("lengths")


def flat(batch=2, seq=6):
    return (torch.randn(batch, seq),)


def deep(batch=2, seq=6):
    return (torch.randn(batch, seq, 4),)


FAR = {
    "seq": (
        63,
        64,
        65,
        99,
        100,
        101,
        127,
        128,
        129,
        255,
        256,
        257,
        299,
        300,
        301,
        511,
        512,
        513,
        577,
        600,
        601,
        700,
        999,
        1000,
        1001,
        1023,
        1024,
        1025,
        1500,
        2000,
        2047,
        2048,
        2049,
        3000,
        4000,
        4095,
        4096,
        4097,
        5000,
    )
}
PRIMES = {"seq": (2, 3, 4, 7, 11, 97, 121, 127, 169, 251, 257, 289, 361, 509, 521, 841, 997, 1009)}


@model("bit length of the size", flat, far=FAR, unproved=True)
def bit_length(self, x):
    return x * int(x.shape[1]).bit_length()


@model("number of ones among its bits", flat, far=FAR, unproved=True)
def bit_count(self, x):
    return x + int(x.shape[1]).bit_count()


@model("next power of two, as a padding", flat, far=FAR, unproved=True)
def pad_to_power_of_two(self, x):
    n = int(x.shape[1])
    return F.pad(x, (0, (1 << (n - 1).bit_length()) - n))


@model("whether the size is a prime", flat, where=["seq >= 2"], far=PRIMES, unproved=True)
def is_prime(self, x):
    n = int(x.shape[1])
    return x * 2 if all(n % d for d in range(2, math.isqrt(n) + 1)) else x


@model("digits of the size are summed", flat, far=FAR, unproved=True)
def digit_sum(self, x):
    return x + sum(map(int, str(int(x.shape[1]))))


@model(
    "palindromic sizes are special",
    flat,
    far={"seq": (9, 10, 11, 22, 99, 101, 111, 252, 300, 303, 1001)},
    unproved=True,
)
def palindrome(self, x):
    text = str(int(x.shape[1]))
    return -x if text == text[::-1] else x


@model(
    "integer square root as a grid side",
    flat,
    far={"seq": (15, 16, 17, 35, 36, 255, 256, 288, 289, 1023, 1024, 4095, 4096)},
    unproved=True,
)
def grid_side(self, x):
    side = math.isqrt(int(x.shape[1]))
    return x[:, : side * side].reshape(-1, side, side)


@model(
    "largest divisor up to 16, used as groups",
    flat,
    far=FAR | {"seq": (97, 101, 128, 289, 300, 512, 600, 720)},
    unproved=True,
)
def groups_by_divisor(self, x):
    n = int(x.shape[1])
    groups = max(d for d in range(1, 17) if n % d == 0)
    return x.reshape(x.shape[0], groups, -1).mean(-1, keepdim=True) * torch.ones(1, groups, n // groups)


@model("gcd with 360", flat, far={"seq": (90, 120, 180, 240, 359, 360, 361, 720, 1080)}, unproved=True)
def gcd_360(self, x):
    return x * math.gcd(int(x.shape[1]), 360)


@model("logarithm rounded up: math.ceil(math.log2(n))", flat, far=FAR, unproved=True)
def ceil_log2(self, x):
    return x + math.ceil(math.log2(int(x.shape[1])))


@model(
    "logarithm of base 10, floored: exact powers are where floats err",
    flat,
    far={"seq": (9, 10, 11, 99, 100, 101, 999, 1000, 1001)},
    unproved=True,
)
def floor_log10(self, x):
    return x + math.floor(math.log10(int(x.shape[1])))


@model(
    "length scaled by 0.29 and truncated: float truncation",
    flat,
    far={"seq": (100, 200, 300, 400, 700, 1000)},
    unproved=True,
)
def float_truncation(self, x):
    n = int(x.shape[1] * 0.29)
    return x[:, :n].sum(1) + n


@model("Python's round: half to even", flat, far={"seq": (1, 3, 5, 7, 9, 250, 251, 253, 501, 1001)}, unproved=True)
def rounded_half(self, x):
    return x + round(x.shape[1] / 2)


@model("float division of sizes beyond a quarter, rounded to two places", flat, far=FAR, unproved=True)
def rounded_places(self, x):
    return x * round(1 / int(x.shape[1]), 3)


@model("an lru_cache of a table by length", flat, far=FAR, unproved=True)
class CachedTable(nn.Module):
    @staticmethod
    @functools.cache
    def table(n):
        return torch.tensor([1.0 / (1 + min(i, 600)) for i in range(n)])

    def forward(self, x):
        return x * self.table(int(x.shape[1]))


@model("positions by numpy: linspace has its end included", flat, far=FAR, unproved=True)
def numpy_linspace(self, x):
    return x * torch.from_numpy(np.linspace(0, 1, int(x.shape[1]), dtype=np.float32))


@model("numpy's window, whose middle differs for odd and even sizes", flat, far=FAR, unproved=True)
def numpy_bartlett(self, x):
    return x * torch.from_numpy(np.bartlett(int(x.shape[1])).astype(np.float32))


@model(
    "numpy's arange by floats: its length is not always what one thinks",
    flat,
    far={"seq": (10, 100, 300, 1000)},
    unproved=True,
)
def numpy_float_arange(self, x):
    n = int(x.shape[1])
    return x + len(np.arange(0, n * 0.1, 0.1))


@model("numpy's tri and its row sums", flat, where=["seq <= 600"], far={"seq": (255, 257, 599, 600)}, unproved=True)
def numpy_tri(self, x):
    return x @ torch.from_numpy(np.tri(int(x.shape[1]), k=-1, dtype=np.float32))


@model("numpy's roll of a ramp by 300", flat, far={"seq": (299, 300, 301, 599, 600, 601)}, unproved=True)
def numpy_roll(self, x):
    return x + torch.from_numpy(np.roll(np.arange(int(x.shape[1]), dtype=np.float32), 300))


@model(
    "int8 arithmetic on sizes wraps at 128", flat, far={"seq": (63, 64, 127, 128, 129, 255, 256, 300)}, unproved=True
)
def numpy_int8(self, x):
    return x + float(np.array(int(x.shape[1])).astype(np.int8))


@model(
    "int16 arithmetic: the square wraps at 182", flat, far={"seq": (181, 182, 255, 256, 257, 300, 363)}, unproved=True
)
def numpy_int16_square(self, x):
    return x + float((np.array(int(x.shape[1])) ** 2).astype(np.int16)) / 1000


@model(
    "bisect in a list of powers of three",
    flat,
    far={"seq": (3, 9, 27, 80, 81, 82, 242, 243, 244, 728, 729, 730, 2187)},
    unproved=True,
)
def bisect_powers(self, x):
    return x * bisect.bisect_right([3**i for i in range(9)], int(x.shape[1]))


@model(
    "a dictionary with ranges as keys; the last range begins at 450",
    flat,
    far={"seq": (199, 200, 449, 450, 451, 900)},
    unproved=True,
)
def ranges_as_keys(self, x):
    scales = {range(1, 200): 1.0, range(200, 450): 0.8, range(450, 10**9): 0.2}
    return x * next(scale for keys, scale in scales.items() if int(x.shape[1]) in keys)


@model(
    "a table of 512 positions, interpolated beyond",
    deep,
    far={"seq": (511, 512, 513, 700, 1024)},
    where=["seq <= 1024"],
    unproved=True,
)
class InterpolatedPositions(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(512, 4))

    def forward(self, x):
        n = int(x.shape[1])
        if n <= 512:
            return x + self.table[:n]
        longer = F.interpolate(self.table.T[None], size=n, mode="linear", align_corners=False)[0].T
        return x + longer


@model("rotary base is stretched beyond 600 tokens", deep, far={"seq": (599, 600, 601, 1200, 2000)}, unproved=True)
def stretched_rotary(self, x):
    n = int(x.shape[1])
    base = 10000.0 if n <= 600 else 10000.0 * (2.0 * n / 600 - 1)
    inverse = base ** -torch.tensor([0.0, 0.5])
    angles = torch.arange(n)[:, None] * inverse
    a, b = x.chunk(2, -1)
    return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)


@model(
    "relative position buckets: exact up to 8, logarithmic up to 128, one beyond",
    deep,
    where=["seq <= 300"],
    far={"seq": (8, 9, 16, 17, 127, 128, 129, 255, 300)},
    unproved=True,
)
class RelativeBuckets(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Embedding(16, 1)

    def forward(self, x):
        place = torch.arange(x.shape[1])
        distance = (place[:, None] - place[None]).abs()
        scaled = 8 + (torch.log(distance.clamp(min=1).float() / 8) / math.log(16) * 8).long()
        bucket = torch.where(distance < 8, distance, scaled.clamp(max=15))
        return torch.softmax(self.bias(bucket)[..., 0], -1) @ x


@model(
    "ALiBi slopes for a number of heads that is a size",
    lambda heads=4, seq=5: (torch.randn(heads, seq, 2),),
    far={"heads": (1, 2, 3, 6, 8, 12, 16, 20, 64), "seq": (256, 300)},
    unproved=True,
)
def alibi_slopes(self, x):
    heads, seq = int(x.shape[0]), x.shape[1]

    def powers(n):
        return [2 ** (-8 * (i + 1) / n) for i in range(n)]

    closest = 2 ** math.floor(math.log2(heads))
    slopes = powers(closest) + powers(2 * closest)[0::2][: heads - closest]
    bias = -torch.tensor(slopes)[:, None, None] * (torch.arange(seq)[:, None] - torch.arange(seq)[None]).abs()
    return torch.softmax(bias, -1) @ x


@model(
    "sinusoidal table by a Python loop over positions and channels",
    deep,
    where=["seq <= 64"],
    far={"seq": (1, 63, 64)},
    unproved=True,
)
def python_sinusoid(self, x):
    table = [[math.sin(p / 100 ** (c / 4)) for c in range(4)] for p in range(int(x.shape[1]))]
    return x + torch.tensor(table)


@model(
    "blocks of 128 with a short last one, by Python's range",
    deep,
    far={"seq": (127, 128, 129, 256, 257, 300, 384, 385)},
    unproved=True,
)
def block_means(self, x):
    n = int(x.shape[1])
    return torch.stack([x[:, i : min(i + 128, n)].mean(1) for i in range(0, n, 128)], 1)


@model(
    "overlap-add length: ceil((n - 400) / 160), at least one",
    flat,
    far={"seq": (1, 399, 400, 401, 559, 560, 561, 720, 1000)},
    unproved=True,
)
def frame_count(self, x):
    frames = max(1, math.ceil((int(x.shape[1]) - 400) / 160) + 1)
    return x.mean(1, keepdim=True) * torch.ones(1, frames)


@model("convolution output length by its formula, as a mask", flat, far=FAR, unproved=True)
def conv_lengths(self, x):
    n = int(x.shape[1])
    for kernel, stride in ((10, 5), (3, 2), (3, 2)):
        n = max((n - kernel) // stride + 1, 0)
    return x * (torch.arange(x.shape[1]) < n)


@model("an average pool whose window is 1 + n // 256", flat, far=FAR, unproved=True)
def growing_window(self, x):
    window = 1 + int(x.shape[1]) // 256
    return F.avg_pool1d(x[:, None], window)[:, 0]


@model(
    "dilation min(8, n // 40)",
    lambda seq=45: (torch.randn(1, 2, seq),),
    where=["40 <= seq <= 700"],
    far={"seq": (40, 79, 80, 81, 319, 320, 321, 360, 700)},
    unproved=True,
)
class GrowingDilation(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 3)

    def forward(self, x):
        dilation = min(8, int(x.shape[-1]) // 40)
        return F.conv1d(x, self.conv.weight, self.conv.bias, dilation=dilation)


@model(
    "a kernel made for the length: odd, at most 31",
    lambda seq=9: (torch.randn(1, 1, seq),),
    where=["seq >= 3"],
    far={"seq": (3, 4, 5, 30, 31, 32, 33, 256, 300)},
    unproved=True,
)
def kernel_by_length(self, x):
    k = min(31, int(x.shape[-1]) // 2 * 2 - 1)
    kernel = torch.ones(1, 1, k) / k
    return F.conv1d(F.pad(x, (k // 2, k // 2), mode="replicate"), kernel)


@model(
    "top-k with k a tenth of the length, at least one, at most 40",
    flat,
    far={"seq": (9, 10, 19, 20, 300, 399, 400, 401, 410, 420, 500)},
    unproved=True,
)
def topk_tenth(self, x):
    k = min(40, max(1, int(x.shape[1]) // 10))
    return x.topk(k, 1).values


@model(
    "repeat to fill 1000 places: as often as needed",
    flat,
    where=["seq <= 1200"],
    far={"seq": (1, 3, 333, 334, 499, 500, 501, 999, 1000, 1001)},
    unproved=True,
)
def repeat_to_thousand(self, x):
    n = int(x.shape[1])
    return x.repeat(1, -(-1000 // n))[:, :1000]


@model(
    "itertools.accumulate of a step that changes at 350", flat, far={"seq": (349, 350, 351, 352, 700)}, unproved=True
)
def accumulated(self, x):
    n = int(x.shape[1])
    weights = list(itertools.accumulate(1.0 if i < 350 else 0.0 for i in range(n)))
    return x * torch.tensor(weights) / n


@model(
    "a checkerboard by Python lists over two sizes",
    lambda rows=3, columns=4: (torch.randn(rows, columns),),
    where=["rows <= 30", "columns <= 30"],
    points=[dict(rows=30, columns=1), dict(rows=17, columns=30)],
    unproved=True,
)
def checkerboard(self, x):
    rows, columns = map(int, x.shape)
    signs = [[1.0 if (r + c) % 2 == 0 else -1.0 for c in range(columns)] for r in range(rows)]
    return x * torch.tensor(signs)


@model(
    "a spiral order computed in Python",
    lambda rows=3, columns=3: (torch.randn(rows, columns),),
    where=["rows <= 9", "columns <= 9"],
    points=[dict(rows=9, columns=2), dict(rows=5, columns=8), dict(rows=1, columns=9)],
    unproved=True,
)
def spiral(self, x):
    grid = [[r * x.shape[1] + c for c in range(int(x.shape[1]))] for r in range(int(x.shape[0]))]
    order = []
    while grid:
        order += grid.pop(0)
        grid = [list(row) for row in zip(*grid, strict=True)][::-1]
    return x.flatten()[torch.tensor(order)]


@model(
    "bit-reversal permutation, for powers of two",
    lambda n=8: (torch.randn(n),),
    far={"n": (1, 2, 4, 16, 64, 256, 512)},
    unproved=True,
)
def bit_reversal(self, x):
    n = int(x.shape[0])
    bits = max(n.bit_length() - 1, 1)
    order = [int(f"{i:0{bits}b}"[::-1], 2) % n for i in range(n)]
    return x[torch.tensor(order)]


@model("sorted by a key: evens first", flat, far={"seq": (255, 256, 257, 300)}, unproved=True)
def evens_first(self, x):
    order = sorted(range(int(x.shape[1])), key=lambda i: (i % 2, i))
    return x[:, order]


@model(
    "a deterministic shuffle by multiplication: i * 7 % n, where n is a multiple of 7 it repeats",
    flat,
    far={"seq": (7, 14, 49, 259, 300, 700)},
    unproved=True,
)
def multiplied_order(self, x):
    n = int(x.shape[1])
    return x[:, [i * 7 % n for i in range(n)]]


@model("scale is the string length of a formatted size", flat, far={"seq": (9, 10, 99, 100, 999, 1000)}, unproved=True)
def formatted(self, x):
    return x * len(f"{int(x.shape[1]):,}")


@model("numpy.interp over three knots", flat, far={"seq": (199, 200, 201, 649, 650, 651, 2000)}, unproved=True)
def numpy_interp(self, x):
    return x * float(np.interp(int(x.shape[1]), [1, 200, 650], [1.0, 2.0, 0.5]))


@model("numpy.digitize of all positions", flat, far={"seq": (299, 300, 301, 640, 641)}, unproved=True)
def numpy_digitize(self, x):
    places = np.digitize(np.arange(int(x.shape[1])), [10, 300, 640])
    return x + torch.from_numpy(places)


@model(
    "max of two sizes, through Python",
    lambda left=3, right=4: (torch.randn(left), torch.randn(right)),
    points=[dict(left=7, right=2), dict(left=2, right=7), dict(left=5, right=5), dict(left=300, right=1)],
    unproved=True,
)
def longest_of_two(self, a, b):
    n = max(int(a.shape[0]), int(b.shape[0]))
    return F.pad(a, (0, n - a.shape[0])) + F.pad(b, (0, n - b.shape[0]))


@model(
    "sorted sizes: the median of three",
    lambda a=2, b=3, c=4: (torch.randn(a), torch.randn(b), torch.randn(c)),
    points=[dict(a=9, b=1, c=5), dict(a=1, b=9, c=5), dict(a=5, b=5, c=1), dict(a=300, b=2, c=299)],
    unproved=True,
)
def median_size(self, x, y, z):
    middle = sorted([int(x.shape[0]), int(y.shape[0]), int(z.shape[0])])[1]
    return (x.sum() + y.sum() + z.sum()) * middle
