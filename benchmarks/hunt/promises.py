"""Seventy-two models against what a contract promises: names, texts, inexact numbers, code without a file, tables, state.

Each theme has twelve. What a model does near its example says little about what it does at the places in `far`, `points` and
`rare`, or at a later call.
"""

# ruff: noqa: C408
from __future__ import annotations

import collections
import enum
import functools
import itertools
import json
import linecache
import marshal
import math
import random
import re
import string
import types
import weakref
import zlib
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from registry import Registry
from torch import fx, nn
from torch.export import Dim

model = Registry()


def flat(batch=3, seq=5):
    return (torch.randn(batch, seq),)


def steps(batch=3, seq=5):
    return (torch.randn(batch, seq, 4),)


def image(h=6, w=10):
    return (torch.randn(1, 3, h, w),)


UP_TO_900 = ["1 <= seq <= 900"]

# --- 1: names that reach no axis -------------------------------------------------------------------------------------
#
# Where a rule is of no use to the file, some models take another way at sizes that only this rule excludes: a file whose
# contract is wider than `where` answers wrongly there.

BATCH = Dim("batch")

with model.theme("1 names"):

    @model(
        "seq is a parameter with a range, and both axes have 5 as a number",
        lambda batch=3, seq=5: (torch.randn(batch, 5), torch.ones(batch, 5)),
        where=["1 <= seq <= 64"],
        far={"batch": (1, 7), "seq": (1, 6, 64)},
        true_refusal=True,
    )
    def name_without_axis(self, x, mask):
        return (x * mask).sum(1)

    @model(
        "past shifts positions and reaches no axis, but the rule bounds seq by it",
        lambda seq=5, past=2: dict(x=torch.randn(2, seq, 4), positions=torch.arange(seq) + past),
        where=["past >= 1", "past + seq <= 16"],
        far={"seq": (14, 15, 16, 17, 20), "past": (1, 10, 11)},
        true_refusal=True,
    )
    class NamePastOnlyShifts(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(16, 4)

        def forward(self, x, positions):
            added = self.table(positions.clamp(max=15))
            return x - added if x.shape[1] >= 16 else x + added

    @model(
        "one axis is seq, the other min(seq, 8): equal at the example, not from 9 on",
        lambda batch=3, seq=5: dict(recent=torch.randn(batch, min(seq, 8)), x=torch.randn(batch, seq)),
        where=["1 <= seq <= 64"],
        far={"seq": (1, 7, 8, 9, 20, 64)},
    )
    def name_clamped(self, recent, x):
        return x[:, -recent.shape[1] :] + recent

    @model(
        "a torch Dim with a range belongs to a mask that is None",
        lambda batch=3, seq=5: dict(x=torch.randn(batch, seq), mask=None),
        dynamic={"x": {0: BATCH}, "mask": {0: BATCH, 1: Dim("keys", min=1, max=64)}},
        far={"batch": (1, 2, 65)},
        true_refusal=True,
    )
    def name_of_none(self, x, mask=None):
        return x.softmax(1) if mask is None else x.masked_fill(mask == 0, -1e9).softmax(1)

    @model(
        "vocab bounds ids only; in the example an axis happens to have its size",
        lambda batch=3, vocab=8: dict(scores=torch.randn(batch, 8), ids=torch.randint(0, vocab, (batch,))),
        where=["1 <= vocab <= 8"],
        options={"values": {"ids": "0 <= ids < vocab"}},
        far={"batch": (1, 9, 300), "vocab": (1, 2, 7)},
    )
    def name_of_values(self, scores, ids):
        return scores.log_softmax(1).gather(1, ids[:, None])[:, 0]

    @model(
        "k is a Python number; it is a size of the answer and of no input",
        lambda batch=3, k=2: dict(x=torch.randn(batch, 8), k=k),
        where=["1 <= k <= 8"],
        far={"k": (1, 3, 7, 8)},
        points=[dict(batch=1, k=8), dict(batch=7, k=1)],
    )
    def name_of_number(self, x, k: int):
        return x.topk(k, dim=1).values

    @model(
        "the axis is max(seq, 16): it does not move near the example",
        lambda batch=3, seq=5: (torch.randn(batch, max(seq, 16)),),
        where=["1 <= seq <= 64"],
        far={"seq": (1, 15, 16, 17, 18, 40, 64)},
    )
    def name_padded_up(self, x):
        return x.cumsum(1) if x.shape[1] > 16 else x.flip(1)

    @model(
        "heads reaches nothing, and its rule lets width be a divisor of 64 only",
        lambda seq=5, width=16, heads=4: (torch.randn(2, seq, width),),
        where=["heads * width == 64"],
        points=[dict(width=8, heads=8), dict(width=32, heads=2), dict(width=64, heads=1)],
        far={"width": (5, 15, 17, 24)},
    )
    def name_of_heads(self, x):
        width = x.shape[2]
        return x.flip(2) if 64 % width else x * (64 // width)

    @model(
        "w reaches nothing, but w == h, and only w has a range",
        lambda h=6, w=6: (torch.randn(1, 3, h, h),),
        where=["w == h", "1 <= w <= 8"],
        points=[dict(h=7, w=7), dict(h=8, w=8), dict(h=1, w=1)],
        far={"h": (9, 12, 40)},
    )
    def name_of_square(self, x):
        return x.tril() if x.shape[2] > 8 else x.triu()

    @model(
        "layers is the number of tensors in a list, not a size",
        lambda batch=3, layers=2: dict(x=torch.randn(batch, 4), past=[torch.randn(batch, 4) for _ in range(layers)]),
        where=["1 <= layers <= 4"],
        far={"layers": (1, 3, 4), "batch": (1, 8)},
        true_refusal=True,
    )
    def name_of_list(self, x, past):
        for layer in past:
            x = torch.tanh(x + layer)
        return x

    @model(
        "spare is an axis of an input that forward does not read; a rule bounds seq by it",
        lambda seq=5, spare=3: dict(x=torch.randn(2, seq), workspace=torch.zeros(spare)),
        where=["seq + spare <= 20"],
        far={"seq": (16, 17, 18, 19, 20, 25), "spare": (1, 15)},
        points=[dict(seq=19, spare=1), dict(seq=1, spare=19)],
    )
    def name_of_unused_input(self, x, workspace):
        return x.flip(1) if x.shape[1] > 19 else x.cumsum(1)

    @model(
        "the words say seq, the rule says sequence",
        lambda batch=3, seq=5, sequence=5: (torch.randn(batch, seq),),
        dynamic={"x": "batch seq"},
        where=["1 <= sequence <= 64"],
        far={"seq": (64, 65, 100)},
        true_refusal=True,
    )
    def name_of_another_rule(self, x):
        return x.flip(1) if x.shape[1] > 64 else x


# --- 2: texts of sizes, beyond some size only ------------------------------------------------------------------------

TUNED = json.loads('{"288": [1.5, 0.0], "352": [0.5, 1.0], "1152": [2.0, -1.0]}')
BUCKETS = {"3e+02": "cumsum", "7e+02": "flip", "1e+03": "tanh"}
GRID = {(288, 384): 2, (384, 288): 3, (224, 224): 5}
TWICE_THE_SAME = re.compile(r"(\d)\1\d+")

with model.theme("2 far texts"):

    @model(
        "beyond 256 the digits 77 decide",
        flat,
        where=UP_TO_900,
        far={"seq": (177, 256, 257, 276, 277, 278, 377, 770, 777, 779, 780, 877)},
        unproved=True,
    )
    def text_contains(self, x):
        n = x.shape[1]
        if n > 256:
            return x * 2 if "77" in str(n) else x.cumsum(1)
        return x

    @model(
        "large inputs have a head of their own by name, where one was trained",
        flat,
        far={"seq": (199, 200, 201, 223, 224, 225, 256, 384, 512, 513)},
        unproved=True,
    )
    class TextHeadByName(nn.Module):
        def __init__(self):
            super().__init__()
            self.usual = nn.Linear(1, 2)
            self.heads = nn.ModuleDict({f"s{n}": nn.Linear(1, 2) for n in (224, 256, 384, 512)})

        def forward(self, x):
            n = x.shape[-1]
            head = self.usual
            if n > 200 and f"s{n}" in self.heads:
                head = self.heads[f"s{n}"]
            return head(x.mean(-1, keepdim=True))

    @model(
        "a configuration from JSON has texts as keys; small sizes do not look into it",
        flat,
        where=["1 <= seq <= 1200"],
        far={"seq": (255, 287, 288, 289, 351, 352, 353, 1151, 1152, 1153)},
        unproved=True,
    )
    class TextTuned(nn.Module):
        def __init__(self):
            super().__init__()
            self.tuned = TUNED

        def forward(self, x):
            if x.shape[1] < 256:
                return x
            scale, shift = self.tuned.get(str(x.shape[1]), (1.0, 0.0))
            return x * scale + shift

    @model(
        "the printed shape is compared beyond 256",
        flat,
        where=["batch <= 16", "1 <= seq <= 700"],
        far={"seq": (212, 256, 312, 412, 512, 612, 613)},
        points=[dict(batch=1, seq=312), dict(batch=12, seq=412), dict(batch=12, seq=300)],
        unproved=True,
    )
    def text_of_shape(self, x):
        if x.shape[1] > 256 and repr(tuple(x.shape)).endswith("12)"):
            return x.flip(1)
        return x

    @model(
        "the temperature follows the number of digits, from 100 on",
        flat,
        far={"seq": (9, 10, 99, 100, 101, 999, 1000, 1001, 1999)},
        unproved=True,
    )
    def text_number_of_digits(self, x):
        n = x.shape[1]
        temperature = 1.0 if n < 100 else float(len(str(n)))
        return torch.softmax(x / temperature, 1) * n

    @model(
        "palindromes above 200 are read backwards",
        flat,
        where=UP_TO_900,
        far={"seq": (191, 200, 202, 203, 212, 303, 393, 555, 556, 898)},
        unproved=True,
    )
    def text_palindrome(self, x):
        n = x.shape[1]
        return x.flip(1) if n > 200 and str(n)[::-1] == str(n) else x + 1

    @model(
        "the last digit is a shift, but only of long sequences",
        steps,
        where=["1 <= seq <= 500"],
        far={"seq": (250, 256, 257, 259, 260, 261, 300, 333, 499, 500)},
        unproved=True,
    )
    def text_last_digit(self, x):
        n = x.shape[1]
        shift = int(str(n)[-1]) if n >= 257 else 0
        return x.roll(shift, 1)

    @model(
        "a pattern of digits, compiled once, matched beyond 300",
        flat,
        where=UP_TO_900,
        far={"seq": (110, 300, 330, 331, 339, 340, 445, 559, 560, 887)},
        unproved=True,
    )
    def text_pattern(self, x):
        n = x.shape[1]
        if n <= 300 or TWICE_THE_SAME.fullmatch(str(n)) is None:
            return x.cumsum(1)
        return x.cummax(1).values

    @model(
        "hexadecimal: pages that end with ff are skipped from 256 on",
        flat,
        where=["1 <= seq <= 1100"],
        far={"seq": (127, 255, 256, 510, 511, 512, 767, 768, 1023, 1024)},
        unproved=True,
    )
    def text_hexadecimal(self, x):
        n = x.shape[1]
        if n >= 256 and hex(n).endswith("ff"):
            return x[:, 1:].sum(1)
        return x.sum(1)

    @model(
        "pairs of large sizes choose how often an image is smoothed",
        image,
        where=["3 <= h <= 400", "3 <= w <= 400"],
        points=[dict(h=288, w=384), dict(h=384, w=288), dict(h=224, w=224), dict(h=288, w=383), dict(h=224, w=225)],
        far={"h": (224, 288, 400), "w": (224, 384)},
        unproved=True,
    )
    def text_grid(self, x):
        h, w = x.shape[2:]
        times = GRID.get((h, w), 1) if h > 200 and w > 200 else 1
        for _ in range(times):
            x = F.avg_pool2d(x, 3, 1, 1)
        return x

    @model(
        "buckets of tuning by one significant digit: 3e+02 begins at 250 or 251",
        flat,
        where=["1 <= seq <= 1499"],
        far={"seq": (249, 250, 251, 349, 350, 351, 649, 650, 651, 749, 750, 949, 950, 951, 1499)},
        unproved=True,
    )
    def text_buckets(self, x):
        way = BUCKETS.get(f"{x.shape[1]:.0e}", "none")
        if way == "cumsum":
            return x.cumsum(1)
        if way == "flip":
            return x.flip(1)
        return torch.tanh(x) if way == "tanh" else x

    @model(
        "one of eight experts by a checksum of the size, the first one below 300",
        flat,
        where=["1 <= seq <= 400"],
        far={"seq": (299, 300, 301, 302, 303, 350, 399, 400)},
        unproved=True,
    )
    class TextChecksum(nn.Module):
        def __init__(self):
            super().__init__()
            self.experts = nn.ModuleList([nn.Linear(1, 3) for _ in range(8)])

        def forward(self, x):
            n = x.shape[1]
            chosen = zlib.crc32(str(n).encode()) % 8 if n >= 300 else 0
            return self.experts[chosen](x.mean(1, keepdim=True))


# --- 3: arithmetic on sizes that is not exact ------------------------------------------------------------------------

with model.theme("3 inexact numbers"):

    @model(
        "levels of a tree of seven, by float32 logarithms: powers of seven are on the edge",
        flat,
        where=["1 <= seq <= 2500"],
        far={"seq": (1, 7, 8, 48, 49, 50, 342, 343, 344, 2400, 2401, 2402)},
        unproved=True,
    )
    def number_tree_levels(self, x):
        n = x.shape[1]
        levels = torch.ceil(torch.log(torch.tensor(float(n))) / math.log(7)).int().item()
        for _ in range(levels):
            x = torch.tanh(x + 1)
        return x

    @model(
        "the largest square that fits, by a power of one half",
        flat,
        far={"seq": (1, 3, 4, 8, 9, 255, 256, 288, 289, 528, 529, 1088, 1089)},
        unproved=True,
    )
    def number_square_part(self, x):
        side = int(x.shape[1] ** 0.5)
        return x[:, : side * side].reshape(-1, side, side).transpose(1, 2)

    @model(
        "a tenth is kept, rounded half to even as 0.1 has it",
        flat,
        where=UP_TO_900,
        far={"seq": (5, 14, 15, 16, 24, 25, 26, 35, 45, 105, 115, 255, 345, 615, 845)},
        unproved=True,
    )
    def number_tenth(self, x):
        kept = max(1, round(x.shape[1] * 0.1))
        return x.sort(1, descending=True).values[:, :kept]

    @model(
        "padding to a power of two, left out where log2 is whole",
        flat,
        far={"seq": (1, 2, 4, 8, 9, 127, 128, 129, 511, 512, 513, 1024, 1025)},
        unproved=True,
    )
    def number_power_of_two(self, x):
        n = x.shape[1]
        if not math.log2(n).is_integer():
            x = F.pad(x, (0, 2 ** math.ceil(math.log2(n)) - n))
        return x.flip(1)

    @model(
        "divided by 31 and multiplied again: another number at eleven sizes, the first one is 249",
        flat,
        where=UP_TO_900,
        far={"seq": [n for n in range(1, 901) if n / 31 * 31 != n]},
        unproved=True,
    )
    def number_round_trip(self, x):
        n = x.shape[1]
        return x.flip(1) if n / 31 * 31 == n else x.cumsum(1)

    @model(
        "phase of a hop of 0.1 s in a period of 0.3 s, by fmod",
        flat,
        where=["1 <= seq <= 600"],
        far={"seq": (1, 2, 3, 6, 78, 81, 84, 162, 177, 255, 324, 339, 354, 369, 600)},
        unproved=True,
    )
    def number_phase(self, x):
        phase = math.fmod(x.shape[1] * 0.1, 0.3)
        return x * 2 if phase < 0.05 else x.cumsum(1) if phase < 0.15 else x.flip(1)

    @model(
        "a length in sevenths goes through a float32 tensor and is cut",
        lambda batch=3, seq=9: (torch.randn(batch, seq),),
        where=["7 <= seq <= 900"],
        far={"seq": [n for n in range(7, 901) if int(torch.tensor(n / 7.0).item() * 7) != n][:18]},
        unproved=True,
    )
    class NumberSevenths(nn.Module):
        def forward(self, x):
            rate = torch.tensor(x.shape[1] / 7.0)
            return x[:, : int(rate.item() * 7)].mean(1)

    @model(
        "groups by the greatest common divisor with 360",
        flat,
        far={"seq": (1, 7, 8, 9, 12, 64, 90, 120, 180, 255, 256, 270, 360, 361, 720)},
        unproved=True,
    )
    def number_common_divisor(self, x):
        batch, n = x.shape
        groups = math.gcd(n, 360)
        return x.view(batch, groups, n // groups).mean(2).sum(1) * (math.lcm(n, 12) // n)

    @model(
        "logarithm of the volume of a ball: gamma as long as it does not overflow, then an estimate",
        flat,
        where=UP_TO_900,
        far={"seq": (1, 2, 149, 150, 298, 299, 300, 301, 340, 341, 342, 600, 900)},
        unproved=True,
    )
    def number_ball(self, x):
        z = x.shape[1] / 2
        gamma = math.log(math.gamma(z + 1)) if z < 150 else z * math.log(z) - z
        return x.norm(dim=1) + (z * math.log(math.pi) - gamma)

    @model(
        "sizes in a range of steps of 33 get a sign by a power of -1",
        flat,
        where=["1 <= seq <= 2003"],
        far={"seq": (10, 11, 43, 44, 76, 109, 274, 307, 340, 1000, 1033, 1990, 1991, 2000, 2003)},
        unproved=True,
    )
    def number_in_range(self, x):
        n = x.shape[1]
        return x * (-1) ** n + 1 if n in range(10, 2000, 33) else x

    @model(
        "float16 has no odd numbers above 2048, and a length is kept in it",
        lambda seq=9: (torch.randn(1, seq),),
        where=["4 <= seq <= 5000"],
        far={"seq": (4, 2047, 2048, 2049, 2050, 2051, 2053, 3001, 4095, 4097, 4098, 4999)},
        unproved=True,
    )
    def number_float16(self, x):
        length = torch.tensor(x.shape[1], dtype=torch.float16)
        return x[:, : int(length.item()) - 3].sum(1)

    @model(
        "rows of a packed triangle, by an integer square root; what is left over is added",
        flat,
        far={"seq": (1, 2, 3, 6, 10, 15, 16, 253, 254, 275, 276, 277, 300, 301, 1035)},
        unproved=True,
    )
    def number_triangle(self, x):
        n = x.shape[1]
        rows = (math.isqrt(8 * n + 1) - 1) // 2
        packed = rows * (rows + 1) // 2
        return x[:, packed - rows : packed] + x[:, packed:].sum(1, keepdim=True)


# --- 4: code without a file ------------------------------------------------------------------------------------------


def compiled(text: str, filename: str, **known: Any) -> dict[str, Any]:
    """What a text defines; its code says that it is from `filename`."""
    space = {"torch": torch, "nn": nn, "F": F, **known}
    exec(compile(dedent(text), filename, "exec"), space)
    return space


FROM_STRING = compiled(
    """
    def code_of_string(self, x):
        n = x.shape[1]
        return x * 2 if int(n) == 777 else x
    """,
    "<string>",
)

FROM_STDIN = compiled(
    """
    class CodeOfStdin(nn.Module):
        def __init__(self):
            super().__init__()
            self.short, self.long = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x):
            if 600 < x.shape[1] <= 640:
                return self.long(x).repeat(1, 1, 2)
            return self.short(x)
    """,
    "<stdin>",
    __name__="__main__",
)

FROM_CELL = compiled(
    """
    LIMIT = 512

    def crop(x):
        return x[:, -LIMIT:]

    def code_of_cell(self, x):
        return crop(x).mean(1)
    """,
    "<ipython-input-3-5f2c1e9d8a47>",
    __name__="__main__",
)

FROM_KERNEL = compiled(
    """
    def warp(x):
        rows, columns = x.shape
        if rows * columns == 1203:
            return x.flip(1)
        return x
    """,
    "/tmp/ipykernel_123/456.py",
)

RULES = {
    name: eval(f"lambda n: {text}") for name, text in {"skip": "n % 101 == 100", "turn": "n in (451, 902)"}.items()
}

SCHEDULE = ((300, 0.5), (450, -1.0), (700, 2.0))
TEMPLATE = string.Template("    if n >= $low:\n        x = (x * $scale).cumsum(1)\n")
FROM_TEMPLATE = compiled(
    "def code_of_template(self, x):\n    n = x.shape[1]\n"
    + "".join(TEMPLATE.substitute(low=low, scale=scale) for low, scale in SCHEDULE)
    + "    return x\n",
    "<template>",
)

GENERATED = """
def code_with_text_in_memory(self, x):
    n = x.shape[1]
    even = n - n % 2
    if even // 2 == 311:
        return x[:, :even:2]
    return x[:, 1 : even + 1 : 2] if even < n else x[:, :even:2] * 2
"""
linecache.cache["<generated forward 7>"] = (
    len(GENERATED),
    None,
    GENERATED.splitlines(keepends=True),
    "<generated forward 7>",
)

DELETED = """
def code_of_deleted_file(self, x):
    n = x.size(1)
    for limit, shift in ((523, 1), (641, 2)):
        if n == limit:
            return x.roll(shift, 1)
    return x
"""


def unmarshalled() -> Any:
    """A function from bytecode alone, as from a `.pyc` whose source was deleted."""
    code = compile(DELETED, "/srv/build/removed/model.py", "exec")
    space: dict[str, Any] = {"torch": torch}
    exec(marshal.loads(marshal.dumps(code)), space)
    return space["code_of_deleted_file"]


def with_another_constant() -> Any:
    """A function whose bytecode compares with 707, and whose text says 300."""

    def code_with_another_constant(self, x):
        return x.flip(1) if x.shape[1] == 300 else x + 1

    code = code_with_another_constant.__code__
    constants = tuple(707 if one == 300 else one for one in code.co_consts)
    code = code.replace(co_consts=constants, co_filename="<patched>")
    return types.FunctionType(code, globals(), "code_with_another_constant")


@dataclass(frozen=True, order=True)
class Size:
    """Its comparisons are made by `dataclass` from a text."""

    rows: int
    columns: int


with model.theme("4 no file"):
    model("one length of 777, in a function by exec", flat, far={"seq": (255, 776, 777, 778)}, unproved=True)(
        FROM_STRING["code_of_string"]
    )

    model(
        "a class typed into python - has another layer from 601 to 640",
        steps,
        where=UP_TO_900,
        far={"seq": (599, 600, 601, 620, 640, 641)},
    )(FROM_STDIN["CodeOfStdin"])

    model("a cell of a notebook crops to a global of that cell", flat, far={"seq": (511, 512, 513, 514, 700)})(
        FROM_CELL["code_of_cell"]
    )

    @model(
        "a function of another cell is called by forward: one number of elements is special",
        flat,
        points=[dict(batch=3, seq=401), dict(batch=1, seq=1203), dict(batch=401, seq=3), dict(batch=3, seq=400)],
        unproved=True,
    )
    class CodeOfKernel(nn.Module):
        def __init__(self):
            super().__init__()
            self.warp = FROM_KERNEL["warp"]

        def forward(self, x):
            return self.warp(x) * 3

    @model(
        "rules of a configuration are lambdas made by eval",
        flat,
        where=["1 <= seq <= 1000"],
        far={"seq": (99, 100, 101, 201, 302, 303, 450, 451, 452, 902, 908, 909)},
        unproved=True,
    )
    def code_of_rules(self, x):
        n = x.shape[1]
        if RULES["skip"](n):
            return x * 0
        return x.flip(1) if RULES["turn"](n) else x

    model(
        "the text of a comparison says 300, its bytecode 707",
        flat,
        where=UP_TO_900,
        far={"seq": (299, 300, 301, 706, 707, 708)},
        unproved=True,
    )(with_another_constant())

    @model(
        "sizes are compared by methods that dataclass writes",
        flat,
        where=["1 <= batch <= 64", "1 <= seq <= 700"],
        points=[dict(batch=3, seq=451), dict(batch=40, seq=7), dict(batch=40, seq=6), dict(batch=41, seq=1)],
        far={"seq": (450, 451, 452)},
        unproved=True,
    )
    def code_of_dataclass(self, x):
        size = Size(*x.shape)
        if size == Size(3, 451):
            return x.flip(1)
        return x.cumsum(1) if size >= Size(40, 7) else x

    @model(
        "the median of three numbers tells whether a size is within the limits of a named tuple",
        flat,
        where=UP_TO_900,
        far={"seq": (299, 300, 301, 400, 619, 620, 621, 800)},
        unproved=True,
    )
    class CodeOfNamedTuple(nn.Module):
        def __init__(self):
            super().__init__()
            self.limits = collections.namedtuple("Limits", "low high")(low=300, high=620)

        def forward(self, x):
            n = x.shape[1]
            within = sorted((*self.limits, n))[1] == n
            return torch.sigmoid(x) if within else torch.tanh(x)

    class Doubled(nn.Module):
        """Traced by fx: the comparison is a node, and its code is a text under <eval_with_key>."""

        def forward(self, x):
            n = x.shape[1]
            return x * (1 + (n == 777)) + n // 500

    @model(
        "code written by torch.fx adds a comparison to a number",
        flat,
        where=UP_TO_900,
        far={"seq": (499, 500, 501, 776, 777, 778)},
        unproved=True,
    )
    class CodeOfGraphModule(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = fx.symbolic_trace(Doubled())

        def forward(self, x):
            return self.body(x)

    model(
        "a forward from a template has one condition for each row of a schedule",
        flat,
        where=UP_TO_900,
        far={"seq": (299, 300, 301, 449, 450, 451, 699, 700, 701)},
    )(FROM_TEMPLATE["code_of_template"])

    model(
        "the text is in linecache alone, as attrs has it; pairs are counted, one count is special",
        flat,
        where=["2 <= seq <= 900"],
        far={"seq": (2, 3, 255, 620, 621, 622, 623, 624)},
        unproved=True,
    )(compiled(GENERATED, "<generated forward 7>")["code_with_text_in_memory"])

    model(
        "bytecode alone, under the name of a file that was deleted",
        flat,
        far={"seq": (255, 522, 523, 524, 640, 641, 642)},
        unproved=True,
    )(unmarshalled())


# --- 5: tables with sizes as keys ------------------------------------------------------------------------------------


class Nearest(dict):
    """A missing key gives what the next smaller one has."""

    def __missing__(self, key: int) -> float:
        return self[max(one for one in self if one < key)]


class Bands:
    """Numbers within any of a few bands; nothing but `in` asks it."""

    def __init__(self, *bands: tuple[int, int]) -> None:
        self.bands = bands

    def __contains__(self, n: int) -> bool:
        return any(low <= n <= high for low, high in self.bands)


class Resolution(enum.IntEnum):
    SMALL = 224
    MEDIUM = 336
    LARGE = 518


class Kernel:
    """What a table refers to weakly."""

    def __init__(self, flips: bool) -> None:
        self.flips = flips


@functools.lru_cache(maxsize=64)
def cached_factor(rows: int, columns: int) -> float:
    """A pure function of two sizes."""
    return 3.0 if (rows, columns) in ((2, 611), (7, 300), (31, 31)) else 1.0


PROFILES = np.array(
    [(48, 0.5, 1), (160, 2.0, 2), (333, -1.0, 3)], dtype=[("size", "i8"), ("scale", "f4"), ("shift", "i4")]
)
TIERS = (128, 256, 384, 640)
PAIRS = frozenset({(2, 300), (7, 64), (16, 16), (31, 3)})
PAIR_POINTS = tuple(dict(batch=b, seq=n) for b, n in [(2, 300), (7, 64), (16, 16), (31, 3), (3, 31), (16, 17)])
RESOLUTIONS = tuple(dict(h=h, w=w) for h, w in [(14, 14), (24, 40), (40, 24), (32, 32), (24, 24), (14, 40)])

with model.theme("5 containers"):

    @model(
        "a bias for each resolution that was trained, in a ParameterDict",
        image,
        points=RESOLUTIONS,
        unproved=True,
    )
    class TableOfParameters(nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = nn.ParameterDict({f"{h}x{w}": torch.randn(3, 1, 1) for h, w in [(14, 14), (24, 40), (32, 32)]})

        def forward(self, x):
            key = f"{x.shape[2]}x{x.shape[3]}"
            return x + self.bias[key] if key in self.bias else x

    @model(
        "buffers by name: bias_24_40, and none elsewhere",
        image,
        where=["h <= 100", "w <= 100"],
        points=RESOLUTIONS,
        unproved=True,
    )
    class TableOfAttributes(nn.Module):
        def __init__(self):
            super().__init__()
            for h, w in [(24, 40), (40, 24), (14, 14)]:
                self.register_buffer(f"bias_{h}_{w}", torch.randn(h, w))

        def forward(self, x):
            h, w = x.shape[-2:]
            bias = getattr(self, f"bias_{h}_{w}", None)
            return x if bias is None else x * bias

    @model("pairs of sizes in a frozen set", flat, points=PAIR_POINTS, unproved=True)
    def table_of_pairs(self, x):
        return x.flip(0) if tuple(x.shape) in PAIRS else x.cumsum(0)

    @model(
        "a defaultdict of sizes, which keeps each size that is asked",
        flat,
        where=["1 <= seq <= 1024"],
        far={"seq": (447, 448, 449, 895, 896, 897, 1024)},
        unproved=True,
    )
    class TableWithDefault(nn.Module):
        def __init__(self):
            super().__init__()
            self.ways = collections.defaultdict(lambda: torch.tanh, {448: torch.sigmoid, 896: torch.relu})

        def forward(self, x):
            return self.ways[x.shape[1]](x)

    @model(
        "overrides before defaults in a ChainMap",
        flat,
        where=UP_TO_900,
        far={"seq": (63, 64, 65, 287, 288, 289, 575, 576, 577)},
        unproved=True,
    )
    class TableChained(nn.Module):
        def __init__(self):
            super().__init__()
            defaults = collections.OrderedDict([(64, "mean"), (288, "mean"), (576, "last")])
            self.pooling = collections.ChainMap({288: "first"}, defaults)

        def forward(self, x):
            way = self.pooling.get(x.shape[1], "sum")
            return {"mean": x.mean(1), "last": x[:, -1], "first": x[:, 0], "sum": x.sum(1)}[way]

    @model(
        "a dictionary whose missing keys fall back to the next smaller one",
        flat,
        where=["2 <= seq <= 800"],
        far={"seq": (2, 31, 32, 33, 255, 256, 257, 599, 600, 601)},
        unproved=True,
    )
    class TableOfNearest(nn.Module):
        def __init__(self):
            super().__init__()
            self.scales = Nearest({1: 1.0, 32: 0.5, 256: 0.25, 257: 4.0, 600: 2.0})

        def forward(self, x):
            return x * self.scales[x.shape[1]]

    @model(
        "a function of two sizes behind lru_cache",
        flat,
        points=[
            dict(batch=2, seq=611),
            dict(batch=7, seq=300),
            dict(batch=31, seq=31),
            dict(batch=3, seq=611),
            dict(batch=2, seq=31),
        ],
        unproved=True,
    )
    def table_cached(self, x):
        return x * cached_factor(x.shape[0], x.shape[1])

    @model(
        "rows of a structured table of numpy, selected by a size",
        flat,
        where=UP_TO_900,
        far={"seq": (47, 48, 49, 159, 160, 161, 332, 333, 334)},
        unproved=True,
    )
    class TableOfNumpy(nn.Module):
        def forward(self, x):
            rows = PROFILES[PROFILES["size"] == x.shape[1]]
            if len(rows) == 0:
                return x
            return x.roll(int(rows["shift"][0]), 1) * float(rows["scale"][0])

    @model(
        "kernels by size in a dictionary of weak references, whose owner is a list",
        flat,
        far={"seq": (95, 96, 97, 383, 384, 385)},
        unproved=True,
    )
    class TableOfWeakReferences(nn.Module):
        def __init__(self):
            super().__init__()
            self.owned = [Kernel(flips=True), Kernel(flips=False)]
            self.kernels = weakref.WeakValueDictionary({96: self.owned[0], 384: self.owned[1]})

        def forward(self, x):
            kernel = self.kernels.get(x.shape[1])
            if kernel is None:
                return x
            return x.flip(1) if kernel.flips else x.neg()

    @model(
        "attributes of the class and of a namespace, asked by name",
        flat,
        where=["1 <= batch <= 64", "1 <= seq <= 600"],
        points=[dict(batch=48, seq=5), dict(batch=48, seq=420), dict(batch=3, seq=420), dict(batch=47, seq=421)],
        unproved=True,
    )
    class TableOfClassAttributes(nn.Module):
        rows_48 = 2.0

        def __init__(self):
            super().__init__()
            self.config = types.SimpleNamespace(columns_5=1.0, columns_420=-3.0)

        def forward(self, x):
            rows, columns = x.shape
            if hasattr(type(self), f"rows_{rows}"):
                x = x.cumsum(1) * getattr(self, f"rows_{rows}")
            return x + vars(self.config).get(f"columns_{columns}", 1.0)

    @model(
        "bands of a class of its own are asked by in, and tiers of a tuple by index",
        flat,
        where=UP_TO_900,
        far={"seq": (127, 128, 256, 299, 300, 307, 308, 384, 509, 510, 511, 640)},
        unproved=True,
    )
    class TableOfBands(nn.Module):
        def __init__(self):
            super().__init__()
            self.bands = Bands((300, 307), (510, 510))

        def forward(self, x):
            n = x.shape[1]
            if n in TIERS:
                return x.roll(TIERS.index(n) + 1, 1)
            return x.neg() if n in self.bands else x

    @model(
        "members of an enumeration by value; no member is a ValueError that is caught",
        image,
        points=[dict(h=224, w=224), dict(h=336, w=336), dict(h=518, w=518), dict(h=224, w=336), dict(h=225, w=225)],
        far={"h": (224, 336, 518)},
        unproved=True,
    )
    def table_of_enumeration(self, x):
        try:
            resolution = Resolution(x.shape[2])
        except ValueError:
            return x.mean((2, 3))
        return x.amax((2, 3)) if resolution is Resolution.SMALL else x[:, :, 0, 0]


# --- 6: state that changes by value, or after some calls -------------------------------------------------------------


def louder(batch=3, seq=5):
    """Numbers up to 3 near the example, up to 30 from a length of 40 on: calls in a row come to loud ones, and then back."""
    x = torch.randn(batch, seq, 4).clamp(-3, 3)
    return (x * 10 if seq >= 40 else x,)


def loud(batch=3, seq=5):
    return (torch.randn(batch, seq, 4) * 100,)


def one_peak(batch=3, seq=5):
    x = torch.randn(batch, seq, 4).clamp(-3, 3)
    x[-1, -1, 2] = 40.0
    return (x,)


LOUD = {"seq": (64, 7, 50)}
RARE = {"loud": loud, "one peak": one_peak}


def remember(scale: float, seen: list[float] = []) -> int:  # noqa: B006
    """How often it was called: the default argument is one list for all calls."""
    seen.append(scale)
    return len(seen)


def _forget() -> None:
    remember.__defaults__[0].clear()


def counter(limit: int) -> Any:
    """A function that says whether it was called more than `limit` times."""
    calls = 0

    def is_late() -> bool:
        nonlocal calls
        calls += 1
        return calls > limit

    return is_late


class StateInClass(nn.Module):
    """A counter of the class: modules that are made later see it, too."""

    calls = 0

    def forward(self, x):
        type(self).calls += 1
        return x if type(self).calls <= 3 else x / type(self).calls


def _reset_class() -> None:
    StateInClass.calls = 0


with model.theme("6 state by value"):

    @model("a running maximum begins at 20, above all usual values", louder, far=LOUD, rare=RARE, true_refusal=True)
    class StateMaximum(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("amax", torch.tensor(20.0))

        def forward(self, x):
            self.amax = torch.maximum(self.amax, x.abs().max())
            return (x / self.amax * 127).round() / 127

    @model("a default argument is a list, and counts from the fourth call", steps, reset=_forget, true_refusal=True)
    def state_in_default(self, x):
        calls = remember(1.0)
        return x * (1 + 0.1 * max(0, calls - 3))

    @model("a nonlocal variable changes the activation after four calls", steps, true_refusal=True)
    class StateNonlocal(nn.Module):
        def __init__(self):
            super().__init__()
            self.is_late = counter(4)

        def forward(self, x):
            return torch.relu(x) if self.is_late() else torch.tanh(x)

    model(
        "an attribute of the class is a counter that acts after three calls",
        steps,
        reset=_reset_class,
        true_refusal=True,
    )(StateInClass)

    @model("a loud call swaps the layers for the next one", louder, far=LOUD, rare=RARE, true_refusal=True)
    class StateToggle(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
            self.k = 0

        def forward(self, x):
            answer = self.layers[self.k](x)
            if x.abs().max() > 5:
                self.k = 1 - self.k
            return answer

    @model("outliers only move the running mean", louder, far=LOUD, rare=RARE, true_refusal=True)
    class StateMeanOfOutliers(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x):
            flat_x = x.reshape(-1, 4)
            is_outlier = (flat_x.abs() > 5).any(1, keepdim=True)
            sums = (flat_x * is_outlier).sum(0)
            rate = 0.1 * is_outlier.any()
            self.mean.mul_(1 - rate).add_(rate * sums / is_outlier.sum().clamp(min=1))
            return x - self.mean

    @model(
        "what was computed for a batch size is kept for all later calls of that size",
        steps,
        far={"seq": (9, 2, 64)},
        true_refusal=True,
    )
    class StateCacheByBatch(nn.Module):
        def __init__(self):
            super().__init__()
            self.scales: dict[int, torch.Tensor] = {}

        def forward(self, x):
            if x.shape[0] not in self.scales:
                self.scales[x.shape[0]] = x.abs().amax((1, 2), keepdim=True)
            return x / self.scales[x.shape[0]]

    @model("the first call calibrates, later ones do not", louder, far=LOUD, rare=RARE, true_refusal=True)
    class StateCalibration(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = None

        def forward(self, x):
            if self.scale is None:
                self.scale = x.abs().mean().clamp(min=1e-3)
            return torch.tanh(x / self.scale)

    @model("a schedule is an iterator: four calls of warm-up, then half", steps, true_refusal=True)
    class StateSchedule(nn.Module):
        def __init__(self):
            super().__init__()
            self.rates = itertools.chain([1.0] * 4, itertools.repeat(0.5))

        def forward(self, x):
            return x * next(self.rates)

    @model("a channel that was once above 5 stays dead", louder, far=LOUD, rare=RARE, true_refusal=True)
    class StateDeadChannels(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("alive", torch.ones(4))

        def forward(self, x):
            answer = x * self.alive
            self.alive[(x.abs() > 5).any(1).any(0)] = 0.0
            return answer

    @model("a seeded generator of the module's own skips a layer at some calls", steps, true_refusal=True)
    class StateSeededGenerator(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.draws = random.Random(11)  # 0.45, 0.56, 0.92, 0.47, 0.51, 0.59, 0.18, …

        def forward(self, x):
            return x if self.draws.random() < 0.5 else x + self.layer(x)

    @model("a cache by address that never changes an answer: a file is right without it", louder, far=LOUD, rare=RARE)
    class StateCacheByAddress(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.cache: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

        def forward(self, x):
            known = self.cache.get(x.data_ptr())
            if known is not None and known[0] is x:
                return known[1]
            answer = self.layer(x)
            self.cache = {x.data_ptr(): (x, answer)}
            return answer
