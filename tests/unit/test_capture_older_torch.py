"""Lengths of slices and of pooled axes, and the dtype of unique values' positions, are the same on every version of torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from anyshape.capture.torch_export import symbolic_sizes


class Sliced(nn.Module):
    """A table of twelve rows, sliced between two numbers that are made of a size."""

    def __init__(self, first: Any, last: Any) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(12.0))
        self.first, self.last = first, last

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.table[self.first(x.shape[0]) : self.last(x.shape[0])]  # type: ignore[index]


def _length(module: nn.Module) -> Any:
    with symbolic_sizes():
        program = torch.export.export(module, (torch.randn(5),), dynamic_shapes=({0: Dim.AUTO},), strict=False)
    (output,) = next(node for node in program.graph.nodes if node.op == "output").args[0]
    return output.meta["val"].shape[0]


@pytest.mark.parametrize(
    "first, last",
    [
        (lambda n: None, lambda n: n),
        (lambda n: n, lambda n: 2 * n),
        (lambda n: 2, lambda n: -n),
        (lambda n: -n, lambda n: None),
        (lambda n: 4, lambda n: n),
    ],
)
def test_the_length_of_a_slice_is_made_of_sizes(first: Any, last: Any) -> None:
    length = _length(Sliced(first, last))
    (symbol,) = length.node.expr.free_symbols
    assert symbol.name.startswith("s")
    for size in range(2, 30):
        expected = torch.arange(12.0)[first(size) : last(size)].shape[0]
        assert int(length.node.expr.subs(symbol, size)) == expected


class Unique(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            *torch.unique(x, return_inverse=True, return_counts=True),
            *torch.unique_consecutive(x, return_inverse=True, return_counts=True),
            *torch.unique(x[:, None], dim=0, return_inverse=True, return_counts=True),
        )


def test_positions_and_counts_of_unique_values_are_int64() -> None:
    module, x = Unique(), torch.randn(5)
    with symbolic_sizes():
        program = torch.export.export(module, (x,), dynamic_shapes=({0: Dim.AUTO},), strict=False)
    outputs = next(node for node in program.graph.nodes if node.op == "output").args[0]
    assert [output.meta["val"].dtype for output in outputs] == [output.dtype for output in module(x)]


def test_the_length_of_a_pooled_axis_has_no_condition_on_a_remainder() -> None:
    from anyshape.capture.guards import shape_environment

    with symbolic_sizes():
        program = torch.export.export(
            nn.AvgPool1d(4), (torch.randn(2, 3, 14),), dynamic_shapes=({2: Dim.AUTO},), strict=False
        )
    environment = shape_environment(program)
    assert environment is not None
    assert not [guard for guard in environment.guards if "Mod" in str(guard.expr)]
