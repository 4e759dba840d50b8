"""More kinds of models, declarations and operators of the list."""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

from features.feature import Case, at, feature
from features.forms import GROUP as FORMS
from features.forms import Joined, _sum, _wide
from features.hard import OPERATORS, PYTHON, _listed
from features.language import PARTS, rows


class Inference(nn.Module):
    def forward(self, x):
        with torch.inference_mode():
            return x.softmax(-1) + 1


class AutocastWhole(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    @torch.autocast("cpu", dtype=torch.bfloat16, enabled=False)
    def forward(self, x):
        return self.linear(x)


@torch.jit.script
def scripted(x: torch.Tensor) -> torch.Tensor:
    return x.relu() + 1


class ScriptedFunction(nn.Module):
    def forward(self, x):
        return scripted(x) * 2


class CompiledFunction(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = torch.compile(lambda x: x.cumsum(0))

    def forward(self, x):
        return self.part(x) + 1


class Symmetric(nn.Module):
    def forward(self, weight):
        return weight.triu() + weight.triu(1).t()


class Parametrized(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        nn.utils.parametrize.register_parametrization(self.linear, "weight", Symmetric())

    def forward(self, x):
        return self.linear(x)


class Pair(NamedTuple):
    total: torch.Tensor
    rows: torch.Tensor


class NamedOutput(nn.Module):
    def forward(self, x):
        return Pair(x.sum(), x * 2)


class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.ReLU()})
        self.shifts = nn.ParameterList([nn.Parameter(torch.ones(4) * n) for n in range(3)])

    def forward(self, x):
        for layer in self.layers.values():
            x = layer(x)
        return [x + shift for shift in self.shifts], {"last": x}


class CallableObject:
    def __init__(self):
        self.linear = nn.Linear(4, 4).eval()

    def __call__(self, x):
        return self.linear(x) + 1


for _name, _make in {
    "an `inference_mode` region": Inference,
    "a forward under `autocast` as a decorator": AutocastWhole,
    "a `torch.jit.script` function": ScriptedFunction,
    "a `torch.compile`d function": CompiledFunction,
    "an own parametrization": Parametrized,
    "a named tuple as the answer": NamedOutput,
    "`ModuleDict`, `ParameterList`, lists and dicts as answers": Containers,
    "a callable object": CallableObject,
    "a lambda": lambda: lambda x: x * 2,
    "`torch.fx.symbolic_trace`": lambda: torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU())),
}.items():
    feature(PARTS, _name)(
        functools.partial(
            lambda make: Case(make(), (rows(3, 4),), dynamic=({0: "batch"},), others=(at(rows(1, 4)), at(rows(6, 4)))),
            _make,
        )
    )


@feature(FORMS, "`[None, None]` beside a number: axes without a name")
def without_names() -> Case:
    return _sum({"x": [None, 4], "y": [None, 4]})


@feature(FORMS, "a `Dim` without a range")
def without_range() -> Case:
    return _sum({"x": {0: Dim("batch")}, "y": {0: Dim("batch")}})


@feature(FORMS, "strings in `dynamic_shapes`")
def strings() -> Case:
    return _wide(({0: "batch", 1: "width"}, {0: "batch", 1: "width"}))


@feature(FORMS, "a size of 0 by a rule, `where=['b >= 0']`")
def from_zero() -> Case:
    return Case(
        Joined(),
        (rows(3, 4), rows(2, 4)),
        dynamic={"x": {0: "a"}, "y": {0: "b"}},
        options={"where": ["0 <= b <= 64"]},
        others=(at(rows(2, 4), torch.zeros(0, 4)), at(rows(1, 4), rows(6, 4))),
    )


class Masked(nn.Module):
    def forward(self, x, past, mask):
        return torch.cat([past, x], 1) * mask


@feature(FORMS, "labels that the model ties: `total` beside `past` and `seq`")
def tied() -> Case:
    return Case(
        Masked(),
        (rows(2, 3), rows(2, 4), torch.ones(2, 7)),
        dynamic={"x": {1: "seq"}, "past": {1: "past"}, "mask": {1: "total"}},
        others=(at(rows(2, 1), rows(2, 5), torch.ones(2, 6)),),
    )


@_listed(OPERATORS, "`index_put` with `accumulate` and an index that is left out")
class IndexPut(nn.Module):
    def forward(self, x):
        return x.clone().index_put((torch.tensor([0, 0, 1]),), torch.ones(3, 6), accumulate=True)


@_listed(OPERATORS, "`set_`")
class Set(nn.Module):
    def forward(self, x):
        y = torch.empty(0)
        y.set_(x * 2)
        return y + 1


@_listed(OPERATORS, "`unbind` and `tensor_split`, returned")
class Unbind(nn.Module):
    def forward(self, x):
        return x.unbind(1), torch.tensor_split(x, 3, 1)


@_listed(OPERATORS, "attention with a mask of booleans, and of three axes")
class AttentionMask(nn.Module):
    def forward(self, x):
        q = x.reshape(1, -1, 6)
        near = (torch.arange(x.shape[0])[:, None] - torch.arange(x.shape[0])).abs() < 3
        return F.scaled_dot_product_attention(q, q, q, near), F.scaled_dot_product_attention(q, q, q, near.float())


@_listed(OPERATORS, "`repeat_interleave` of a count made of a size")
class RepeatedBySize(nn.Module):
    def forward(self, x):
        return x.repeat_interleave(x.shape[0], dim=0)


@_listed(OPERATORS, "`bucketize` and `searchsorted` with boundaries made of values")
class Boundaries(nn.Module):
    def forward(self, x):
        ends = x[:, 0].sort().values
        return torch.bucketize(x, ends), torch.searchsorted(ends, x)


@_listed(OPERATORS, "`nonzero`, `unique` and a boolean mask")
class Selections(nn.Module):
    def forward(self, x):
        return (x > 0).nonzero(), (x * 2).round().unique(), x[x > 0.5]


@_listed(OPERATORS, "`F.interpolate` to sizes made of sizes")
class InterpolateTo(nn.Module):
    def forward(self, x):
        return F.interpolate(x[None, None], size=(x.shape[0] * 2 + 1, 9), mode="bilinear")


@_listed(OPERATORS, "`F.interpolate` with `antialias`, by a factor")
class Antialiased(nn.Module):
    def forward(self, x):
        return F.interpolate(x[None, None], scale_factor=0.7, mode="bicubic", antialias=True)


@_listed(PYTHON, "one element of each row, at a place that a value says")
class Picked(nn.Module):
    def forward(self, x):
        places = x.argmax(1)
        return torch.stack([x[row, places[row] - 1] for row in range(x.shape[0])])


@_listed(PYTHON, "a ragged batch by `pad_sequence`")
class Ragged(nn.Module):
    def forward(self, x):
        parts = [row[: int(length)] for row, length in zip(x, (x > 0).sum(1), strict=True)]
        return nn.utils.rnn.pad_sequence(parts, batch_first=True)


@_listed(PYTHON, "a slice by the largest of some lengths")
class ByLongest(nn.Module):
    def forward(self, x):
        return x[:, : int((x > 0).sum(1).max())]


@_listed(PYTHON, "a Python list that grows in a loop")
class Grows(nn.Module):
    def forward(self, x):
        found = []
        for row in x:
            found.append(row * len(found))
        return torch.stack(found)
