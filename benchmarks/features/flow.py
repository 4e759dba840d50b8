"""torch's control flow, nested, with closures, modules and several carried values."""

from __future__ import annotations

import functools

import torch
from torch import nn
from torch._higher_order_ops import while_loop
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan

from features.feature import feature
from features.language import GROUP, plain


class WhileOfSeveral(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        def more(count, total, state):
            return (count < 4) & (total.abs().max() < 100)

        def body(count, total, state):
            return count + 1, total + state.sum(0), torch.tanh(self.linear(state))

        return while_loop(more, body, (torch.tensor(0), torch.zeros(4), x))


class ScanOfSeveral(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(8, 4)

    def forward(self, x):
        def step(carried, row):
            state, total = carried
            new = torch.tanh(self.cell(torch.cat([state, row])))
            return (new, total + new.sum()), new * 2

        (state, total), rows = scan(step, (torch.zeros(4), torch.zeros(())), x, dim=0)
        return state, total, rows


class AssociativeOfTwo(nn.Module):
    def forward(self, x):
        def combine(left, right):
            return left[0] * right[0], right[0] * left[1] + right[1]

        return associative_scan(combine, (torch.sigmoid(x), x), dim=0, combine_mode="generic")[1]


class MapWithModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        return map_rows(lambda row: self.linear(row).softmax(0), x)


class CondInScan(nn.Module):
    def forward(self, x):
        def step(carry, row):
            new = torch.cond(row.sum() > 0, lambda c, r: c + r, lambda c, r: c * 0.5 - r, (carry, row))
            return new, new * 2

        return scan(step, torch.zeros(4), x, dim=0)


class CondInWhile(nn.Module):
    def forward(self, x):
        def body(count, y):
            return count + 1, torch.cond(y.sum() > 0, lambda y: y * 0.5 - 1, lambda y: y + 2, (y,))

        return while_loop(lambda count, y: count < 3, body, (torch.tensor(0), x))[1]


class WhileInCond(nn.Module):
    def forward(self, x):
        def repeated(x):
            return while_loop(lambda n, y: n < 3, lambda n, y: (n + 1, y * 2), (torch.tensor(0), x))[1]

        return torch.cond(x.sum() > 0, repeated, lambda x: x - 1, (x,))


class CondOfSeveral(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4) * 3)

    def forward(self, x):
        shift = x.mean(0)
        one = lambda x: (x + shift, x.sum() * self.scale)  # noqa: E731
        return torch.cond(x.sum() > 0, one, lambda x: (x * 2, self.scale - 1), (x,))


class VmapWithModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return torch.vmap(lambda row, y: self.linear(row) @ y.t(), in_dims=(0, None))(x, x)


class VmapOut(nn.Module):
    def forward(self, x):
        return torch.vmap(lambda row: (row.cumsum(0), row.max()), out_dims=(1, 0))(x)


for _name, _model in {
    "`while_loop` with three carried values and a module": WhileOfSeveral,
    "`scan` with two carried values and a module": ScanOfSeveral,
    "`associative_scan` over two tensors": AssociativeOfTwo,
    "`map` with a module": MapWithModule,
    "`torch.cond` inside `scan`": CondInScan,
    "`torch.cond` inside `while_loop`": CondInWhile,
    "`while_loop` inside `torch.cond`": WhileInCond,
    "`torch.cond` with two outputs, a parameter and a tensor of the closure": CondOfSeveral,
    "`vmap` with a module and `in_dims`": VmapWithModule,
    "`vmap` with `out_dims`": VmapOut,
}.items():
    feature(GROUP, _name)(functools.partial(lambda made: plain(made()), _model))
