"""Sizes that leave torch's arithmetic: texts, keys, bytes, decimals, bits, numpy, roundings."""

from __future__ import annotations

import bisect
import calendar
import ctypes
import enum
import functools
import math
import struct
import zlib
from collections import Counter, OrderedDict, UserDict, deque
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import numpy as np
import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("leave")


def steps(batch=2, seq=5):
    return (torch.randn(batch, seq, 3),)


def image(batch=2, height=6, width=8):
    return (torch.randn(batch, 3, height, width),)


def pair(a=3, b=5):
    return torch.randn(a, 4), torch.randn(b, 4)


@model(
    "a cube root in floating point: int(64 ** (1/3)) is 3, 125 gives 4 or 5 by rounding",
    steps,
    far={"seq": (7, 8, 26, 27, 28, 63, 64, 65, 124, 125, 126, 215, 216, 217)},
)
def cube_root_groups(self, x):
    side = int(x.shape[1] ** (1 / 3))
    return x * side + x[:, :side].sum(1, keepdim=True)


@model(
    "math.log(1000, 10) is 2.9999999999999996: digits counted by a logarithm are off at some powers",
    steps,
    far={"seq": (9, 10, 11, 99, 100, 101, 125, 243, 244, 999, 1000, 1001)},
)
def digits_by_log(self, x):
    n = x.shape[1]
    digits = int(math.log(n, 10)) + 1
    fives = int(math.log(n, 5))
    threes = int(math.log(n, 3))
    return x + digits * 100.0 + fives * 10.0 + threes


@model(
    "texts of a size: last digit, digit sum, bits reversed, and a string sliced past its end",
    steps,
    far={"seq": (9, 10, 11, 12, 13, 99, 100, 101, 128, 999, 1000)},
    unproved=True,
)
def digits_of_text(self, x):
    text = str(x.shape[1])
    backwards = int(f"{x.shape[1]:b}"[::-1], 2)
    letter = "abcdefghijkl"[x.shape[1] - 1 : x.shape[1]] or "z"
    y = F.pad(x, (0, 0, len(text), 0)) * int(text[-1]) + sum(map(int, text))
    return y + backwards + (ord(letter) - ord("a")) / 26


class Stage(enum.IntEnum):
    SHORT = 4
    MEDIUM = 16
    LONG = 48


@model(
    "an IntEnum looked up by size falls through _missing_ for all but three sizes",
    steps,
    far={"seq": (1, 4, 15, 16, 17, 47, 48, 49)},
)
class EnumStage(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(4))

    def forward(self, x):
        try:
            index = list(Stage).index(Stage(x.shape[1]))
        except ValueError:
            index = 3
        return x + self.bias[index]


@dataclass(frozen=True)
class Key:
    height: int
    width: int

    def __hash__(self):
        return (self.height * 31 + self.width) % 1024


class Tables(UserDict):
    def __missing__(self, key):
        return 1.0


@model(
    "a frozen dataclass of two sizes is the key of a UserDict with three entries",
    image,
    far={"height": (8, 14, 12, 24), "width": (14, 7)},
    points=(
        {"height": 14, "width": 14},
        {"height": 7, "width": 7},
        {"height": 7, "width": 14},
        {"batch": 3, "height": 12, "width": 24},
    ),
)
class KeyedScales(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = Tables({Key(14, 14): 2.0, Key(7, 7): 4.0, Key(12, 24): 0.5})

    def forward(self, x):
        return x * self.scales[Key(*x.shape[-2:])]


@functools.lru_cache(maxsize=2)
def window_length(n: int) -> int:
    best = 1
    for d in (2, 3, 5, 7, 11):
        if n % d == 0:
            best = d
    return best


@model(
    "the window is the largest small prime that divides the length, behind an lru_cache",
    steps,
    far={"seq": (6, 10, 11, 12, 13, 14, 22, 35, 49, 77, 121)},
)
def cached_window(self, x):
    w = window_length(x.shape[1])
    return x.reshape(x.shape[0], -1, w, 3).mean(2)


@model(
    "a size packed into one byte: the header overflows at 256 and is masked",
    steps,
    far={"seq": (127, 128, 129, 255, 256, 257, 511, 512)},
)
def header_bytes(self, x):
    header = struct.pack("<HB", x.shape[1], x.shape[1] & 0xFF)
    low, high, check = header
    signed = struct.unpack("b", bytes([check]))[0]
    return x + torch.tensor([float(low), float(high), float(signed)])


@model(
    "the order of a set of sizes is that of a hash table with eight places",
    steps,
    far={"seq": (8, 9, 10, 15, 16, 17, 24, 32, 40)},
    points=({"batch": 8, "seq": 16}, {"batch": 9, "seq": 1}, {"batch": 17, "seq": 9}, {"batch": 5, "seq": 5}),
    unproved=True,
)
def set_order(self, x):
    out = x.sum(1)
    for weight, size in enumerate({x.shape[1], x.shape[0], 5}, 1):
        out = out * weight + size
    return out


@model("the reduced denominator of n/12", steps, far={"seq": (4, 6, 8, 9, 12, 24, 36, 48, 60)})
def fraction_parts(self, x):
    ratio = Fraction(x.shape[1], 12)
    return x * ratio.denominator + ratio.numerator


@model("half-up rounding of n/8 by Decimal, not Python's half-even", steps, far={"seq": (4, 12, 20, 28, 36, 44, 52)})
def decimal_half_up(self, x):
    up = int((Decimal(x.shape[1]) / 8).quantize(Decimal(1), rounding=ROUND_HALF_UP))
    even = round(x.shape[1] / 8)
    return x * up + even


@model(
    "population count and trailing zeros of a size",
    steps,
    far={"seq": (8, 15, 31, 32, 48, 63, 64, 96, 127, 128, 255, 256)},
)
def bit_tricks(self, x):
    n = x.shape[1]
    ones = bin(n).count("1")
    zeros = (n & -n).bit_length() - 1
    gray = n ^ (n >> 1)
    return torch.cat([x * ones, x + zeros, x - gray], -1)


@model(
    "a dropout-like pattern chosen by the CRC of the decimal text",
    steps,
    where=["1 <= seq <= 64", "1 <= batch <= 8"],
    far={"seq": (1, 9, 10, 32, 63, 64)},
    unproved=True,
)
def crc_shift(self, x):
    shift = zlib.crc32(str(x.shape[1]).encode()) % 7
    return torch.roll(x, shift, 1) + shift


@model(
    "Python's hash of a text is another in every process: no file can be right", steps, true_refusal=True, unproved=True
)
def salted_hash(self, x):
    return x + (hash(f"{x.shape[1]}") % 1000003)


@model(
    "getattr by a name that ends in the size modulo three, with a default for rare sizes",
    steps,
    far={"seq": (3, 4, 5, 6, 31, 37, 62)},
)
class NamedHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.head_0 = nn.Linear(3, 2)
        self.head_1 = nn.Linear(3, 2)
        self.head_31 = nn.Linear(3, 2)
        self.fallback = nn.Linear(3, 2)

    def forward(self, x):
        n = x.shape[1]
        return getattr(self, f"head_{n}", getattr(self, f"head_{n % 3}", self.fallback))(x)


@model(
    "bisect over bucket bounds; at a bound itself the left and right bucket differ",
    steps,
    far={"seq": (7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 128, 129)},
)
class Bucketed(nn.Module):
    bounds = (8, 16, 32, 64, 128)

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(6, 3))

    def forward(self, x):
        left = bisect.bisect_left(self.bounds, x.shape[1])
        right = bisect.bisect(self.bounds, x.shape[1])
        return x * self.table[left] + self.table[right]


@model(
    "float32 cannot hold n/3 times 3: floor of a numpy float32 quotient",
    steps,
    far={"seq": (40, 41, 47, 55, 61, 82, 97, 123, 249)},
)
def numpy_float32_floor(self, x):
    n = x.shape[1]
    step = np.float32(1) / np.float32(n)
    back = int(np.floor(step * np.float32(n)))
    cents = int(n * 0.29 * 100) - 29 * n
    return x + back * 10 + cents * 5


@model(
    "a modular inverse that does not exist at multiples of 23, where ValueError is caught",
    steps,
    far={"seq": (22, 23, 24, 46, 69, 92)},
)
def modular_inverse(self, x):
    n = x.shape[1]
    try:
        inverse = pow(n, -1, 23)
    except ValueError:
        inverse = -1
    wrapped = ctypes.c_int8(n * n).value
    start, stop, stride = slice(-n, None, max(1, n // 7)).indices(11)
    return x * inverse + wrapped + x.new_tensor([start, stop, stride])


@model(
    "np.arange with a float step has one element more at some lengths",
    steps,
    far={"seq": (3, 6, 7, 12, 13, 29, 58, 60)},
)
def arange_float_stop(self, x):
    count = len(np.arange(0, x.shape[1] * 0.1, 0.1))
    return x + (count - x.shape[1]) * 10, torch.full((count,), 0.5)


@model(
    "two sizes compared as text, far away from each other: nothing in the arithmetic tells",
    steps,
    far={"seq": (96, 97, 98, 512, 1012, 1013, 1014)},
    points=({"batch": 3, "seq": 97}, {"batch": 97, "seq": 4}),
    unproved=True,
)
def rare_text(self, x):
    if f"{x.shape[1]}" in ("97", "1013"):
        return x.flip(-1)
    return x * (1.0 if "512" not in str(tuple(x.shape)) else -1.0)


@model(
    "small integers are one object, large ones are not: `is` between two sizes",
    pair,
    where=["1 <= a <= 512", "1 <= b <= 512"],
    far={"a": (5, 256), "b": (3, 256)},
    points=({"a": 7, "b": 7}, {"a": 256, "b": 256}, {"a": 257, "b": 257}, {"a": 300, "b": 300}),
    unproved=True,
)
def same_object(self, x, y):
    if x.shape[0] is y.shape[0]:
        return x.sum(0) + y.sum(0)
    return x.sum(0) - y.sum(0)


@model(
    "Counter of the shape: the most common size wins, ties go to the first",
    image,
    points=(
        {"batch": 3, "height": 3, "width": 5},
        {"batch": 5, "height": 5, "width": 5},
        {"batch": 4, "height": 7, "width": 7},
        {"batch": 7, "height": 4, "width": 7},
        {"batch": 1, "height": 1, "width": 1},
    ),
)
def most_common_size(self, x):
    (size, times), *_ = Counter(x.shape).most_common(1)
    return x * times + size


@model(
    "days in a month chosen by the length: calendar tables and leap years",
    steps,
    where=["1 <= seq <= 200"],
    far={"seq": (1, 2, 4, 12, 13, 100, 104, 200)},
    unproved=True,
)
def leap_year(self, x):
    year = 1900 + x.shape[1]
    return x * calendar.monthrange(year, 2)[1] + (1.0 if calendar.isleap(year) else 0.0)


@model(
    "gcd and lcm of two sizes; reshape by the gcd",
    image,
    far={"height": (4, 5, 12, 16), "width": (6, 9, 12, 35)},
    points=(
        {"height": 12, "width": 18},
        {"height": 15, "width": 35},
        {"height": 16, "width": 16},
        {"height": 7, "width": 49},
    ),
)
def gcd_tiles(self, x):
    b, c, h, w = x.shape
    g = math.gcd(h, w)
    tiles = x.reshape(b, c, h // g, g, w // g, g).amax((2, 4))
    return tiles + math.lcm(h, w) / (h * w)


class Size(int):
    def __mod__(self, other):
        return int(self) // other

    def __add__(self, other):
        return Size(int(self) - int(other))


@model("a subclass of int with other meanings of % and +", steps, far={"seq": (1, 4, 8, 9, 17, 40)})
def subclass_of_int(self, x):
    n = Size(x.shape[1])
    return x * (n % 4) + (n + 1)


@model(
    "an OrderedDict as an LRU of sizes with eviction: what it holds is decided within the call",
    steps,
    far={"seq": (3, 4, 5, 6, 7, 8, 9)},
    points=({"batch": 4, "seq": 4}, {"batch": 8, "seq": 4}, {"batch": 3, "seq": 8}),
)
def lru_inside(self, x):
    cache = OrderedDict()
    for n in (x.shape[1], x.shape[0], 3, x.shape[1] // 2, x.shape[0] + 1):
        if n in cache:
            cache.move_to_end(n)
        cache[n] = n * 2
        if len(cache) > 3:
            cache.popitem(last=False)
    ring = deque(cache.values(), maxlen=2)
    return x + sum(cache) * 0.5 + ring[0]
