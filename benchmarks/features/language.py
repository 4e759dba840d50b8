"""What users and libraries write inside a model: control flow of torch, wrappers, scripted and compiled parts."""

from __future__ import annotations

import functools
import operator

import torch
from torch import nn

from features.feature import Case, at, feature

GROUP = "control flow of torch"
PARTS = "parts of a model"


def rows(*sizes: int) -> torch.Tensor:
    return torch.linspace(-1.0, 2.0, sizes[0] * sizes[1]).reshape(*sizes)


def plain(model: object, **options: object) -> Case:
    """A model of one tensor of `batch` rows."""
    return Case(
        model,
        (rows(3, 4),),
        dynamic={"x": "batch 4"},
        others=(at(rows(1, 4)), at(rows(5, 4)), at(-rows(8, 4))),
        options=dict(options),
    )


class CondByValue(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, (x,))


class CondBySize(nn.Module):
    def forward(self, x):
        return torch.cond(x.shape[0] > 4, lambda x: x + 1, lambda x: x * 2, (x,))


class CondNested(nn.Module):
    def forward(self, x):
        def positive(x):
            return torch.cond(x.max() > 1.5, lambda x: x.cos(), lambda x: x.sin(), (x,))

        return torch.cond(x.sum() > 0, positive, lambda x: x * 2, (x,))


class CondWithModules(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(4, 3)
        self.other = nn.Linear(4, 3)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: self.one(x), lambda x: self.other(x), (x,))


class WhileLoop(nn.Module):
    def forward(self, x):
        def more(i, y):
            return i < 3

        def body(i, y):
            return i + 1, y * 2

        return torch._higher_order_ops.while_loop(more, body, (torch.tensor(0), x))[1]


class Scan(nn.Module):
    def forward(self, x):
        def step(carry, row):
            total = carry + row
            return total, total * 2

        from torch._higher_order_ops.scan import scan

        last, every = scan(step, torch.zeros(4), x, dim=0)
        return last, every


class AssociativeScan(nn.Module):
    def forward(self, x):
        from torch._higher_order_ops.associative_scan import associative_scan

        return associative_scan(operator.add, x, dim=0, combine_mode="generic")


class Map(nn.Module):
    def forward(self, x):
        from torch._higher_order_ops.map import map as map_rows

        return map_rows(lambda row, shift: row * 2 + shift, x, torch.ones(4))


class Vmap(nn.Module):
    def forward(self, x):
        return torch.vmap(lambda row: row.softmax(0) * row.sum())(x)


class NestedVmap(nn.Module):
    def forward(self, x):
        return torch.vmap(lambda a: torch.vmap(lambda b: (a * b).sum())(x))(x)


class CondInPlace(nn.Module):
    def forward(self, x):
        def doubled(x):
            y = x.clone()
            y.mul_(2)
            return y

        return torch.cond(x.sum() > 0, doubled, lambda x: x.clone(), (x,))


class Autocast(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.linear(x)
        return y.float()


class NoGrad(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            y = x.softmax(-1)
        return y * x


class Gradients(nn.Module):
    def forward(self, x):
        return torch.func.grad(lambda y: (y**3).sum())(x)


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        from torch.utils.checkpoint import checkpoint

        return checkpoint(self.linear, x, use_reentrant=False)


class Scripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))

    def forward(self, x):
        return self.part(x) + 1


class TracedPart(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = torch.jit.trace(nn.Linear(4, 4), torch.randn(2, 4))

    def forward(self, x):
        return self.part(x) + 1


class Compiled(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = torch.compile(nn.Linear(4, 4))

    def forward(self, x):
        return self.part(x) + 1


class Parametrized(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        nn.utils.parametrizations.weight_norm(self.linear)
        self.other = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))

    def forward(self, x):
        return self.other(self.linear(x))


class OldWeightNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.utils.weight_norm(nn.Linear(4, 4))

    def forward(self, x):
        return self.linear(x)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(4, 4)
        self.head = nn.Linear(4, 4, bias=False)
        self.head.weight = self.table.weight

    def forward(self, x):
        return self.head(x) + self.table.weight.sum()


class OwnFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clamp(min=0) * 2

    @staticmethod
    def backward(ctx, grad):
        return grad


class WithOwnFunction(nn.Module):
    def forward(self, x):
        return OwnFunction.apply(x)


class ManyArguments(nn.Module):
    def forward(self, *args, **kwargs):
        return sum(args) + kwargs["scale"]


def _hooked() -> nn.Module:
    module = nn.Linear(4, 4)
    module.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    module.register_forward_hook(lambda module, args, output: output + 1)
    return module


def _lazy() -> nn.Module:
    module = nn.LazyLinear(3)
    module(torch.randn(2, 4))
    return module


def _scale(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by


for _name, _model in {
    "`torch.cond` by a value": CondByValue,
    "`torch.cond` by a size": CondBySize,
    "`torch.cond` inside `torch.cond`": CondNested,
    "`torch.cond` with modules in closures": CondWithModules,
    "`torch.cond` with a branch that writes in place": CondInPlace,
    "`while_loop`": WhileLoop,
    "`scan`": Scan,
    "`associative_scan`": AssociativeScan,
    "`map`": Map,
    "`vmap`": Vmap,
    "`vmap` inside `vmap`": NestedVmap,
}.items():
    feature(GROUP, _name)(functools.partial(lambda made: plain(made()), _model))

for _name, _make in {
    "an autocast region": Autocast,
    "a `no_grad` region": NoGrad,
    "`torch.func.grad`": Gradients,
    "`checkpoint`": Checkpointed,
    "a `torch.jit.script` part": Scripted,
    "a `torch.jit.trace` part": TracedPart,
    "a `torch.compile`d part": Compiled,
    "a `torch.compile`d model": lambda: torch.compile(nn.Linear(4, 4)),
    "a `torch.jit.script`ed model": lambda: torch.jit.script(nn.Linear(4, 4)),
    "`parametrize`: weight norm and spectral norm": Parametrized,
    "the older `weight_norm`": OldWeightNorm,
    "tied weights": Tied,
    "an own `autograd.Function`": WithOwnFunction,
    "hooks": _hooked,
    "a lazy module after its first call": _lazy,
    "a plain function": lambda: torch.tanh,
    "`functools.partial`": lambda: functools.partial(_scale, by=3.0),
    "a bound method": lambda: nn.Linear(4, 4).forward,
}.items():
    feature(PARTS, _name)(
        functools.partial(
            lambda make: Case(make(), (rows(3, 4),), dynamic=({0: "batch"},), others=(at(rows(1, 4)), at(rows(6, 4)))),
            _make,
        )
    )


@feature(PARTS, "a module on `meta`")
def on_meta() -> Case:
    return Case(nn.Linear(4, 4, device="meta"), (rows(3, 4),), dynamic=({0: "batch"},), expects="AS031")


@feature(PARTS, "a lazy module before its first call")
def before_first_call() -> Case:
    return Case(nn.LazyLinear(3), (rows(3, 4),), dynamic=({0: "batch"},), expects="AS031")


@feature(PARTS, "an `ExportedProgram`")
def program() -> Case:
    made = torch.export.export(
        nn.Linear(4, 4), (rows(3, 4),), dynamic_shapes=({0: torch.export.Dim("batch", min=2, max=64)},)
    )
    return Case(made, (rows(3, 4),), others=(at(rows(6, 4)),), dynamic=({0: "batch"},))


@feature(PARTS, "`*args` and `**kwargs`")
def many() -> Case:
    return Case(
        ManyArguments(),
        (rows(3, 4), rows(3, 4)),
        {"scale": torch.tensor(2.0)},
        dynamic={"args": ({0: "batch"}, {0: "batch"}), "kwargs": {"scale": None}},
        others=(at(rows(6, 4), rows(6, 4), scale=torch.tensor(3.0)),),
    )
