"""Operators that programs with loops hold: `anyshape::loop`, and pieces of a tensor (`pick`, `cut`, `put` and `put_slice`).

torch's own `select` and `slice` record conditions on a computed place (is it negative, does it reach beyond the end), which
a place learned from traces is known already; these record none. No place here is negative or beyond the end.

The body of a loop is not an argument: the record of the capture has it under the loop's name. `sizes` are the sizes of all
axes of all results, one result after the other, `ranks` of them each; so no kernel needs to know the body.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from anyshape.leaves.define import define


def _pick(tensor: Tensor, axis: int, index: int) -> Tensor:
    return tensor.select(axis, index).clone()


def _pick_shape(tensor: Tensor, axis: int, index: int) -> Tensor:
    return tensor.new_empty([size for place, size in enumerate(tensor.shape) if place != axis])


def _cut(tensor: Tensor, axis: int, start: int, size: int, step: int) -> Tensor:
    return tensor.narrow(axis, start, (size - 1) * step + 1 if size else 0)[
        (slice(None),) * axis + (slice(None, None, step),)
    ].clone()


def _cut_shape(tensor: Tensor, axis: int, start: int, size: int, step: int) -> Tensor:
    shape = list(tensor.shape)
    shape[axis] = size
    return tensor.new_empty(shape)


def _put(tensor: Tensor, source: Tensor, axis: int, index: int) -> Tensor:
    return tensor.select_scatter(source, axis, index)


def _put_shape(tensor: Tensor, source: Tensor, axis: int, index: int) -> Tensor:
    return tensor.new_empty(tensor.shape)


def _put_slice(tensor: Tensor, source: Tensor, axis: int, start: int) -> Tensor:
    return tensor.slice_scatter(source, axis, start, start + source.shape[axis])


def _put_slice_shape(tensor: Tensor, source: Tensor, axis: int, start: int) -> Tensor:
    return tensor.new_empty(tensor.shape)


pick = define("pick", "(Tensor tensor, int axis, SymInt index) -> Tensor", _pick, _pick_shape)
cut = define("cut", "(Tensor tensor, int axis, SymInt start, SymInt size, int step) -> Tensor", _cut, _cut_shape)
put = define("put", "(Tensor tensor, Tensor source, int axis, SymInt index) -> Tensor", _put, _put_shape)
put_slice = define(
    "put_slice", "(Tensor tensor, Tensor source, int axis, SymInt start) -> Tensor", _put_slice, _put_slice_shape
)


_SCHEMA = (
    "(str name, SymInt trips, Tensor[] carried, Tensor[] tensors, SymInt[] numbers, SymInt[] sizes, int[] ranks, "
    "str[] dtypes) -> Tensor[]"
)


def _run(name: str, *_: object) -> list[Tensor]:
    raise RuntimeError(f"loop {name!r} is a mark in a program: its body is elsewhere, and only the ONNX file runs it")


def _shapes(
    name: str,
    trips: int,
    carried: Sequence[Tensor],
    tensors: Sequence[Tensor],
    numbers: Sequence[int],
    sizes: Sequence[int],
    ranks: Sequence[int],
    dtypes: Sequence[str],
) -> list[Tensor]:
    device = next((tensor.device for tensor in (*carried, *tensors)), torch.device("cpu"))
    results, rest = [], list(sizes)
    for rank, dtype in zip(ranks, dtypes, strict=True):
        shape, rest = rest[:rank], rest[rank:]
        results.append(torch.empty(shape, dtype=getattr(torch, dtype), device=device))
    return results


loop = define("loop", _SCHEMA, _run, _shapes)
