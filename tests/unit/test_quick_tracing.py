"""A quicker trace is the same trace: same operators, sizes and lines."""

from __future__ import annotations

import itertools
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import torch
from torch import nn
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import Dim
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from anyshape.intercept.quick_tracing import lines_read_late, results_kept_when_repeated, sizes_computed_once


class Layers(nn.Module):
    """The same operators three times, and a loop whose slices grow."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x).tanh()
        for end in range(1, 4):
            x = torch.cat([x, x[..., :end] * end], -1)
        return x


def _traced(*within: AbstractContextManager[None]) -> list[tuple[str, str, str]]:
    with ExitStack() as stack:
        for each in within:
            stack.enter_context(each)
        program = torch.export.export(
            Layers(), (torch.randn(3, 5, 4),), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},), strict=False
        )
    nodes = program.graph.nodes
    return [
        (node.name, str(node.meta["val"]), node.meta.get("stack_trace", "")) for node in nodes if "val" in node.meta
    ]


def test_a_quick_trace_is_the_same_trace() -> None:
    assert _traced(lines_read_late(), results_kept_when_repeated(), sizes_computed_once()) == _traced()


def _two_sizes(environment: ShapeEnv) -> list[Any]:
    sizes: list[Any] = [
        environment.create_symintnode(environment.create_symbol(size, ConstantSource(name)), hint=size)
        for name, size in (("a", 5), ("b", 7))
    ]
    return [size.node for size in sizes]


def test_a_product_of_two_sizes_is_computed_once() -> None:
    one, other = _two_sizes(ShapeEnv())
    with sizes_computed_once():
        assert one.mul(other) is one.mul(other)
        assert one.add(other) is not one.add(other)
    assert one.mul(other) is not one.mul(other)


def test_a_comparison_is_made_again_when_a_symbol_is_replaced() -> None:
    environment = ShapeEnv()
    one, other = _two_sizes(environment)
    with sizes_computed_once():
        before = one.lt(other)
        assert one.lt(other) is before
        bool(torch.SymInt(one) == 5)  # torch replaces the symbol by 5
        again = one.lt(other)
    assert again is not before
    assert str(again.expr) != str(before._expr)


def test_environments_share_no_products() -> None:
    (one, other), (third, fourth) = _two_sizes(ShapeEnv()), _two_sizes(ShapeEnv())
    with sizes_computed_once():
        assert one.mul(other) is not third.mul(fourth)


def test_a_result_is_found_from_the_third_time_on() -> None:
    FakeTensorMode.cache_clear()
    with results_kept_when_repeated():
        hits = []
        for _ in range(4):
            with FakeTensorMode():
                torch.ones(3, 4) * 2
            hits.append(FakeTensorMode.cache_info().hits)
    kept = [later > before for before, later in itertools.pairwise(hits)]
    assert kept == [False, True, True]
