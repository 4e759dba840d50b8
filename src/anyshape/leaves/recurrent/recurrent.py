"""Whole recurrent networks as operators (`anyshape::lstm`, `gru`, `rnn_tanh`, `rnn_relu`), and as a translation sees them.

All are time-major and in eval mode. `weights` is the flat list of torch.nn (per layer and direction: input, hidden,
two biases if any, projection if any). `lengths`, where given, says how many steps of each sequence count: what the
output holds after them is unspecified, and the final states are those of the last step that counts.
A packed sequence is a padded one, time-major, with its lengths: sorted downwards, at least 1, at most the number of
steps. Packed rows stand in torch's own order: all sequences' first steps, then all second steps, and so on.

`is_zero` says whether a value is known to be all zeros: ONNX needs no initial state then. The captured program is functional,
so a tensor made of zeros stays so. Not finding out is safe: the zeros are then computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18 as op
from torch import Tensor
from torch._ops import OpOverload
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from anyshape.leaves import define

_OPTIONS = "Tensor[] weights, Tensor? lengths, bool has_biases, int layers, bool bidirectional"
_ONE_STATE = f"(Tensor inputs, Tensor h0, {_OPTIONS}) -> (Tensor, Tensor)"
_TWO_STATES = f"(Tensor inputs, Tensor h0, Tensor c0, {_OPTIONS}) -> (Tensor, Tensor, Tensor)"
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

# mypy: disable-error-code="no-untyped-call"
# torch has functions without types.


def _counts(steps: int, lengths: Tensor) -> Tensor:
    """Which steps of which sequences count: bool[steps, batch]."""
    return torch.arange(steps, device=lengths.device)[:, None] < lengths


def _pack(inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    data, batch_sizes = torch._VF._pack_padded_sequence(inputs, lengths, False)  # type: ignore[attr-defined]
    return data, batch_sizes


def _fake_pack(inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    torch._check(lengths.shape[0] == inputs.shape[1], lambda: "as many lengths as sequences")
    context = torch.library.get_ctx()
    rows, steps = context.new_dynamic_size(min=1), context.new_dynamic_size(min=1)
    return inputs.new_empty((rows, *inputs.shape[2:])), lengths.new_empty((steps,), dtype=torch.int64)


def _repack(inputs: Tensor, lengths: Tensor, rows: int) -> Tensor:
    return inputs[_counts(inputs.shape[0], lengths)]


def _fake_repack(inputs: Tensor, lengths: Tensor, rows: int) -> Tensor:
    return inputs.new_empty((rows, *inputs.shape[2:]))


def _unpack(data: Tensor, lengths: Tensor, steps: int) -> Tensor:
    padded = data.new_zeros((steps, lengths.shape[0], *data.shape[1:]))
    padded[_counts(steps, lengths)] = data
    return padded


def _fake_unpack(data: Tensor, lengths: Tensor, steps: int) -> Tensor:
    return data.new_empty((steps, lengths.shape[0], *data.shape[1:]))


def _pad(inputs: Tensor, lengths: Tensor, value: float, steps: int | None) -> Tensor:
    wanted = inputs.shape[0] if steps is None else steps
    padded = inputs.new_full((wanted, *inputs.shape[1:]), value)
    known = min(wanted, inputs.shape[0])
    counts = _counts(known, lengths)
    padded[:known][counts] = inputs[:known][counts]
    return padded


def _fake_pad(inputs: Tensor, lengths: Tensor, value: float, steps: int | None) -> Tensor:
    return inputs.new_empty((inputs.shape[0] if steps is None else steps, *inputs.shape[1:]))


pack = define("pack", "(Tensor inputs, Tensor lengths) -> (Tensor, Tensor)", _pack, _fake_pack)
repack = define("repack", "(Tensor inputs, Tensor lengths, SymInt rows) -> Tensor", _repack, _fake_repack)
unpack = define("unpack", "(Tensor data, Tensor lengths, SymInt steps) -> Tensor", _unpack, _fake_unpack)
pad = define("pad", "(Tensor inputs, Tensor lengths, float value, SymInt? steps) -> Tensor", _pad, _fake_pad)


Function = Callable[..., tuple[Tensor, ...]]


def _run(
    function: Function, inputs: Tensor, states: Sequence[Tensor], lengths: Tensor | None, options: tuple[object, ...]
) -> tuple[Tensor, ...]:
    """Call torch's own function: padded as it is, or packed by `lengths` and padded again."""
    weights, has_biases, layers, bidirectional = options
    state = states[0] if len(states) == 1 else list(states)
    network = (weights, has_biases, layers, 0.0, False, bidirectional)
    if lengths is None:
        return function(inputs, state, *network, False)
    packed = pack_padded_sequence(inputs, lengths, enforce_sorted=False)
    order, back = packed.sorted_indices, packed.unsorted_indices
    assert order is not None and back is not None
    sorted_states = [each.index_select(1, order) for each in states]
    state = sorted_states[0] if len(states) == 1 else sorted_states
    data, *finals = function(packed.data, packed.batch_sizes, state, *network)
    sequence = PackedSequence(data, packed.batch_sizes, order, back)
    output, _ = pad_packed_sequence(sequence, total_length=inputs.shape[0])
    return output, *(final.index_select(1, back) for final in finals)


def _shapes(
    inputs: Tensor, states: Sequence[Tensor], lengths: Tensor | None, layers: int, bidirectional: bool
) -> tuple[Tensor, ...]:
    """The shapes of the outputs; what torch's own function would refuse is refused here too."""
    steps, batch, _ = inputs.shape
    directions = 2 if bidirectional else 1
    for state in states:
        torch._check(state.shape[0] == layers * directions, lambda: "a state of another number of layers")
        torch._check(state.shape[1] == batch, lambda: "a state of another batch size than the input")
    if lengths is not None:
        torch._check(lengths.shape[0] == batch, lambda: "as many lengths as sequences")
    output = inputs.new_empty(steps, batch, directions * states[0].shape[2])
    return output, *(inputs.new_empty(state.shape) for state in states)


def _define(name: str, function: Function, schema: str, states: int) -> OpOverload:
    """The operator of a function of torch that takes this number of states."""

    def run(inputs: Tensor, *given: Any) -> tuple[Tensor, ...]:
        weights, lengths, *network = given[states:]
        return _run(function, inputs, given[:states], lengths, (weights, *network))

    def fake(inputs: Tensor, *given: Any) -> tuple[Tensor, ...]:
        _, lengths, _, layers, bidirectional = given[states:]
        return _shapes(inputs, given[:states], lengths, layers, bidirectional)

    return define(name, schema, run, fake)


lstm = _define("lstm", torch.lstm, _TWO_STATES, 2)
gru = _define("gru", torch.gru, _ONE_STATE, 1)
rnn_tanh = _define("rnn_tanh", torch.rnn_tanh, _ONE_STATE, 1)
rnn_relu = _define("rnn_relu", torch.rnn_relu, _ONE_STATE, 1)


# mypy: disable-error-code="no-any-return"
# onnxscript has no types.


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
