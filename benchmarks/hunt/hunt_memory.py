"""State between calls and randomness, real and only apparent: caches that change nothing must not be refused."""

from __future__ import annotations

import os
import random
import time
import uuid

import numpy as np
import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("memory")


def steps(batch=2, seq=5):
    return (torch.randn(batch, seq, 4),)


FAR = {"seq": (1, 2, 7, 64, 256, 257, 300)}
_SEEN: list[int] = []
_TABLES: dict[int, torch.Tensor] = {}


@model("a counter that nothing reads", steps, far=FAR)
class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * 2


@model("a counter in a buffer that nothing reads", steps, far=FAR)
class CountedBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        return x.tanh()


@model("a table that is kept by length, the same whenever it is made", steps, far=FAR)
class KeptTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables: dict[int, torch.Tensor] = {}

    def forward(self, x):
        n = int(x.shape[1])
        if n not in self.tables:
            self.tables[n] = torch.arange(n)[:, None] / 10
        return x + self.tables[n]


@model("a table that grows to the longest length seen, as in rotary embeddings", steps, far=FAR)
class GrowingTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.zeros(0, 1)

    def forward(self, x):
        if x.shape[1] > self.table.shape[0]:
            self.table = torch.arange(x.shape[1])[:, None] / 7
        return x * self.table[: x.shape[1]].cos()


@model("a table that grows, and whose scale follows the longest length seen: state", steps, far=FAR, true_refusal=True)
class StretchedTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.longest = 0

    def forward(self, x):
        self.longest = max(self.longest, int(x.shape[1]))
        return x * (torch.arange(x.shape[1])[:, None] / self.longest)


@model("a weight is made at the first call, always the same", steps, far=FAR)
class LazyWeight(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = None

    def forward(self, x):
        if self.weight is None:
            self.weight = torch.linspace(0, 1, x.shape[-1])
        return x * self.weight


@model("the first call fixes the scale by its values: state", steps, far=FAR, true_refusal=True)
class Calibrated(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = None

    def forward(self, x):
        if self.scale is None:
            self.scale = x.abs().max().detach()
        return x / self.scale


@model("the first call fixes the length: state by sizes", steps, far=FAR, true_refusal=True)
class FirstLength(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = None

    def forward(self, x):
        self.first = self.first or int(x.shape[1])
        return x * self.first


@model("only the third call differs", steps, far=FAR, true_refusal=True)
class ThirdCall(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return -x if self.calls == 3 else x


@model("a module list is rotated at each call", steps, far=FAR, true_refusal=True)
class Rotated(nn.Module):
    def __init__(self):
        super().__init__()
        self.order = [1.0, 2.0, 3.0]

    def forward(self, x):
        self.order.append(self.order.pop(0))
        return x * self.order[0] - self.order[1]


@model("state of an inner module, two levels down", steps, far=FAR, true_refusal=True)
class InnerState(nn.Module):
    class Meter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("peak", torch.zeros(()))

        def forward(self, x):
            self.peak = torch.maximum(self.peak, x.abs().amax() + 1 + self.peak)
            return x / self.peak

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Sequential(self.Meter()))

    def forward(self, x):
        return self.body(x)


@model("a global list of lengths seen", steps, far=FAR, true_refusal=True, reset=_SEEN.clear)
def global_lengths(self, x):
    _SEEN.append(int(x.shape[1]))
    return x * len(_SEEN)


@model("a global cache of tables that changes nothing", steps, far=FAR, reset=_TABLES.clear)
def global_tables(self, x):
    n = int(x.shape[1])
    return x + _TABLES.setdefault(n, torch.ones(n, 1) / n)


@model("a default argument that is mutable", steps, far=FAR, true_refusal=True)
class MutableDefault(nn.Module):
    def step(self, x, seen=[]):  # noqa: B006
        seen.append(1)
        return x + len(seen) * 0.5

    def forward(self, x):
        return self.step(x)


@model("an attribute of the class, not of the instance", steps, far=FAR, true_refusal=True)
class ClassAttribute(nn.Module):
    calls = 0

    def forward(self, x):
        type(self).calls += 1
        return x * (1 + type(self).calls % 3)


@model("a generator is advanced", steps, far=FAR, true_refusal=True)
class Advanced(nn.Module):
    def __init__(self):
        super().__init__()
        self.numbers = iter(range(1, 10**6))

    def forward(self, x):
        return x / next(self.numbers)


@model(
    "batch norm in training mode inside an eval module: its statistics follow the batch",
    steps,
    far=FAR,
    where=["batch >= 2"],
)
class BatchStatistics(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("var", torch.ones(4))

    def forward(self, x):
        return F.batch_norm(x.flatten(0, 1), self.mean.clone(), self.var.clone(), training=True).view_as(x)


@model("spiking neuron: the membrane stays", steps, far=FAR, true_refusal=True)
class Spiking(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("membrane", torch.zeros(4))

    def forward(self, x):
        self.membrane = 0.5 * self.membrane + x.mean((0, 1)) + 0.3
        return (x + self.membrane > 0.5).float()


@model("cleared at the end: state that every call leaves as it was", steps, far=FAR)
class Scratch(nn.Module):
    def __init__(self):
        super().__init__()
        self.scratch = []

    def forward(self, x):
        self.scratch.append(x.sum())
        answer = x + self.scratch[0]
        self.scratch.clear()
        return answer


@model("a fixed seed inside: random numbers that are always the same", steps, far=FAR)
def fixed_numpy_seed(self, x):
    table = np.random.default_rng(0).normal(size=4).astype(np.float32)
    return x * torch.from_numpy(table)


@model("a generator of its own with a fixed seed", steps, far=FAR)
def fixed_python_seed(self, x):
    return x * random.Random(7).random()


@model("torch's generator with a fixed seed, made in forward", steps, far=FAR)
def fixed_torch_seed(self, x):
    generator = torch.Generator().manual_seed(3)
    return x * torch.rand(4, generator=generator)


@model("entropy of the system, not of a seed", steps, far=FAR, true_refusal=True)
def system_entropy(self, x):
    return x + os.urandom(1)[0] / 255


@model("the clock", steps, far=FAR, true_refusal=True)
def clock(self, x):
    return x + (time.perf_counter_ns() % 1000) / 1000


@model("uuid4 as a seed", steps, far=FAR, true_refusal=True)
def by_uuid(self, x):
    return x * (uuid.uuid4().int % 97)


@model(
    "random only where the input is negative",
    lambda batch=2, seq=5: (torch.rand(batch, seq, 4),),
    far=FAR,
    true_refusal=True,
    rare={"negative": lambda batch=2, seq=5: (-torch.rand(batch, seq, 4),)},
    unproved=True,
)
def random_if_negative(self, x):
    return x * random.random() if x.min() < 0 else x


@model("random only at lengths above 100", steps, far={"seq": (100, 101, 256)}, true_refusal=True)
def random_if_long(self, x):
    return x * random.random() if x.shape[1] > 100 else x


@model("noise whose size follows a dim", steps, far=FAR, true_refusal=True)
def random_of_length(self, x):
    return x + torch.from_numpy(np.random.rand(x.shape[1], 1).astype(np.float32))


@model("randn_like in eval mode", steps, far=FAR, true_refusal=True)
def randn_like(self, x):
    return x + 0.1 * torch.randn_like(x)


@model(
    "multinomial sampling of one token",
    lambda batch=2, vocab=5: (torch.randn(batch, vocab),),
    true_refusal=True,
    far={"vocab": (1, 2, 256)},
)
def sampled(self, logits):
    return torch.multinomial(logits.softmax(-1), 1)


@model("noise times zero: random in form, constant in fact", steps, far=FAR)
def zero_noise(self, x):
    return x + 0.0 * random.random()


@model("dropout layer in eval mode: no noise at all", steps, far=FAR)
class EvalDropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))

    def forward(self, x):
        return self.layer(x)
