"""Operators and ways of writing that the suites of other exporters show."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from features.feature import Case, at, feature
from features.language import rows

OPERATORS = "operators"
PYTHON = "Python over sizes and values"


def _listed(group: str, name: str, **options: object):
    """Lists a module class that is called with rows."""

    def listed(model: type[nn.Module]) -> type[nn.Module]:
        feature(group, name)(
            lambda: Case(
                model(),
                (rows(4, 6),),
                dynamic={"x": "n 6"},
                others=(at(rows(2, 6)), at(rows(8, 6)), at(-rows(12, 6))),
                options=dict(options),
            )
        )
        return model

    return listed


@_listed(OPERATORS, "`bucketize`")
class Bucketize(nn.Module):
    def forward(self, x):
        return torch.bucketize(x, torch.linspace(-1, 2, 7))


@_listed(OPERATORS, "`index_put` with index ranks that differ")
class IndexPut(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[torch.tensor([[0], [1]]), torch.tensor([1, 2])] = torch.ones(2, 2)
        return y


@_listed(OPERATORS, "`masked_scatter` with a mask of lower rank")
class MaskedScatter(nn.Module):
    def forward(self, x):
        return x.masked_scatter(torch.arange(6) % 2 == 0, x * 10)


@_listed(OPERATORS, "`split` into a list that is returned")
class Split(nn.Module):
    def forward(self, x):
        return torch.split(x, [2, 4], dim=1)


@_listed(OPERATORS, "`chunk` of an open axis")
class Chunk(nn.Module):
    def forward(self, x):
        return torch.chunk(x, 2)


@_listed(OPERATORS, "`arange(out=...)`")
class ArangeOut(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0])
        torch.arange(x.shape[0], out=out)
        return x + out[:, None]


@_listed(OPERATORS, "`repeat_interleave` by a tensor")
class Repeated(nn.Module):
    def forward(self, x):
        return x.repeat_interleave(torch.arange(x.shape[0]) + 1, dim=0)


@_listed(OPERATORS, "`group_norm` at opset 21", opset=21)
class GroupNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(2, 6)

    def forward(self, x):
        return self.norm(x)


@_listed(OPERATORS, "three-dimensional pooling with `ceil_mode`")
class CeilPool(nn.Module):
    def forward(self, x):
        y = x.reshape(1, 1, x.shape[0], 6, 1).repeat(1, 1, 2, 1, 4)
        return F.avg_pool3d(y, 3, stride=2, ceil_mode=True), F.max_pool3d(y, 3, stride=2, ceil_mode=True)


@_listed(OPERATORS, "attention with grouped heads and a causal mask")
class Grouped(nn.Module):
    def forward(self, x):
        q = x.reshape(1, 1, -1, 6).repeat(1, 4, 1, 1)
        k = x.reshape(1, 1, -1, 6).repeat(1, 2, 1, 1)
        return F.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True)


@_listed(OPERATORS, "`F.interpolate` by a factor made of sizes")
class Interpolate(nn.Module):
    def forward(self, x):
        y = x.reshape(1, 1, *x.shape)
        return F.interpolate(y, scale_factor=(8 / x.shape[0], 2.0), mode="nearest")


@_listed(PYTHON, "a loop over a size")
class Loop(nn.Module):
    def forward(self, x):
        total = torch.zeros(6)
        for row in range(x.shape[0]):
            total = torch.tanh(total + x[row])
        return total


@_listed(PYTHON, "a branch by a value")
class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x * 2


@_listed(PYTHON, "a branch by a value inside a loop over a size")
class BranchInLoop(nn.Module):
    def forward(self, x):
        total = torch.zeros(6)
        for row in x:
            if row.sum() > 0:
                total = total + row
            else:
                total = total * 0.5
        return total


@_listed(PYTHON, "`if index.numel() > 0` on a selection")
class Selected(nn.Module):
    def forward(self, x):
        index = (x[:, 0] > 0).nonzero().squeeze(1)
        if index.numel() > 0:
            return x[index].sum(0)
        return x.mean(0)


@_listed(PYTHON, "`.tolist()` of lengths")
class Lengths(nn.Module):
    def forward(self, x):
        lengths = (x > 0).sum(1).tolist()
        return torch.stack([row[:length].sum() for row, length in zip(x, lengths, strict=True)])


@_listed(PYTHON, "floor division of a negated size")
class NegatedDivision(nn.Module):
    def forward(self, x):
        return x * (-x.shape[0] // 3) + (x.shape[0] % -5)


@_listed(PYTHON, "a float remainder of a size")
class FloatRemainder(nn.Module):
    def forward(self, x):
        return x * (x.shape[0] % 2.5)


@_listed(PYTHON, "recursion over a size")
class Recursion(nn.Module):
    def fold(self, x):
        if x.shape[0] <= 1:
            return x.sum(0)
        half = x.shape[0] // 2
        return torch.tanh(self.fold(x[:half])) + self.fold(x[half:])

    def forward(self, x):
        return self.fold(x)


@_listed(PYTHON, "a loop whose tensor is halved in each step")
class Pyramid(nn.Module):
    def forward(self, x):
        while x.shape[0] > 1:
            x = F.avg_pool1d(x.t()[None], 2, ceil_mode=True)[0].t()
        return x


@_listed(PYTHON, "triangular index pairs")
class Pairs(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        return torch.stack([x[i] * x[j] for i in range(n) for j in range(i + 1)])


@_listed(PYTHON, "`i % k` in a loop, k an attribute")
class Every(nn.Module):
    def __init__(self):
        super().__init__()
        self.every = 3

    def forward(self, x):
        total = torch.zeros(6)
        for i in range(x.shape[0]):
            if i % self.every == 0:
                total = total + x[i]
        return total


@_listed(PYTHON, "numpy on sizes")
class Numpy(nn.Module):
    def forward(self, x):
        import numpy as np

        return x * float(np.log(x.shape[0] + 1))


@feature(PYTHON, "a branch for empty inputs, `if x.numel() == 0`: without a declared range, 0 belongs to it")
def empty_inputs() -> Case:
    class Empty(nn.Module):
        def forward(self, x):
            return torch.ones(6) if x.numel() == 0 else x.amax(0)

    return Case(Empty(), (rows(4, 6),), dynamic={"x": "n 6"}, others=(at(rows(0, 6)), at(rows(1, 6)), at(rows(9, 6))))


@feature(PYTHON, "`torch.cond` on a size, with a number among its operands")
def cond_on_sizes() -> Case:
    class CondOnSizes(nn.Module):
        def forward(self, x, offset):
            return torch.cond(len(x) > 0, lambda x, k: x.sum(0) + k, lambda x, k: torch.ones(6) - k, [x, offset])

    return Case(
        CondOnSizes(),
        (rows(4, 6), 7),
        dynamic={"x": "n 6"},
        others=(at(rows(0, 6), 7), at(rows(1, 6), 7), at(rows(9, 6), 7)),
    )
