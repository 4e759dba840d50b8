"""The graph of a call is the one that make_fx records, with the same operators, arguments, shapes and dtypes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.fx import Node
from torch.fx.experimental.proxy_tensor import make_fx

from anyshape.capture.generalized.called_operators import record_call
from anyshape.capture.generalized.values_in_traces import KnownValues, ReadsInputValue

_WEIGHT = torch.nn.Parameter(torch.randn(4, 4))


def layers(x: torch.Tensor) -> Any:
    y = F.layer_norm(F.linear(x, _WEIGHT), (4,)).reshape(-1, 2, 2)
    return (torch.einsum("bij,bjk->bik", y, y).flatten(1).softmax(-1),)


def writes(x: torch.Tensor) -> Any:
    y = torch.zeros(x.shape[0], 6)
    y[:, 1:5] = x
    y.add_(1)
    return y, x.contiguous() * 2


def parts(x: torch.Tensor) -> Any:
    one, two = x.split(2, dim=1)
    greatest, places = x.topk(2)
    return one + two, greatest, places, *x.unbind(1)


def constants(x: torch.Tensor) -> Any:
    shift = torch.tensor([1.0, 2.0, 3.0, 4.0])
    shift.mul_(2)
    return x + shift, torch.arange(x.shape[0]).float()[:, None] + x.to(torch.float64)


def selections(x: torch.Tensor) -> Any:
    return x[torch.tensor([0, 1])], torch.where(x > 0, x, 0.0), F.pad(x, (1, 1))


@pytest.mark.parametrize("function", [layers, writes, parts, constants, selections], ids=lambda each: each.__name__)
def test_the_same_operators_are_recorded_as_by_make_fx(function: Callable[..., Any]) -> None:
    x = torch.randn(3, 4)
    with torch.no_grad():
        known = make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True, pre_dispatch=True)(x)
        called = record_call(function, [x])
    assert _described(called.graph.nodes) == _described(known.graph.nodes)


def _described(nodes: Any) -> list[Any]:
    """Calls in order, with the places of the calls among their arguments."""
    calls = [
        node for node in nodes if node.op == "call_function" and (node.users or node.target is not operator.getitem)
    ]
    places = {node: place for place, node in enumerate(calls)}
    return [
        (node.target, torch.fx.map_arg((node.args, node.kwargs), lambda used: _place(used, places)), _size(node))
        for node in calls
    ]


def _place(node: Node, places: dict[Node, int]) -> Any:
    return f"call {places[node]}" if node in places else node.op


def _size(node: Node) -> Any:
    value = node.meta["val"]
    values = value if isinstance(value, (list, tuple)) else [value]
    return [(tuple(each.shape), each.dtype) for each in values]


def test_a_value_of_an_input_is_never_read() -> None:
    def function(x: torch.Tensor) -> Any:
        with KnownValues():
            return (x * x.sum().item(),)

    with pytest.raises(ReadsInputValue):
        record_call(function, [torch.randn(3)])


def numbers_from_values(x: torch.Tensor) -> Any:
    return (x * torch.ops.aten.item.default(x.sum()),)


def sizes_from_values(x: torch.Tensor) -> Any:
    return x.nonzero(), x[x > 0] * 2


@pytest.mark.parametrize("function", [numbers_from_values, sizes_from_values], ids=lambda each: each.__name__)
def test_what_depends_on_values_is_no_number_of_the_graph(function: Callable[..., Any]) -> None:
    graph = record_call(function, [torch.randn(3)]).graph
    last = graph.output_node().all_input_nodes[-1]
    if function is numbers_from_values:
        assert isinstance(last.args[1], Node)
    else:
        assert not isinstance(last.meta["val"].shape[0], int)
