"""`chunk`, `split` and `tensor_split` of an axis whose size is open -> one split by sizes that follow the axis.

torch traces the pieces of the traced size. Here the number of pieces stays what it was, and each piece's size is an
expression: that the number is right is a guard, `2 * ((T + 2) // 3) < T` for three chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import SymInt, Tensor

Function = Callable[..., Any]
Size = int | SymInt


def replacements() -> dict[Any, Callable[..., Any]]:
    return {
        torch.chunk: _chunk,
        Tensor.chunk: _chunk,
        torch.unsafe_chunk: _chunk,
        Tensor.unsafe_chunk: _chunk,
        torch.split: _split,
        Tensor.split: _split,
        torch.tensor_split: _tensor_split,
        Tensor.tensor_split: _tensor_split,
    }


def _chunk(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    x, chunks, dim = _bind(("self", "chunks", "dim"), args, kwargs)
    size = x.shape[dim]
    if not isinstance(size, SymInt) or not isinstance(chunks, int) or chunks < 1:
        return func(*args, **kwargs)
    piece = (size + chunks - 1) // chunks
    count = chunks
    while count > 1 and not (count - 1) * piece < size:
        count -= 1
    return _by_sizes(x, [piece] * (count - 1), dim)


def _split(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    x, piece, dim = _bind(("tensor", "split_size_or_sections", "dim"), args, kwargs)
    size = x.shape[dim]
    if isinstance(piece, (list, tuple)) or not (isinstance(size, SymInt) or isinstance(piece, SymInt)):
        return func(*args, **kwargs)
    hints = _hint(size), _hint(piece)
    if None in hints or hints[1] < 1 or hints[0] < 1:
        return func(*args, **kwargs)
    count = -(-hints[0] // hints[1])
    if not ((count - 1) * piece < size and size <= count * piece):
        return func(*args, **kwargs)
    return _by_sizes(x, [piece] * (count - 1), dim)


def _tensor_split(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The first `size % count` pieces have one more: no condition at all on the size."""
    x, count, dim = _bind(
        ("self", "indices_or_sections", "dim"), args, {_SECTIONS.get(k, k): v for k, v in kwargs.items()}
    )
    size = x.shape[dim] if x.dim() else 0
    if not isinstance(size, SymInt) or not isinstance(count, int) or count < 1:
        return func(*args, **kwargs)
    return _by_sizes(x, [(size + count - 1 - number) // count for number in range(count - 1)], dim)


_SECTIONS = {"sections": "indices_or_sections", "indices": "indices_or_sections"}


def _by_sizes(x: Tensor, sizes: list[Size], dim: int) -> tuple[Tensor, ...]:
    """Pieces of these sizes, and the rest."""
    rest = x.shape[dim] - sum(sizes) if sizes else x.shape[dim]
    pieces: tuple[Tensor, ...] = torch.split_with_sizes(x, [*sizes, rest], dim)  # type: ignore[assignment]
    return tuple(pieces)


def _hint(size: Size) -> Any:
    """The traced size; None where it depends on values."""
    return size if isinstance(size, int) else size.node.hint


def _bind(names: tuple[str, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    given = {"dim": 0, **dict(zip(names, args, strict=False)), **kwargs}
    x = given.get(names[0], given.get("input"))
    return (x, given[names[1]], given["dim"])
