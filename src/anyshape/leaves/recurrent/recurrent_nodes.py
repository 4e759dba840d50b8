"""`anyshape::lstm`, `gru`, `rnn_tanh` and `rnn_relu` in ONNX: layer by layer, by ONNX's own operator or by `Scan`.

The operator wherever it can: float32 and float16, and a projection where the hidden state starts at zero. `Scan`, which
computes just what torch does, for float64 (onnxruntime has no such kernels) and for a projection of a given state.
bfloat16, which the operators lack, is computed in float32.

`anyshape::pack`, `repack`, `unpack` and `pad` in ONNX: gathers and scatters at the steps that count.

`counts`, bool[steps, batch], says which steps of which sequences count; its true places, row by row, stand in the order
in which torch packs.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.leaves.recurrent.network import Kind, Network, State, cast_network, concat, is_zero, make_network
from anyshape.leaves.recurrent.step import native_layer, scan_layer

_DOUBLE, _FLOAT, _HALF = ir.DataType.DOUBLE, ir.DataType.FLOAT, ir.DataType.FLOAT16


def _translation(kind: Kind, states: int = 1) -> Callable[..., Sequence[ir.Value]]:
    """The nodes of an operator: inputs, its states, weights, lengths, has_biases, layers, bidirectional."""

    def translate(inputs: ir.Value, *given: Any) -> Sequence[ir.Value]:
        return _translate(make_network(kind, *given[states:]), inputs, given[:states])

    return translate


translate_lstm = _translation(Kind.LSTM, states=2)
translate_gru = _translation(Kind.GRU)
translate_rnn_tanh = _translation(Kind.RNN_TANH)
translate_rnn_relu = _translation(Kind.RNN_RELU)


def _translate(network: Network, inputs: ir.Value, initial: Sequence[ir.Value]) -> Sequence[ir.Value]:
    states = [State(value, is_zero(value)) for value in initial]
    by_scan = network.dtype == _DOUBLE or (network.is_projected and not states[0].is_zero)
    # In half precision a folded projection would be rounded to half precision too: an error that torch does not make.
    if network.dtype in (_DOUBLE, _FLOAT) or (network.dtype == _HALF and not network.is_projected):
        return _translate_layers(network, inputs, states, by_scan=by_scan)
    wide_states = [replace(state, value=op.Cast(state.value, to=_FLOAT)) for state in states]
    wide_input = op.Cast(inputs, to=_FLOAT)
    results = _translate_layers(cast_network(network, _FLOAT), wide_input, wide_states, by_scan=by_scan)
    return [op.Cast(result, to=network.dtype) for result in results]


def _translate_layers(
    network: Network, inputs: ir.Value, states: Sequence[State], *, by_scan: bool
) -> Sequence[ir.Value]:
    """The output of the last layer, then each final state, the layers stacked."""
    translate_layer = scan_layer if by_scan else native_layer
    finals: list[Sequence[ir.Value]] = []
    for index, cells in enumerate(network.layers):
        start, end = index * len(cells), (index + 1) * len(cells)
        own = states if len(network.layers) == 1 else [_layer_of(state, start, end) for state in states]
        inputs, layer_finals = translate_layer(network, cells, inputs, own)
        finals.append(layer_finals)
    return [inputs, *(concat(layers, axis=0) for layers in zip(*finals, strict=True))]


def _layer_of(state: State, start: int, end: int) -> State:
    return replace(state, value=op.Slice(state.value, [start], [end], [0]))


def translate_pack(inputs: ir.Value, lengths: ir.Value) -> Sequence[ir.Value]:
    counts = _counts(_first_size(inputs), lengths)
    sizes = op.ReduceSum(op.Cast(counts, to=ir.DataType.INT64), [1], keepdims=0)
    longest = op.ReduceMax(lengths, keepdims=1)
    return op.GatherND(inputs, _places(counts)), op.Slice(sizes, [0], longest, [0])


def translate_repack(inputs: ir.Value, lengths: ir.Value, rows: ir.Value | int) -> ir.Value:
    return op.GatherND(inputs, _places(_counts(_first_size(inputs), lengths)))


def translate_unpack(data: ir.Value, lengths: ir.Value, steps: ir.Value | int) -> ir.Value:
    wanted = _as_vector(steps)
    shape = op.Concat(wanted, op.Shape(lengths), op.Shape(data, start=1), axis=0)
    nothing = op.Expand(op.CastLike(0.0, data), shape)
    return op.ScatterND(nothing, _places(_counts(wanted, lengths)), data)


def translate_pad(inputs: ir.Value, lengths: ir.Value, value: float, steps: ir.Value | int | None) -> ir.Value:
    assert inputs.shape is not None
    rank = len(inputs.shape)
    given = _first_size(inputs)
    wanted = given if steps is None else _as_vector(steps)
    if steps is not None:
        missing = op.Max(op.Sub(wanted, given), _ints([0]))
        ends = op.Concat(_ints([0] * rank), missing, _ints([0] * (rank - 1)), axis=0)
        inputs = op.Pad(op.Slice(inputs, [0], wanted, [0]), ends)
    counts = op.Unsqueeze(_counts(wanted, lengths), list(range(2, rank))) if rank > 2 else _counts(wanted, lengths)
    return op.Where(counts, inputs, op.CastLike(value, inputs))


def _counts(steps: ir.Value, lengths: ir.Value) -> ir.Value:
    each = op.Range(0, op.Squeeze(steps, [0]), 1)
    return op.Less(op.Unsqueeze(each, [1]), op.Unsqueeze(lengths, [0]))


def _places(counts: ir.Value) -> ir.Value:
    return op.Transpose(op.NonZero(counts), perm=[1, 0])


def _first_size(value: ir.Value) -> ir.Value:
    return op.Shape(value, start=0, end=1)


def _as_vector(size: ir.Value | int) -> ir.Value:
    return _ints([size]) if isinstance(size, int) else op.Reshape(size, [1])


def _ints(values: Sequence[int]) -> ir.Value:
    return op.Constant(value_ints=values)
