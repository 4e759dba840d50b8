"""Texts that make a table of one size at other sizes, where its values follow a pattern.

    zeros of (1, 3, 6)              ->  self.hidden.new_zeros(1, x.shape[0], 6)
    equal rows                      ->  self.bias[:1].expand(x.shape[0], -1)
    0, 1, 2, ...                    ->  torch.arange(x.shape[1], device=self.steps.device)
    a triangle                      ->  self.mask.new_ones(x.shape[1], x.shape[1]).triu(1)

A table without a pattern can be cut, `self.pos[:, : x.shape[1]]`. A parameter can only be cut: its values come from training,
and equal ones are no pattern. All of these are guesses: `[0, 0, 0, 0, 0]` may be `i // 16`, and `[0.2] * 5` may be 1 / 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from anyshape.repair.known_constants import Array, Counting, Diagonal, find_counting, find_diagonal, varying_axes

_MOST_ELEMENTS = 1 << 22


def table_texts(held: str, table: torch.Tensor, axes: Mapping[int, str]) -> Iterator[str]:
    """Texts for the table `held` that follow the sizes in `axes`, the one that goes on with its pattern first."""
    if table.numel() > _MOST_ELEMENTS or not table.numel() or table.dtype is torch.bfloat16:
        return
    array = table.detach().cpu().numpy()
    shape = [axes.get(axis, str(size)) for axis, size in enumerate(table.shape)]
    text = _regular(held, array, axes, shape) if not isinstance(table, torch.nn.Parameter) else ""
    if text:
        yield text
    cut = ", ".join(f": {axes[axis]}" if axis in axes else ":" for axis in range(max(axes) + 1))
    yield f"{held}[{cut}]"


def _regular(held: str, array: Array, axes: Mapping[int, str], shape: Sequence[str]) -> str:
    varying = varying_axes(array, axes)
    if not varying:
        return _equal(held, array, axes, shape)
    if len(varying) == 1:
        counting = find_counting(array, varying[0])
        return _counting(held, array, counting, axes) if counting is not None and len(axes) == 1 else ""
    rows, columns = varying[:2]
    is_square = len(varying) == 2 == len(axes) and axes[rows] == axes[columns] and columns == array.ndim - 1 == rows + 1
    diagonal = find_diagonal(array, rows, columns) if is_square else None
    return _diagonal(held, diagonal, shape) if diagonal is not None else ""


def _equal(held: str, array: Array, axes: Mapping[int, str], shape: Sequence[str]) -> str:
    """The same values along the axes that follow sizes."""
    if varying_axes(array, range(array.ndim)):
        cut = ", ".join(":1" if axis in axes else ":" for axis in range(max(axes) + 1))
        wide = ", ".join(axes.get(axis, "-1") for axis in range(array.ndim))
        return f"{held}[{cut}].expand({wide})"
    return _filled(held, array.reshape(-1)[0], shape)


def _filled(held: str, value: Any, shape: Sequence[str]) -> str:
    inside = ", ".join(shape)
    if value == 0 and not np.signbit(np.asarray(value, dtype=np.float64)):
        return f"{held}.new_zeros({inside})"
    if value == 1:
        return f"{held}.new_ones({inside})"
    return f"{held}.new_full(({inside}{',' if len(shape) == 1 else ''}), {_number(value)})"


def _number(value: Any) -> str:
    number = value.item()
    is_plain = isinstance(number, int) or np.isfinite(number)
    return repr(number) if is_plain else f'float("{number}")'


def _counting(held: str, array: Array, counting: Counting, axes: Mapping[int, str]) -> str:
    """`start + step * i` along one axis; the other axes have to have one element each."""
    if array.size != array.shape[counting.axis]:
        return ""
    size = axes[counting.axis]
    start, step = (int(each.flat[0]) for each in (counting.start, counting.step))
    text = f"torch.arange({size}, dtype={held}.dtype, device={held}.device)"
    text = text if step == 1 else f"{step} * {text}"
    text = text if start == 0 else f"{start} + {text}"
    if array.ndim == 1:
        return text if text.startswith("torch") else f"({text})"
    shape = ", ".join("-1" if axis == counting.axis else "1" for axis in range(array.ndim))
    return f"({text}).view({shape})" if not text.startswith("torch") else f"{text}.view({shape})"


def _diagonal(held: str, diagonal: Diagonal, shape: Sequence[str]) -> str:
    """Two values beside a diagonal, one of which has to be zero."""
    offset, here, there = diagonal.offset, diagonal.here, diagonal.there
    if diagonal.relation == "Equal":
        is_plain = offset == 0 and there == 0
        return f"{_filled(held, here[()], shape)}.tril().triu()" if is_plain else ""
    is_upper = diagonal.relation == "Greater"
    edge = offset + 1 if is_upper else offset - 1
    if here == 0 != there:  # the other side of the diagonal
        is_upper, edge, here, there = not is_upper, edge - 1 if is_upper else edge + 1, there, here
    if there != 0:
        return ""
    inside = "" if edge == 0 else str(edge)
    return f"{_filled(held, here[()], shape)}.{'triu' if is_upper else 'tril'}({inside})"
