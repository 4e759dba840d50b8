"""State and values: calls that change the module, aliases, in-place edits, dtypes, overflow, NaN, data-dependent sizes."""

from __future__ import annotations

import itertools
import random

import torch
from registry import Registry
from torch import nn

model = Registry("state")


def steps(batch=2, seq=5):
    return (torch.randn(batch, seq, 3),)


def tokens(batch=2, seq=5):
    return (torch.randint(0, 20, (batch, seq)),)


def lengths(batch=3, seq=6):
    return torch.randn(batch, seq, 3), torch.randint(1, seq + 1, (batch,))


@model("a running mean in a buffer moves with each call", steps, true_refusal=True)
class RunningMean(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        self.mean.lerp_(x.mean((0, 1)), 0.1)
        return x - self.mean


@model(
    "a toggle that only multiples of eleven turn: at all other lengths each call is the same",
    steps,
    far={"seq": (10, 12, 20)},
    points=({"batch": 3, "seq": 11}, {"batch": 2, "seq": 33}),
    true_refusal=True,
)
class RareToggle(nn.Module):
    def __init__(self):
        super().__init__()
        self.flipped = False

    def forward(self, x):
        if x.shape[1] % 11 == 0:
            self.flipped = not self.flipped
        return x.flip(1) if self.flipped else x


@model("the third call and later ones differ: a warm-up counter kept in a default argument", steps, true_refusal=True)
class WarmUp(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = self.counter()

    @staticmethod
    def counter():
        def step(calls=[0]):  # noqa: B006
            calls[0] += 1
            return calls[0]

        calls = [0]
        return lambda: step(calls)

    def forward(self, x):
        return x if self.step() < 3 else x * 2


@model(
    "a position table cached at the first size is stale for longer ones: it grows, and never shrinks",
    steps,
    far={"seq": (1, 4, 9, 32, 100)},
)
class GrowingTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.empty(0, 3)

    def forward(self, x):
        n = x.shape[1]
        if n > len(self.table):
            self.table = torch.arange(n)[:, None] / torch.tensor([1.0, 10.0, 100.0])
        return x + self.table[:n].sin()


@model(
    "a cached mask whose scale is that of the longest call so far: the history shows",
    steps,
    far={"seq": (3, 9, 16)},
    true_refusal=True,
)
class StaleScale(nn.Module):
    def __init__(self):
        super().__init__()
        self.longest = 1

    def forward(self, x):
        self.longest = max(self.longest, x.shape[1])
        return x * torch.linspace(0, 1, self.longest)[: x.shape[1], None]


@model("the in-place edit of the argument through a view shows in a later use", steps, far={"seq": (1, 2, 3, 8, 9)})
def alias_of_input(self, x):
    y = x.clone()
    even = y[:, ::2]
    flat = y.view(-1)
    even.mul_(2)
    flat[:3] += 1
    even[:, 0] = flat[-3:].clone()
    return y, even.sum(1)


@model(
    "reshape is a view only where memory allows: an in-place edit after a transpose does not reach the source, except at size one",
    steps,
    points=({"batch": 1, "seq": 6}, {"batch": 6, "seq": 1}, {"batch": 1, "seq": 1}),
    far={"seq": (1, 2), "batch": (1, 3)},
)
def view_or_copy(self, x):
    base = x.clone()
    flat = base.transpose(0, 1).reshape(-1, 3)
    flat += 1
    return base * 2


@model(
    "contiguous() is the tensor itself when it already is contiguous: at batch or seq one",
    steps,
    points=({"batch": 1, "seq": 6}, {"batch": 6, "seq": 1}, {"batch": 4, "seq": 4}),
)
def contiguous_or_self(self, x):
    base = x * 1.0
    turned = base.transpose(0, 1)
    packed = turned.contiguous()
    packed.zero_()
    return base.sum(1) + (10.0 if turned.is_contiguous() else 0.0)


@model(
    "int32 products of positions overflow and wrap",
    lambda batch=2, seq=5: (torch.randint(0, 60000, (batch, seq), dtype=torch.int32),),
    far={"seq": (1, 17, 64)},
    rare={
        "large": lambda batch=2, seq=5: (torch.full((batch, seq), 2**31 - 1, dtype=torch.int32),),
        "least": lambda batch=2, seq=5: (torch.full((batch, seq), -(2**31), dtype=torch.int32),),
    },
)
def int32_hash(self, ids):
    mixed = ids * 40503 + torch.arange(ids.shape[1], dtype=torch.int32)
    return mixed % 97, mixed.abs(), mixed // 7


@model(
    "uint8 sums are int64, products with a Python int stay uint8 and wrap",
    lambda batch=2, seq=5: (torch.randint(0, 256, (batch, seq), dtype=torch.uint8),),
    far={"seq": (1, 2, 50)},
    rare={
        "full": lambda batch=2, seq=5: (torch.full((batch, seq), 255, dtype=torch.uint8),),
        "zeros": lambda batch=2, seq=5: (torch.zeros((batch, seq), dtype=torch.uint8),),
    },
)
def bytes_promoted(self, x):
    return x * 3 + 1, x.sum(1), x - 200, x.float() * x, -x, x.cumsum(1, dtype=torch.uint8)


@model(
    "dtype promotion: a float64 scalar tensor does not promote, a float64 vector does; a size makes it one or the other",
    steps,
    far={"seq": (1, 2, 3)},
    points=({"batch": 1, "seq": 1},),
)
def promotion_by_size(self, x):
    scale = torch.full((x.shape[1],), 0.5, dtype=torch.float64).squeeze()
    y = x.sum(-1) * scale
    return y.float() + (1.0 if y.dtype == torch.float64 else 0.0)


@model(
    "NaN in max, min, amax, sort, median, nanmean and comparisons",
    steps,
    rare={
        "nan": lambda batch=2, seq=5: (torch.full((batch, seq, 3), float("nan")),),
        "one_nan": lambda batch=2, seq=5: (
            torch.cat([torch.full((batch, 1, 3), float("nan")), torch.randn(batch, seq - 1, 3)], 1),
        ),
        "inf": lambda batch=2, seq=5: (torch.full((batch, seq, 3), float("inf")),),
        "negative": lambda batch=2, seq=5: (torch.full((batch, seq, 3), float("-inf")),),
    },
    far={"seq": (1, 8)},
)
def nan_paths(self, x):
    top = x.max(1).values
    low = torch.minimum(x, torch.zeros(()))
    ordered = x.sort(1).values
    clipped = x.clamp(-1, 1)
    return top, low, ordered[:, -1], x.nanmean(1), clipped, (x != x).sum(1), torch.fmax(x, torch.ones(()))


@model(
    "softmax over fully masked rows: NaN replaced by zero",
    lambda batch=2, seq=5: (torch.randn(batch, seq, 4), torch.rand(batch, seq) > 0.3),
    rare={
        "none": lambda batch=2, seq=5: (torch.randn(batch, seq, 4), torch.zeros(batch, seq, dtype=torch.bool)),
        "all": lambda batch=2, seq=5: (torch.randn(batch, seq, 4), torch.ones(batch, seq, dtype=torch.bool)),
    },
    far={"seq": (1, 2, 30)},
)
def fully_masked(self, x, keep):
    scores = (x @ x.mT / 2).masked_fill(~keep[:, None], float("-inf"))
    return torch.nan_to_num(scores.softmax(-1)) @ x


@model(
    "noise is drawn for long inputs only: subsampled positions beyond forty",
    steps,
    far={"seq": (1, 39, 40)},
    points=({"batch": 2, "seq": 41}, {"batch": 2, "seq": 60}),
    true_refusal=True,
)
def noisy_when_long(self, x):
    if x.shape[1] > 40:
        x = x[:, torch.randperm(x.shape[1])[:40].sort().values]
    return x.cumsum(1)


@model(
    "torch.manual_seed inside of forward makes the noise the same each call, another at each size",
    steps,
    where=["1 <= batch <= 4", "1 <= seq <= 16"],
    far={"seq": (1, 15, 16), "batch": (1, 4)},
    unproved=True,
)
def seeded_projection(self, x):
    generator = torch.Generator().manual_seed(7)
    table = torch.randn(x.shape[1], 3, generator=generator)
    return x * table


@model(
    "Python's random seeded with the size draws an order",
    steps,
    where=["1 <= seq <= 32"],
    far={"seq": (1, 2, 31, 32)},
    unproved=True,
)
def shuffled_by_size(self, x):
    order = list(range(x.shape[1]))
    random.Random(x.shape[1]).shuffle(order)
    return x[:, order]


@model("a hidden iterator: the first four calls agree, later ones do not", steps, true_refusal=True)
class HiddenIterator(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = itertools.chain([1.0] * 4, itertools.repeat(2.0))

    def forward(self, x):
        return x * next(self.scales)


class Shared:
    seen: list[int] = []


@model(
    "a class attribute collects the sizes of all calls of all instances",
    steps,
    true_refusal=True,
    reset=Shared.seen.clear,
)
def collects(self, x):
    Shared.seen.append(x.shape[1])
    return x * len(Shared.seen) + max(Shared.seen)


@model(
    "compaction by mask: the output's size is a value; empty selections too",
    lambda batch=2, seq=5: (torch.randn(batch, seq), torch.rand(batch, seq) > 0.5),
    rare={
        "none": lambda batch=2, seq=5: (torch.randn(batch, seq), torch.zeros(batch, seq, dtype=torch.bool)),
        "all": lambda batch=2, seq=5: (torch.randn(batch, seq), torch.ones(batch, seq, dtype=torch.bool)),
    },
    far={"seq": (1, 9, 40)},
    unproved=True,
)
def compacted(self, x, keep):
    chosen = x[keep]
    count = chosen.numel()
    return chosen.cumsum(0), chosen.sum() / max(count, 1), keep.nonzero()


@model(
    "ragged rows split by lengths and padded to the longest with their mean",
    lengths,
    far={"seq": (1, 2, 12), "batch": (1, 2, 7)},
    rare={
        "ones": lambda batch=3, seq=6: (torch.randn(batch, seq, 3), torch.ones(batch, dtype=torch.int64)),
        "full": lambda batch=3, seq=6: (torch.randn(batch, seq, 3), torch.full((batch,), seq)),
    },
    where=["1 <= batch <= 8"],
    unproved=True,
)
def ragged_means(self, x, sizes):
    rows = [row[: int(n)] for row, n in zip(x, sizes)]
    padded = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1.0)
    return padded.flip(1), torch.stack([row.mean(0) for row in rows])


@model(
    "negative indices from values: gather after python-like wrap, remainder against fmod",
    lambda batch=2, seq=5: (torch.randn(batch, seq), torch.randint(-30, 30, (batch, 4))),
    rare={
        "zeros": lambda batch=2, seq=5: (torch.randn(batch, seq), torch.zeros(batch, 4, dtype=torch.int64)),
        "negative": lambda batch=2, seq=5: (torch.randn(batch, seq), torch.full((batch, 4), -1)),
    },
    far={"seq": (1, 2, 6, 29, 30, 31)},
)
def wrapped_gather(self, x, index):
    n = x.shape[1]
    wrapped = x.gather(1, index % n)
    truncated = torch.fmod(index, n)
    floor, trunc = torch.div(index, n, rounding_mode="floor"), torch.div(index, n, rounding_mode="trunc")
    return wrapped, truncated, floor - trunc


@model(
    "index_put with accumulate and without, duplicates included; the later write wins by order of rows",
    tokens,
    far={"seq": (1, 20, 41)},
    rare={"same": lambda batch=2, seq=5: (torch.full((batch, seq), 3),)},
)
def histogram(self, ids):
    counts = torch.zeros(ids.shape[0], 20)
    rows = torch.arange(ids.shape[0])[:, None].expand_as(ids)
    counts = counts.index_put((rows, ids), torch.ones(()), accumulate=True)
    seen = torch.zeros(20, dtype=torch.bool)
    seen[ids.flatten()] = True
    return counts, seen, torch.bincount(ids.flatten(), minlength=20)


@model(
    "a rare value switches the whole batch: any id equal to 13",
    tokens,
    rare={
        "unlucky": lambda batch=2, seq=5: (torch.full((batch, seq), 13),),
        "one": lambda batch=2, seq=5: (
            torch.cat([torch.full((batch, 1), 13), torch.zeros(batch, seq - 1, dtype=torch.int64)], 1),
        ),
        "zeros": lambda batch=2, seq=5: (torch.zeros(batch, seq, dtype=torch.int64),),
    },
    far={"seq": (1, 7)},
    unproved=True,
)
class Unlucky(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 4)

    def forward(self, ids):
        hidden = self.table(ids)
        if (ids == 13).any():
            return hidden.flip(1).cumsum(1)
        return hidden.cumsum(1)


@model(
    "a buffer used as scratch: zeroed, filled by slices of the size, and read whole",
    steps,
    where=["1 <= seq <= 24"],
    far={"seq": (1, 8, 23, 24)},
)
class Scratch(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("pad", torch.zeros(24, 3))

    def forward(self, x):
        self.pad.zero_()
        self.pad[: x.shape[1]] = x.mean(0)
        self.pad[24 - x.shape[1] :] += 1
        return self.pad.cumsum(0) * 1.0


@model(
    "a scratch buffer that is not zeroed: old rows of a longer call remain",
    steps,
    where=["1 <= seq <= 24"],
    far={"seq": (1, 8, 24)},
    true_refusal=True,
)
class DirtyScratch(nn.Module):
    def __init__(self):
        super().__init__()
        self.pad = torch.zeros(24, 3)

    def forward(self, x):
        self.pad[: x.shape[1]] = x.mean(0)
        return self.pad.clone()
