"""Six causes of files that are kept and wrong: neighbours of the causes of issue 37, six each."""

from __future__ import annotations

import bisect
import enum
import math
import re
import textwrap
import types
from array import array
from collections import ChainMap
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("cause1")


def steps(batch=2, seq=5):
    return (torch.randn(batch, seq, 3),)


def image(batch=2, height=6, width=9):
    return (torch.randn(batch, 2, height, width),)


# ------------------------------------------------------------- cause 1: a declared dim that reaches no axis, or not as it is


def with_ignored_past(batch=2, seq=5, past=3):
    return dict(x=torch.randn(batch, seq, 4), past_keys=torch.randn(batch, past, 4))


@model(
    "past is an axis of an input that the module never reads; past + seq <= 16 binds seq all the same",
    with_ignored_past,
    where=["past + seq <= 16"],
    far={"seq": (1, 2, 12, 13), "past": (1, 2, 11), "batch": (1, 7, 33)},
    points=({"seq": 15, "past": 1}, {"seq": 1, "past": 15}),
)
class IgnoresThePast(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(16, 4))

    def forward(self, x, past_keys=None):
        return x * self.table[: x.shape[1]].sigmoid() + x.mean(1, keepdim=True)


@model(
    "keep reaches a Python number, never an axis of an input: how many of the best to give back",
    lambda batch=2, seq=9, keep=3: dict(scores=torch.randn(batch, seq), keep=keep),
    where=["1 <= keep <= seq", "seq <= 64"],
    far={"keep": (1, 2, 8, 9), "seq": (3, 4, 16, 33, 64), "batch": (1, 7)},
    points=({"batch": 3, "seq": 64, "keep": 64}, {"batch": 1, "seq": 1, "keep": 1}),
)
def keeps_the_best(self, scores, keep):
    best = scores.topk(keep, dim=1)
    return best.values, best.indices.float().mean(1) * keep


@model(
    "a flag that the function of sizes derives from seq: long sequences are asked for in another mode",
    lambda batch=2, seq=5: dict(x=torch.randn(batch, seq, 3), long=seq > 8),
    where=["1 <= seq <= 40"],
    far={"seq": (1, 7, 8, 9, 10, 33, 40), "batch": (1, 3)},
)
def flag_follows_length(self, x, long):
    if long:
        return x.cumsum(1) / x.shape[1]
    return x - x.mean(1, keepdim=True)


@model(
    "the axis is min(seq, 12): what seq is beyond that, no axis tells, and all of it is declared",
    lambda batch=2, seq=5: (torch.randn(batch, min(seq, 12), 3),),
    where=["1 <= seq <= 64"],
    far={"seq": (1, 2, 11, 12, 13, 33, 64), "batch": (1, 3, 7)},
)
def truncated_before(self, x):
    full = x.shape[1] == 12
    y = x.softmax(1)
    return (y * 0.5 if full else y), x.amax(1)


@model(
    "height and width of the original picture are values of a tensor of sizes; pixels have 16 x 16 always",
    lambda batch=2, height=30, width=40: dict(
        boxes=torch.rand(batch, 5, 4), target_sizes=torch.tensor([[height, width]]).repeat(batch, 1)
    ),
    where=["1 <= height <= 2000", "1 <= width <= 2000"],
    far={"height": (1, 2, 333, 2000), "width": (1, 7, 641, 2000), "batch": (1, 3, 33)},
    points=({"batch": 1, "height": 2000, "width": 1},),
)
def boxes_to_pixels(self, boxes, target_sizes):
    x, y, w, h = boxes.unbind(-1)
    corners = torch.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], dim=-1)
    height, width = target_sizes.unbind(1)
    return corners * torch.stack([width, height, width, height], dim=1).to(boxes.dtype)[:, None, :]


@model(
    "left and right reach only their sum, and only one of the two is bounded below by the other",
    lambda batch=2, left=4, right=3: (torch.randn(batch, left + right, 3),),
    where=["1 <= right <= left", "left + right <= 24"],
    far={"left": (3, 4, 7, 16, 21), "right": (1, 2, 4), "batch": (1, 7)},
    points=({"left": 12, "right": 12}, {"left": 1, "right": 1}, {"left": 23, "right": 1}),
)
def only_the_sum(self, x):
    total = x.shape[1]
    middle = (total + 1) // 2
    return x[:, :middle].sum(1) - x[:, middle:].sum(1), x.roll(middle, 1)


# ------------------------------------------------- cause 2: texts and keys of sizes in a region that the example never enters

with model.theme("cause2"):

    @model(
        "beyond 150 the answer depends on the sum of the digits of the length",
        steps,
        where=["seq <= 600"],
        far={"seq": (1, 2, 64, 150, 151, 199, 200, 333, 599, 600), "batch": (1, 3)},
    )
    def digits_of_long_ones(self, x):
        n = x.shape[1]
        if n > 150:
            return x * sum(map(int, str(n)))
        return x + 1

    @model(
        "large pictures: how many bits of the width are set, read from its binary text",
        image,
        far={"width": (1, 3, 33, 255, 256, 333, 350), "height": (1, 7, 16, 64)},
        points=(
            {"height": 40, "width": 64},
            {"height": 50, "width": 63},
            {"height": 50, "width": 127},
            {"height": 45, "width": 96},
        ),
    )
    def bits_of_wide_ones(self, x):
        height, width = x.shape[2:]
        if height * width > 2000:
            return x.mean((2, 3)) / bin(width).count("1")
        return x.mean((2, 3))

    @model(
        "a match statement on the length in the path for long inputs: two literals and a pattern of a tuple",
        steps,
        far={"seq": (1, 16, 64, 128, 129, 300, 301, 450, 512), "batch": (1, 4)},
        points=({"batch": 4, "seq": 300}, {"batch": 3, "seq": 450}),
    )
    def matched_lengths(self, x):
        batch, n = x.shape[:2]
        if n <= 128:
            return x.tanh()
        match (batch, n):
            case (_, 300):
                return x * 3
            case (3, 450):
                return x * 4
            case _:
                return x * 2

    @model(
        "a regular expression on the text of both sizes, where the batch is large",
        steps,
        where=["batch <= 128", "seq <= 128"],
        far={"batch": (1, 3, 40, 41, 64, 77, 128), "seq": (1, 7, 64, 77, 128)},
        points=(
            {"batch": 41, "seq": 77},
            {"batch": 66, "seq": 66},
            {"batch": 55, "seq": 5},
            {"batch": 100, "seq": 100},
        ),
    )
    def expression_on_sizes(self, x):
        if x.shape[0] > 40:
            size = "%dx%d" % (x.shape[0], x.shape[1])
            return x - 1 if re.fullmatch(r"(\d)\1x\1+", size) else x + 1
        return x * 2

    @model(
        "a head for every 256 steps, found by its name; up to 255 there is another path, without names",
        steps,
        where=["1 <= seq <= 1023"],
        far={"seq": (1, 3, 255, 256, 511, 512, 767, 768, 1023), "batch": (1, 2)},
    )
    class HeadsByName(nn.Module):
        def __init__(self):
            super().__init__()
            for number in (1, 2, 3):
                setattr(self, f"head_{number}", nn.Linear(3, 2))
            self.short = nn.Linear(3, 2)

        def forward(self, x):
            bucket = x.shape[1] // 256
            return (getattr(self, f"head_{bucket}") if bucket else self.short)(x).amax(1)

    @model(
        "odd lengths: the digits of the length, four of them, index a table; even lengths never make the text",
        steps,
        where=["1 <= seq <= 999"],
        far={"seq": (1, 2, 7, 9, 11, 64, 99, 101, 110, 375, 998, 999), "batch": (1, 3)},
    )
    class DigitsOfOddOnes(nn.Module):
        def __init__(self):
            super().__init__()
            self.digit = nn.Embedding(10, 3)

        def forward(self, x):
            n = x.shape[1]
            if n % 2:
                return x + self.digit(torch.tensor([ord(c) - 48 for c in f"{n:04d}"])).sum(0)
            return x


# -------------------------------------------------------------- cause 3: arithmetic on sizes that real numbers do not have

with model.theme("cause3"):

    @model(
        "a length stored in bfloat16 is another length beyond 256, odd ones first",
        steps,
        far={"seq": (1, 2, 3, 33, 255, 256, 257, 258, 259, 261, 263, 513, 514, 771), "batch": (1, 3)},
    )
    def brain_length(self, x):
        n = int(torch.tensor(x.shape[1]).to(torch.bfloat16))
        return F.pad(x, (0, 0, 0, max(n - x.shape[1], 0) + 1))[:, :n].sum(1) / n, x * (n - x.shape[1])

    @model(
        "torch.arange(0, 1, 1 / n) has n + 1 steps at 49, 98, 103 ...",
        steps,
        far={"seq": (1, 2, 7, 16, 33, 48, 49, 50, 64, 98, 103, 107, 196), "batch": (1, 3)},
    )
    def grid_of_fractions(self, x):
        grid = torch.arange(0, 1, 1 / x.shape[1])
        return grid, x.mean(1) * grid.shape[0]

    @model(
        "n times the float32 reciprocal of n, as an integer, is 0 at 41, 47, 55, 61 ...",
        steps,
        far={"seq": (1, 2, 3, 33, 40, 41, 42, 47, 55, 61, 64, 82, 97, 128), "batch": (1, 3)},
    )
    def share_of_all(self, x):
        n = torch.tensor(x.shape[1], dtype=torch.float32)
        whole = ((1.0 / n) * x.shape[1]).int().item()
        return x * (whole + 1), x.sum(1) + whole

    @model(
        "math.log(243, 3) is 4.999: the depth of a tree of threes is one short, and only beyond 200 is it asked for",
        steps,
        far={"seq": (1, 9, 64, 81, 200, 201, 242, 243, 244, 500, 728, 729, 730), "batch": (1, 2)},
    )
    def depth_by_threes(self, x):
        n = x.shape[1]
        depth = math.floor(math.log(n, 3)) if n > 200 else 0
        return x.mean(1) + depth, torch.full((depth + 1,), float(n))

    @model(
        "the side of a cube by numpy's float32 cube root, floored: 2 at 27 voxels, 5 at 216",
        lambda batch=2, voxels=10: (torch.randn(batch, voxels),),
        far={"voxels": (1, 7, 8, 9, 26, 27, 28, 64, 65, 125, 215, 216, 217, 343), "batch": (1, 3)},
    )
    def side_of_a_cube(self, x):
        side = int(np.cbrt(np.float32(x.shape[1])) // 1)
        return x[:, : side**3].reshape(x.shape[0], side, side, side).sum((1, 2)), x[:, side**3 :].sum(1)

    @model(
        "29 percent of a length in Python's doubles: 28 of 100, 57 of 200, 115 of 400",
        lambda batch=2, samples=20: (torch.randn(batch, samples),),
        where=["samples >= 4"],
        far={"samples": (4, 7, 16, 33, 64, 99, 100, 101, 200, 300, 400, 800), "batch": (1, 3)},
    )
    def part_of_a_length(self, x):
        cut = int(x.shape[1] * 0.29)
        return x[:, :cut].flip(1), x[:, cut:].cumsum(1)


# --------------------------------------------------------------------------------------------- cause 4: code without a file


def typed(source, filename="<string>", name="forward", **names):
    """The function that text defines, as `exec`, a shell or a notebook does it."""
    space = {"torch": torch, "F": F, "nn": nn, "np": np, "math": math, "__name__": "__main__", **names}
    exec(compile(textwrap.dedent(source), filename, "exec"), space)
    return space[name]


with model.theme("cause4"):

    @model(
        "typed at the prompt: multiples of 97 beyond 500 take another path",
        steps,
        far={"seq": (1, 16, 64, 97, 194, 485, 500, 581, 582, 583, 679, 776), "batch": (1, 3)},
    )
    class TypedAtThePrompt(nn.Module):
        forward = typed(
            """
            def forward(self, x):
                n = int(x.shape[1])
                if n > 500 and not n % 97:
                    return x * 3
                return x * 2
            """,
            "<stdin>",
        )

    @model(
        "a helper made by types.FunctionType from compiled text looks sizes up in a dict",
        image,
        far={"width": (1, 2, 33, 64, 128, 384, 385, 640), "height": (1, 7, 96)},
        points=({"height": 96, "width": 384}, {"height": 64, "width": 640}),
    )
    class LooksUpInText(nn.Module):
        scale = staticmethod(
            types.FunctionType(
                compile("def f(w): return {384: 0.5, 640: 2.0}.get(int(w), 1.0)", "<string>", "exec").co_consts[0],
                {"int": int},
            )
        )
        forward = typed(
            """
            def forward(self, x):
                return x.amax((2, 3)) * self.scale(x.shape[3])
            """
        )

    @model(
        "an evaluated lambda as the activation of a stack: a set of lengths is turned around",
        steps,
        far={"seq": (1, 2, 3, 64, 299, 300, 301, 302), "batch": (1, 7)},
    )
    class EvaluatedActivation(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 2)
            self.act = eval("lambda x: x.flip(1).relu() if int(x.shape[1]) in {300, 301} else x.relu()", {"int": int})

        forward = typed("def forward(self, x):\n    return self.second(self.act(self.first(x)))")

    @model(
        "a cell of a notebook: a loop over time whose step 250 turns the state around",
        steps,
        far={"seq": (1, 2, 16, 64, 250, 251, 252, 300), "batch": (1, 2)},
    )
    class NotebookLoop(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.GRUCell(3, 3)

        forward = typed(
            """
            def forward(self, x):
                state = x.new_zeros(x.shape[0], 3)
                for t in range(x.shape[1]):
                    state = self.cell(x[:, t], state)
                    if t == 250:
                        state = -state
                return state
            """,
            "<ipython-input-3-8a1c0f2b7d55>",
        )

    @dataclass(frozen=True)
    class Resolution:
        height: int
        width: int

    @model(
        "a data class, whose __eq__ Python itself writes in '<string>', is compared in code without a file",
        image,
        far={"height": (1, 7, 40, 64), "width": (1, 33, 270)},
        points=({"height": 40, "width": 270}, {"height": 40, "width": 271}, {"height": 270, "width": 40}),
    )
    class ComparesDataClasses(nn.Module):
        forward = typed(
            """
            def forward(self, x):
                size = Resolution(*map(int, x.shape[2:]))
                if size == Resolution(40, 270) or size == Resolution(270, 40):
                    x = x.transpose(2, 3)
                return x.mean(3)
            """,
            Resolution=Resolution,
        )

    @model(
        "sizes in a numpy array, asked with np.isin in executed text",
        steps,
        far={"seq": (1, 2, 33, 64, 199, 200, 201, 640, 641), "batch": (1, 3, 48)},
        points=({"batch": 48, "seq": 640},),
    )
    class AsksNumpy(nn.Module):
        forward = typed(
            """
            def forward(self, x):
                sizes = np.array(x.shape)
                rare = np.isin(sizes[1], [200, 640])
                weight = np.where(rare, 0.5, 1.0)
                return x * float(weight) + int(sizes[:2].sum())
            """,
            "<stdin>",
        )


# --------------------------------------------------------------------------------- cause 5: containers of any other class


class Native(enum.Enum):
    """Resolutions that a checkpoint was trained at; `Native((h, w))` finds one or raises."""

    PORTRAIT = (56, 40)
    LANDSCAPE = (40, 56)
    WIDE = (24, 96)


class Trained:
    """Has `in`, and a numpy array of pairs behind it."""

    def __init__(self, *pairs):
        self.rows = np.array(pairs)

    def __contains__(self, pair):
        return bool((self.rows == np.array(pair)).all(1).any())


with model.theme("cause5"):

    @model(
        "an enumeration is asked for the member whose value is (h, w); ValueError means none",
        image,
        far={"height": (1, 7, 24, 40, 56), "width": (1, 33, 40, 56, 96)},
        points=(
            {"height": 40, "width": 56},
            {"height": 56, "width": 40},
            {"height": 24, "width": 96},
            {"height": 96, "width": 24},
        ),
    )
    def native_resolution(self, x):
        try:
            native = Native(tuple(x.shape[2:]))
        except ValueError:
            return x.mean((2, 3))
        return x.mean((2, 3)) * (2 if native is Native.WIDE else 3)

    @model(
        "get_buffer by a name with the length in it; AttributeError means: make one",
        steps,
        far={"seq": (1, 2, 33, 64, 136, 160, 161, 320), "batch": (1, 3)},
    )
    class BuffersByName(nn.Module):
        def __init__(self):
            super().__init__()
            for n in (160, 320):
                self.register_buffer(f"window_{n}", torch.hann_window(n))

        def forward(self, x):
            n = x.shape[1]
            try:
                window = self.get_buffer("window_" + str(n))
            except AttributeError:
                window = torch.ones(n)
            return x * window[:, None]

    @model(
        "a read-only view of a chain of tables, keyed by pairs of sizes",
        image,
        far={"height": (1, 7, 32, 48), "width": (1, 33, 48, 72)},
        points=({"height": 48, "width": 72}, {"height": 32, "width": 48}, {"height": 72, "width": 48}),
    )
    class ChainedTables(nn.Module):
        def __init__(self):
            super().__init__()
            common, special = {(224, 224): 1.0, (32, 48): 0.25}, {(48, 72): 0.5}
            self.gains = types.MappingProxyType(ChainMap(special, common))

        def forward(self, x):
            gain = self.gains.get((x.shape[-2], x.shape[-1]), 1.0)
            return F.avg_pool2d(x, 1) * gain

    @model(
        "a string of bytes holds the lengths that are special, `in` asks it",
        steps,
        where=["1 <= seq <= 255"],
        far={"seq": (1, 2, 33, 64, 96, 97, 144, 231, 255), "batch": (1, 3)},
    )
    class BytesOfLengths(nn.Module):
        special = bytes([97, 144, 231])

        def forward(self, x):
            n = x.shape[1]
            if n in self.special:
                return x * (2 + self.special.index(n))
            return x + n

    @model(
        "a sorted array and bisect: exact hits of a length have a gain of their own, between them nothing",
        steps,
        far={"seq": (1, 2, 33, 64, 119, 120, 121, 244, 245, 246, 500), "batch": (1, 3)},
    )
    class SortedLengths(nn.Module):
        def __init__(self):
            super().__init__()
            self.lengths, self.gains = array("l", [120, 245, 490]), array("d", [0.5, 0.25, 4.0])

        def forward(self, x):
            n = x.shape[1]
            at = bisect.bisect_left(self.lengths, n)
            if at < len(self.lengths) and self.lengths[at] == n:
                return x * self.gains[at]
            return x

    @model(
        "an object with __contains__ over rows of a numpy array",
        image,
        far={"height": (1, 7, 36, 64), "width": (1, 33, 100)},
        points=({"height": 36, "width": 100}, {"height": 100, "width": 36}, {"height": 64, "width": 44}),
    )
    class TrainedSizes(nn.Module):
        def __init__(self):
            super().__init__()
            self.trained = Trained((36, 100), (64, 44))
            self.lin = nn.Linear(2, 2)

        def forward(self, x):
            y = self.lin(x.mean((2, 3)))
            return y if x.shape[2:] in self.trained else y.sigmoid()


# -------------------------------------------------------------------------- cause 6: state that changes at some values or sizes

with model.theme("cause6"):

    @model(
        "a counter that is full: it is written in every call and never changes, so a file exists",
        steps,
        far={"seq": (1, 2, 7, 33), "batch": (1, 3)},
    )
    class FullCounter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("steps", torch.tensor(3))

        def forward(self, x):
            self.steps.add_(1).clamp_(max=3)
            return x * self.steps

    @model(
        "a bound is bound anew in every call, always to the same value: 5 is below 20 + anything",
        steps,
        far={"seq": (1, 2, 16, 64), "batch": (1, 7)},
        rare={
            "zeros": lambda batch=2, seq=5: (torch.zeros(batch, seq, 3),),
            "large": lambda batch=2, seq=5: (torch.full((batch, seq, 3), 1e6),),
        },
    )
    class SameBound(nn.Module):
        def __init__(self):
            super().__init__()
            self.bound = torch.tensor(5.0)

        def forward(self, x):
            self.bound = torch.minimum(self.bound, x.abs().max() + 20)
            return torch.minimum(x, self.bound)

    class Statistics:
        longest = 0

    def forget_statistics():
        Statistics.longest = 0

    @model(
        "a class attribute keeps the longest length ever seen, and no answer depends on it",
        steps,
        far={"seq": (1, 2, 33, 128, 129), "batch": (1, 3)},
        reset=forget_statistics,
    )
    def counts_for_others(self, x):
        Statistics.longest = max(Statistics.longest, int(x.shape[1]))
        return x.cumsum(1) if Statistics.longest >= x.shape[1] else x

    @model(
        "a running mean with momentum 0 stays as it is, until an infinity makes it NaN",
        steps,
        far={"seq": (1, 2, 7, 33), "batch": (1, 3)},
        rare={"infinite": lambda batch=2, seq=5: (torch.full((batch, seq, 3), math.inf),)},
    )
    class ZeroMomentum(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.tensor([0.5, -1.0, 2.0]))

        def forward(self, x):
            y = x - self.mean
            self.mean.add_(0.0 * (x.mean((0, 1)) - self.mean))
            return y

    @model(
        "a limiter that stays on once a call was loud; ordinary values never are",
        lambda batch=2, samples=12: (torch.rand(batch, samples) * 2 - 1,),
        far={"samples": (1, 2, 33, 64), "batch": (1, 3)},
        rare={"loud": lambda batch=2, samples=12: (torch.full((batch, samples), 90.0),)},
        true_refusal=True,
    )
    class StaysOn(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("limiting", torch.tensor(False))

        def forward(self, x):
            self.limiting.logical_or_(x.abs().max() > 50)
            return torch.where(self.limiting, x.clamp(-0.5, 0.5), x)

    def second_time(self, x, seen=set()):
        n = int(x.shape[1])
        known = n in seen
        if n > 90:
            seen.add(n)
        return x * (2 if known else 1)

    model(
        "a mutable default remembers lengths beyond 90; the second call of such a length answers otherwise",
        steps,
        far={"seq": (1, 2, 64, 90, 91, 120), "batch": (1, 3)},
        true_refusal=True,
        reset=second_time.__defaults__[0].clear,
    )(second_time)
