"""Models that keep state, models whose state changes no answer, and random models."""

from __future__ import annotations

import itertools
import random
from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def inputs(batch=3):
    return {"x": torch.randn(batch, 8)}


class InPlaceBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ema", torch.zeros(8))

    def forward(self, x):
        self.ema.mul_(0.9).add_(0.1 * x.mean(0))  # writes
        return x - self.ema


class NewBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ema", torch.ones(8))

    def forward(self, x):
        out = x - self.ema
        self.ema = 0.9 * self.ema + 0.1 * x.mean(0)  # writes
        return out


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1  # writes
        return x * self.calls


class WarmUp(nn.Module):
    """Changes only after more calls than are made."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1  # writes
        return x * 2 if self.calls > 700 else x


class History(nn.Module):
    def __init__(self):
        super().__init__()
        self.means = []

    def forward(self, x):
        self.means.append(x.mean())  # writes
        return x - torch.stack(self.means).mean()


TOTAL = 0


class Global(nn.Module):
    def forward(self, x):
        global TOTAL
        TOTAL = TOTAL + 1  # writes
        return x + TOTAL


def closure():
    calls = 0

    class Closure(nn.Module):
        def forward(self, x):
            nonlocal calls
            calls += 1  # writes
            return x + calls

    return Closure()


class OfTheClass(nn.Module):
    calls = 0

    def forward(self, x):
        OfTheClass.calls += 1  # writes
        return x + OfTheClass.calls


class Context(nn.Module):
    """A stream: the last row of one call goes before the rows of the next."""

    def __init__(self):
        super().__init__()
        self.last = torch.zeros(1, 8)

    def forward(self, x):
        rows = torch.cat([self.last, x])
        self.last = x[-1:]  # writes
        return rows[1:] - rows[:-1]


class Hidden(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(8, 8)
        self.h = None

    def forward(self, x):
        fits = self.h is not None and self.h.shape[0] == x.shape[0]
        self.h = self.cell(x, self.h if fits else None)  # writes
        return self.h * 2


class Alias(nn.Module):
    def __init__(self):
        super().__init__()
        self.total = torch.zeros(8)

    def forward(self, x):
        total = self.total
        out = x + total
        total += x.sum(0)  # writes
        return out


class Box:
    def __init__(self):
        self.scale = 1.0


class PlainObject(nn.Module):
    def __init__(self):
        super().__init__()
        self.box = Box()

    def forward(self, x):
        self.box.scale = self.box.scale * 1.5  # writes
        return x * self.box.scale


class Slotted:
    __slots__ = ("scale", "unset")

    def __init__(self):
        self.scale = 1.0


class SlottedObject(nn.Module):
    def __init__(self):
        super().__init__()
        self.box = Slotted()

    def forward(self, x):
        self.box.scale += 1.0  # writes
        return x * self.box.scale


SLOTTED = Slotted()


class SlottedGlobal(nn.Module):
    def forward(self, x):
        SLOTTED.scale += 1.0  # writes
        return x * 2 if SLOTTED.scale > 3 else x


class DataOfParameter(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(1), requires_grad=False)

    def forward(self, x):
        self.scale.data += 1  # writes
        return x * self.scale


class Default(nn.Module):
    def forward(self, x, seen=[]):  # noqa: B006
        seen.append(1)  # writes
        return x * len(seen)


class NumpyState(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = np.zeros(2)

    def forward(self, x):
        self.count += 1  # writes
        return x * float(self.count.sum())


class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, x):
        keys = self.kept.get("k")
        keys = x if keys is None else torch.cat([keys, x])
        self.kept["k"] = keys  # writes
        return x @ keys.T @ keys


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = InPlaceBuffer()
        self.scale = nn.Parameter(torch.ones(8))

    def forward(self, x):
        return self.part(x * self.scale)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.state = (torch.zeros(8), torch.ones(8))

    def forward(self, x):
        low, high = self.state
        self.state = torch.minimum(low, x.amin(0)), torch.maximum(high, x.amax(0))  # writes
        return (x - low) / (high - low)


KEEPING = (
    InPlaceBuffer, NewBuffer, Counter, WarmUp, History, Global, closure, OfTheClass, Context, Hidden, Alias, PlainObject,
    SlottedObject, SlottedGlobal, DataOfParameter, Default, NumpyState, Cache, Inner, Pair,
)  # fmt: skip
CARRIED = {
    InPlaceBuffer: "state.ema: float32[8]",
    NewBuffer: "state.ema: float32[8]",
    Counter: "state.calls: int64[]",
    Context: "state.last: float32[1, 8]",
    Hidden: "state.h: float32[batch, 8]",
    Cache: "state.kept.k: float32[kept_k_0, 8]",
    PlainObject: "state.box.scale: float64[]",
    SlottedObject: "state.box.scale: float64[]",
    Inner: "state.part.ema: float32[8]",
    Pair: "state.state.0: float32[8]",
}


class TableByLength(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = {}

    def forward(self, x):
        n = x.shape[0]
        if n not in self.tables:
            self.tables[n] = torch.arange(n).float()[:, None]
        return x + self.tables[n]


class GrowingTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(0, 8), persistent=False)

    def forward(self, x):
        n = x.shape[0]
        if self.table.shape[0] < n:
            self.table = torch.sin(torch.arange(n).float()[:, None] * torch.arange(8).float())
        return x + self.table[:n]


class HarmlessCounter(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        self.seen += 1
        return x * 2


@lru_cache
def table(n):
    return torch.arange(n).float()[:, None]


class CachedFunction(nn.Module):
    def forward(self, x):
        return x + table(x.shape[0])


class Remembered(nn.Module):
    def forward(self, x):
        self.last_input = x
        return x * 2


class Normalised(nn.Module):
    """In training mode when handed over: eval mode has no state and no noise."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.norm(x))


HARMLESS = (TableByLength, GrowingTable, HarmlessCounter, CachedFunction, Remembered, Normalised)


class PythonRandom(nn.Module):
    def forward(self, x):
        scale = random.random()  # draws
        return x * scale


class NumpyRandom(nn.Module):
    def forward(self, x):
        return x * float(np.random.uniform())  # draws


class StochasticDepth(nn.Module):
    def forward(self, x):
        if random.random() < 0.05:  # draws
            return x
        return x * 2


class Noise(nn.Module):
    def forward(self, x):
        y = x * 2
        return y + torch.randn_like(y)  # draws


class Dropout(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.3, training=True)  # draws


class OwnGenerator(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = torch.Generator().manual_seed(3)

    def forward(self, x):
        return x + torch.rand(8, generator=self.generator)  # draws


class OwnNumpyGenerator(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = np.random.default_rng(0)

    def forward(self, x):
        return x * self.generator.uniform()  # draws


class Shuffled(nn.Module):
    def forward(self, x):
        return x[:, torch.randperm(8)]  # draws


class Sampled(nn.Module):
    def forward(self, x):
        chances = torch.softmax(x, -1)
        return torch.multinomial(chances, 1)  # draws


class Masked(nn.Module):
    def forward(self, x):
        return torch.bernoulli(torch.sigmoid(x))  # draws


class RowNoise(nn.Module):
    def forward(self, x):
        n = int(x.shape[0])
        return x + torch.rand(n, 1)  # draws


class InnerNoise(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Noise()

    def forward(self, x):
        return self.part(x) + 1


class Uniform(nn.Module):
    def forward(self, x):
        return x * torch.empty(8).uniform_(2.0, 3.0)  # draws


RANDOM = (
    PythonRandom, NumpyRandom, StochasticDepth, Noise, Dropout, OwnGenerator, OwnNumpyGenerator, Shuffled, Sampled, Masked,
    RowNoise, InnerNoise, Uniform,
)  # fmt: skip
RANDOM_IN_ONNX = (Noise, Dropout, Shuffled, Sampled, Masked, RowNoise, Uniform)


class Iterated(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = itertools.count(1)

    def forward(self, x):
        step = next(self.count)  # differs
        return x * step


class Entropy(nn.Module):
    def forward(self, x):
        scale = np.random.default_rng().uniform()  # differs
        return x * scale


UNSTEADY = (Iterated, Entropy)
