"""A recurrent network as a translation sees it: its kind, its cells by layer and direction, its initial states.

Whether a value is known to be all zeros, from the captured program that stands behind it.

The program is functional, so a tensor made of zeros stays so. Not finding out is safe: the zeros are then computed.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op


class Kind(Enum):
    """The recurrent networks of torch. The value is the number of their gates; a plain RNN has its activation too."""

    LSTM = (4, "")
    GRU = (3, "")
    RNN_TANH = (1, "Tanh")
    RNN_RELU = (1, "Relu")

    @property
    def gates(self) -> int:
        return self.value[0]

    @property
    def activation(self) -> str:
        return self.value[1]


@dataclass(frozen=True)
class Cell:
    """The weights of one layer in one direction, as torch has them. No other cell has the same name."""

    name: str
    input_weight: ir.Value
    hidden_weight: ir.Value
    input_bias: ir.Value | None = None
    hidden_bias: ir.Value | None = None
    projection: ir.Value | None = None


@dataclass(frozen=True)
class State:
    """An initial state, [layers x directions, batch, features], and whether it is known to be all zeros."""

    value: ir.Value
    is_zero: bool


@dataclass(frozen=True)
class Network:
    """Cells by layer, then by direction. `lengths`: how many steps of each sequence count; None: all."""

    kind: Kind
    layers: Sequence[Sequence[Cell]]
    lengths: ir.Value | None
    hidden_size: int
    output_size: int
    """Of one direction: the hidden size, or that of the projection."""
    dtype: ir.DataType
    """In which it is computed."""

    @property
    def is_projected(self) -> bool:
        return self.layers[0][0].projection is not None


def make_network(
    kind: Kind,
    weights: Sequence[ir.Value],
    lengths: ir.Value | None,
    has_biases: bool,
    layers: int,
    bidirectional: bool,
) -> Network:
    """A network from torch's flat list of weights."""
    cells = _split_cells(weights, has_biases, layers, 2 if bidirectional else 1)
    gate_rows, output_size = _shape(cells[0][0].hidden_weight)
    dtype = cells[0][0].hidden_weight.dtype
    assert dtype is not None
    return Network(kind, cells, lengths, gate_rows // kind.gates, output_size, dtype)


def _shape(value: ir.Value) -> tuple[int, ...]:
    assert value.shape is not None
    return tuple(int(size) for size in value.shape)  # type: ignore[arg-type]


def _split_cells(weights: Sequence[ir.Value], has_biases: bool, layers: int, directions: int) -> list[list[Cell]]:
    size = len(weights) // (layers * directions)
    cells = [_make_cell(weights[start : start + size], has_biases) for start in range(0, len(weights), size)]
    return [cells[start : start + directions] for start in range(0, len(cells), directions)]


def _make_cell(weights: Sequence[ir.Value], has_biases: bool) -> Cell:
    input_weight, hidden_weight, *rest = weights
    biases = rest[:2] if has_biases else (None, None)
    projection = rest[2:] if has_biases else rest
    return Cell(str(input_weight.name), input_weight, hidden_weight, *biases, *projection)


def cast_network(network: Network, dtype: ir.DataType) -> Network:
    return replace(
        network, dtype=dtype, layers=[[_cast_cell(cell, dtype) for cell in layer] for layer in network.layers]
    )


def _cast_cell(cell: Cell, dtype: ir.DataType) -> Cell:
    weights = {field.name: value for field in fields(cell) if isinstance(value := getattr(cell, field.name), ir.Value)}
    return replace(cell, **{name: op.Cast(value, to=dtype) for name, value in weights.items()})


def concat(values: Sequence[ir.Value], axis: int) -> ir.Value:
    return values[0] if len(values) == 1 else op.Concat(*values, axis=axis)


def stack(values: Sequence[ir.Value]) -> ir.Value:
    return concat([op.Unsqueeze(value, [0]) for value in values], axis=0)


def join_directions(outputs: ir.Value, directions: int, features: int) -> ir.Value:
    """[steps, directions, batch, features]  ->  [steps, batch, directions x features]."""
    if directions == 1:
        return op.Squeeze(outputs, [1])
    return op.Reshape(op.Transpose(outputs, perm=[0, 2, 1, 3]), [0, 0, directions * features])


_ZEROS = ("aten::zeros", "aten::zeros_like", "aten::new_zeros")
_FILL_AT = {"aten::full": 1, "aten::full_like": 1, "aten::new_full": 2}
"""Where the fill value stands among the arguments."""
_REARRANGED = frozenset(
    f"aten::{name}"
    for name in (
        *("alias", "clone", "contiguous", "detach", "lift_fresh_copy", "to", "_to_copy"),
        *("expand", "index_select", "permute", "select", "slice", "squeeze", "transpose", "unsqueeze", "view"),
    )
)


def is_zero(value: ir.Value) -> bool:
    producer = value.producer()
    return producer is not None and _is_zero(producer.meta.get("node"))


def _is_zero(node: Any) -> bool:
    """`node` is an fx node of the captured program, or None where torch.onnx did not leave one."""
    schema = getattr(getattr(node, "target", None), "_schema", None)
    if schema is None:
        return False
    if schema.name in _REARRANGED:
        return _is_zero(node.args[0])
    if schema.name in _FILL_AT:
        return bool(node.args[_FILL_AT[schema.name]] == 0)
    return schema.name in _ZEROS
