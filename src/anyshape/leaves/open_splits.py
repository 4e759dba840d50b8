"""An axis whose size is open, split into parts (`chunk`, `split`, `tensor_split`), or pooled over as a whole.

torch traces the pieces of the traced size. Here the number of pieces stays what it was, and each piece's size is an
expression: that the number is right is a guard, `2 * ((T + 2) // 3) < T` for three chunks.

A kernel is an attribute in ONNX and a plain int in torch, so an open one would be frozen (seen to torch 2.13). Other
kernels are left alone. A number of bins is a plain int as well, so an axis that keeps its size is not pooled at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import SymInt, Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true

Function = Callable[..., Any]
Size = int | SymInt
_SECTIONS = {"sections": "indices_or_sections", "indices": "indices_or_sections"}


def _of_splits() -> dict[Any, Callable[..., Any]]:
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


def _of_pooling() -> dict[Any, Callable[..., Any]]:
    averages = {F.avg_pool1d: 1, F.avg_pool2d: 2, F.avg_pool3d: 3}
    greatest = {F.max_pool1d: 1, F.max_pool2d: 2, F.max_pool3d: 3}
    return {
        **{function: _over_all(Tensor.mean, axes) for function, axes in averages.items()},
        **{function: _over_all(Tensor.amax, axes) for function, axes in greatest.items()},
        **{getattr(torch, f"max_pool{axes}d"): _over_all(Tensor.amax, axes) for axes in (1, 2, 3)},
        **dict.fromkeys((F.max_pool1d, torch.max_pool1d), _max_of_rows),
        **dict.fromkeys((F.adaptive_max_pool2d, F.adaptive_max_pool2d_with_indices), _adaptive_max(2)),
        **dict.fromkeys((F.adaptive_max_pool3d, F.adaptive_max_pool3d_with_indices), _adaptive_max(3)),
    }


def _adaptive_max(count: int) -> Function:
    """With axes that keep their size: the greatest of the greatest, axis by axis, and of equals the first."""

    def replacement(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        names = ("input", "output_size", "return_indices")
        given = {"return_indices": False, **kwargs, **dict(zip(names, args, strict=False))}
        x, bins = given["input"], given["output_size"]
        is_kept = isinstance(bins, (tuple, list)) and None in bins and len(bins) == count
        if not is_kept or x.dim() not in (count + 1, count + 2):
            return func(*args, **kwargs)
        places: list[Tensor] = []
        sizes = x.shape[-count:]
        for axis in range(-1, -count - 1, -1):
            if bins[axis] is None:
                number = torch.arange(sizes[axis], device=x.device)
                chosen = number.reshape(-1, *[1] * (-axis - 1)).expand(x.shape)
            else:
                x, chosen = _greatest_along(x, axis, bins[axis])
                places = [place.gather(axis, chosen) for place in places]
            places.insert(0, chosen)
        return (x, _flat(places, sizes)) if given["return_indices"] else x

    return replacement


def _greatest_along(x: Tensor, axis: int, bins: int) -> list[Tensor]:
    moved = x.movedim(axis, -1)
    pooled = F.adaptive_max_pool1d(moved.flatten(1, -2), bins, return_indices=True)
    return [part.reshape(*moved.shape[:-1], bins).movedim(-1, axis) for part in pooled]


def _flat(places: list[Tensor], sizes: Any) -> Tensor:
    flat = places[0]
    for place, size in zip(places[1:], sizes[1:], strict=True):
        flat = flat * size + place
    return flat


def _over_all(reduce: Function, count: int) -> Function:
    def replacement(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        x = kwargs.get("input", args[0] if args else None)
        kernel = kwargs.get("kernel_size", args[1] if len(args) > 1 else None)
        kernels = tuple(kernel) if isinstance(kernel, (tuple, list)) else (kernel,) * count
        if not isinstance(x, Tensor) or not any(isinstance(size, SymInt) for size in kernels):
            return func(*args, **kwargs)
        sizes = x.shape[-count:]
        covers = all(statically_known_true(one == other) for one, other in zip(kernels, sizes, strict=False))
        if not covers or len(kernels) != count or not _is_plain(args, kwargs):
            return func(*args, **kwargs)
        return reduce(x, tuple(range(-count, 0)), keepdim=True)

    return replacement


def _max_of_rows(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """max_pool1d(x) -> max_pool2d of x as rows of height 1, whose length stays open.

    torch's kernel for one axis reads the length as a plain int, and the capture would hold for the traced one alone.
    """
    names = ("input", "kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    x, kernel = given.get("input"), given.get("kernel_size")
    if not isinstance(x, Tensor) or x.dim() not in (2, 3) or given.get("return_indices"):
        return func(*args, **kwargs)
    if isinstance(_only(kernel), SymInt) or not isinstance(x.shape[-1], SymInt):
        return _over_all(Tensor.amax, 1)(func, args, kwargs)
    stride = _only(given.get("stride"))
    rows = F.max_pool2d(
        x.unsqueeze(-2),
        (1, _only(kernel)),
        (1, _only(kernel) if stride is None else stride),
        (0, _only(given.get("padding", 0))),
        (1, _only(given.get("dilation", 1))),
        given.get("ceil_mode", False),
    )
    return rows.squeeze(-2)


def _only(value: Any) -> Any:
    """The one number of a list for one axis; None of an empty list."""
    return next(iter(value), None) if isinstance(value, (tuple, list)) else value


def _is_plain(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether nothing beside the kernel and the stride is asked for: the one window starts at the first element."""
    beside = {name: value for name, value in kwargs.items() if name not in ("input", "kernel_size", "stride")}
    usual: dict[str, tuple[Any, ...]] = {
        "padding": (0, (0,), (0, 0)),
        "dilation": (1,),
        "return_indices": (False,),
        "ceil_mode": (False,),
    }
    usual |= {"count_include_pad": (True, False), "divisor_override": (None,)}
    return len(args) <= 3 and all(value in usual.get(name, ()) for name, value in beside.items())


def replacements() -> dict[Any, Callable[..., Any]]:
    return {**_of_splits(), **_of_pooling()}
