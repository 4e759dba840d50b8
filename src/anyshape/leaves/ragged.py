"""Tensors of as many rows as values say: `repeat_interleave` by a tensor, and `pad_sequence` of such tensors.

    repeat_interleave(x, d, dim)   ->   x.index_select(dim, repeat_interleave(d))
    pad_sequence(pieces)           ->   pad_rows(cat(pieces), stack([count_rows(piece) for piece in pieces]))

torch's `pad_sequence` needs the longest length as an int. Joined, the pieces need no size of their own: a place of the result
is a row of the joined tensor where it is before the end of its piece, and else a row of padding behind all others:

    index = where(place < length, start + place, rows)
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true

from anyshape.intercept.selections import is_open_size
from anyshape.leaves import define

Function = Callable[..., Any]


def _count_rows(x: Tensor) -> Tensor:
    return torch.tensor(x.shape[0])


def _count_rows_shape(x: Tensor) -> Tensor:
    return x.new_empty((), dtype=torch.int64)


def _pad_rows(rows: Tensor, lengths: Tensor, value: float) -> Tensor:
    return torch._C._nn.pad_sequence(rows.split(lengths.tolist()), True, value)


def _pad_rows_shape(rows: Tensor, lengths: Tensor, value: float) -> Tensor:
    longest = torch.library.get_ctx().new_dynamic_size()
    return rows.new_empty((lengths.shape[0], longest, *rows.shape[1:]))


count_rows = define("count_rows", "(Tensor x) -> Tensor", _count_rows, _count_rows_shape)
pad_rows = define("pad_rows", "(Tensor rows, Tensor lengths, float value) -> Tensor", _pad_rows, _pad_rows_shape)


def has_open_rows(value: Any) -> bool:
    """Whether values decide how many rows a tensor has."""
    return isinstance(value, Tensor) and value.dim() > 0 and is_open_size(value.shape[0])


def _pad_sequence(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    names = ("sequences", "batch_first", "padding_value", "padding_side")
    given = {"batch_first": False, "padding_value": 0.0, "padding_side": "right", **kwargs}
    given |= dict(zip(names, args, strict=False))
    pieces = given.get("sequences")
    is_known = len(args) <= len(names) and set(given) == set(names) and given["padding_side"] == "right"
    if not is_known or not isinstance(pieces, (list, tuple)) or not any(map(has_open_rows, pieces)):
        return func(*args, **kwargs)
    if len({piece.dtype for piece in pieces}) > 1 or any(piece.dim() == 0 for piece in pieces):
        return func(*args, **kwargs)
    lengths = torch.stack([count_rows(piece) for piece in pieces])
    padded = pad_rows(torch.cat(list(pieces)), lengths, float(given["padding_value"]))
    return padded if given["batch_first"] else padded.transpose(0, 1).contiguous()


def _repeat(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    given = {"dim": None, "output_size": None, **kwargs, **dict(zip(("input", "repeats", "dim"), args, strict=False))}
    x, repeats, dim = given.get("input", given.get("self")), given.get("repeats"), given["dim"]
    if not isinstance(x, Tensor) or not isinstance(repeats, Tensor) or given["output_size"] is not None or x.dim() == 0:
        return func(*args, **kwargs)
    if len(args) > 3 or repeats.dim() != 1 or x.device != repeats.device:
        return func(*args, **kwargs)
    flat, axis = (x.flatten(), 0) if dim is None else (x, dim % x.dim())
    if not statically_known_true(flat.shape[axis] == repeats.shape[0]):  # one number for all rows
        return func(*args, **kwargs)
    return flat.index_select(axis, torch.repeat_interleave(repeats))


def replacements() -> dict[Any, Callable[..., Any]]:
    return {
        torch._C._nn.pad_sequence: _pad_sequence,
        torch.repeat_interleave: _repeat,
        Tensor.repeat_interleave: _repeat,
    }


def translations() -> dict[Any, Callable[..., Any]]:
    return {count_rows: _translate_count, pad_rows: _translate_padding}


def _translate_count(x: Any) -> Any:
    from onnxscript import opset18 as op

    return op.Squeeze(op.Shape(x, start=0, end=1))


def _translate_padding(rows: Any, lengths: Any, value: float) -> Any:
    import onnx_ir as ir
    from onnxscript import opset18 as op

    def ints(*values: int) -> Any:
        return op.Constant(value=ir.tensor(list(values), dtype=ir.DataType.INT64))

    def number(value: int) -> Any:
        return op.Constant(value=ir.tensor(value, dtype=ir.DataType.INT64))

    padding = op.CastLike(op.Constant(value=ir.tensor([value], dtype=ir.DataType.DOUBLE)), rows)
    row_shape = op.Concat(ints(1), op.Shape(rows, start=1), axis=0)
    table = op.Concat(rows, op.Expand(padding, row_shape), axis=0)
    starts = op.Sub(op.CumSum(lengths, number(0)), lengths)
    longest = op.ReduceMax(op.Concat(lengths, ints(0), axis=0), keepdims=0)
    places = op.Range(number(0), longest, number(1))
    ends = op.Unsqueeze(lengths, ints(1))
    index = op.Add(op.Unsqueeze(starts, ints(1)), places)
    chosen = op.Where(op.Less(places, ends), index, op.Shape(rows, start=0, end=1))
    return op.Gather(table, chosen, axis=0)
