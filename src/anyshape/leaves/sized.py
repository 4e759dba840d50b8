"""Functions that torch traces at the traced sizes only -> the same in functions that keep sizes open.

`linspace`, `tril_indices`, `affine_grid`, `take_along_dim`, `kron`, `cdist`, `vander`, `fill_diagonal_` and others take
plain ints, or compare sizes, inside torch: with an open size they get the traced one (seen to torch 2.13). Calls without
one are left alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import SymFloat, SymInt, Tensor

Function = Callable[..., Any]
Size = Any
"""An int or a SymInt, with which torch's type hints cannot compute."""
_MODES = {"use_mm_for_euclid_dist_if_necessary": 0, "use_mm_for_euclid_dist": 1, "donot_use_mm_for_euclid_dist": 2}


def replacements() -> dict[Any, Callable[..., Any]]:
    return {
        torch.linspace: _linspace,
        torch.logspace: _logspace,
        torch.fft.fftfreq: _fftfreq,
        torch.fft.rfftfreq: _rfftfreq,
        torch.tril_indices: _triangle_indices,
        torch.triu_indices: _triangle_indices,
        torch.combinations: _combinations,
        F.affine_grid: _affine_grid,
        F.pad: _pad,
        torch.take_along_dim: _take_along_dim,
        Tensor.take_along_dim: _take_along_dim,
        torch.kron: _kron,
        Tensor.kron: _kron,
        torch.cdist: _cdist,
        torch.vander: _vander,
        torch.div: _div,
        F.adaptive_avg_pool1d: adaptive_avg_pool1d,
        torch.adaptive_avg_pool1d: adaptive_avg_pool1d,
        Tensor.fill_diagonal_: _fill_diagonal,
    }


def is_open(*values: Any) -> bool:
    return any(isinstance(value, (SymInt, SymFloat)) for value in values)


def _linspace(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    start, end, steps = arguments(("start", "end", "steps"), args, kwargs)
    if not is_open(start, end, steps):
        return func(*args, **kwargs)
    dtype = kwargs.get("dtype") or torch.get_default_dtype()
    return _spread(start, end, steps, dtype, kwargs.get("device")).to(dtype)


def _logspace(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    start, end, steps, base = arguments(("start", "end", "steps", "base"), args, {"base": 10.0, **kwargs})
    if not is_open(start, end, steps, base):
        return func(*args, **kwargs)
    dtype = kwargs.get("dtype") or torch.get_default_dtype()
    return torch.pow(base, _spread(start, end, steps, dtype, kwargs.get("device"))).to(dtype)


def _spread(start: Any, end: Any, steps: Size, dtype: torch.dtype, device: Any) -> Tensor:
    """`linspace` as torch's kernel computes it: from both ends towards the middle; integers by way of float64."""
    working = dtype if dtype.is_floating_point else torch.float64
    number = torch.arange(steps, device=device)
    place = number.to(working)
    begin = torch.zeros((), dtype=working, device=device) + start
    finish = torch.zeros((), dtype=working, device=device) + end
    step = (finish - begin) / torch.sym_max(steps - 1, 1)
    return torch.where(number < steps // 2, begin + step * place, finish - step * (steps - 1 - place)).where(
        number > 0, begin
    )


def _fftfreq(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    size, spacing = arguments(("n", "d"), args, {"d": 1.0, **kwargs})
    if not is_open(size):
        return func(*args, **kwargs)
    number = torch.arange(size, device=kwargs.get("device"))
    turns = torch.where(number < (size + 1) // 2, number, number - size)
    return turns.to(kwargs.get("dtype") or torch.get_default_dtype()) / (size * spacing)


def _rfftfreq(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    size, spacing = arguments(("n", "d"), args, {"d": 1.0, **kwargs})
    if not is_open(size):
        return func(*args, **kwargs)
    dtype = kwargs.get("dtype") or torch.get_default_dtype()
    return torch.arange(size // 2 + 1, device=kwargs.get("device")).to(dtype) / (size * spacing)


def _triangle_indices(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """`torch.tril_indices` and `torch.triu_indices`."""
    row, col, offset = arguments(("row", "col", "offset"), args, {"offset": 0, **kwargs})
    if not is_open(row, col, offset):
        return func(*args, **kwargs)
    mask = torch.ones(row, col, dtype=torch.bool, device=kwargs.get("device"))
    if func is torch.tril_indices:
        return _places(mask.tril(offset), _count_lower(row, col, offset), kwargs)
    return _places(mask.triu(offset), row * col - _count_lower(row, col, offset - 1), kwargs)


def _places(mask: Tensor, count: Size, kwargs: Mapping[str, Any]) -> Tensor:
    return torch.nonzero_static(mask, size=count).t().to(kwargs.get("dtype") or torch.int64)


def _count_lower(row: Size, col: Size, offset: Size) -> Size:
    """How many entries lie on or below a diagonal."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    if statically_known_true(row == col) and isinstance(offset, int) and offset in (0, -1):
        return row * (row + 1 + 2 * offset) // 2
    last = torch.sym_max(0, torch.sym_min(col, row + offset))
    if isinstance(offset, int) and offset > 0:
        first = torch.sym_min(col, 1 + offset)
    else:
        first = torch.sym_min(1, torch.sym_max(0, row + offset))
    growing = last - first + 1
    full = torch.sym_max(0, torch.sym_max(0, torch.sym_min(row, row + offset)) - growing)
    return (first + last) * growing // 2 + full * col


def _combinations(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The rows of places that ascend, as many as follow from sizes alone; torch's own counts them in a mask."""
    given = {"r": 2, "with_replacement": False, **kwargs}
    x, r, with_replacement = arguments(("input", "r", "with_replacement"), args, given)
    if x.dim() != 1 or not is_open(*x.shape) or not isinstance(r, int) or r < 1:
        return func(*args, **kwargs)
    size = x.shape[0]
    number = torch.arange(size, device=x.device)
    places = [number.reshape([-1 if other == axis else 1 for other in range(r)]) for axis in range(r)]
    mask = torch.ones([size] * r, dtype=torch.bool, device=x.device)
    for one, other in itertools.pairwise(places):
        mask = mask & (one <= other if with_replacement else one < other)
    drawn = size + r - 1 if with_replacement else size
    count = math.prod(drawn - taken for taken in range(r)) // math.factorial(r)
    if r > 2:  # torch 2.13 raises an error of its own where it has to prove that a longer product is not negative
        count = torch.sym_max(count, 0)
    return x[torch.nonzero_static(mask, size=count)]


def _affine_grid(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    theta, size, align_corners = arguments(("theta", "size", "align_corners"), args, {"align_corners": None, **kwargs})
    if not is_open(*size) or not theta.is_floating_point() or theta.dim() != 3 or len(size) not in (4, 5):
        return func(*args, **kwargs)
    spatial = list(size[2:])
    grid = theta[..., -1][(slice(None), *[None] * len(spatial))]
    # theta's columns are x, y, z; the spatial axes come the other way round.
    for column, axis in enumerate(reversed(range(len(spatial)))):
        place = _corners(spatial[axis], theta, bool(align_corners))
        place = place.reshape([-1 if other == axis else 1 for other in range(len(spatial))] + [1])
        grid = grid + theta[..., column][(slice(None), *[None] * len(spatial))] * place
    return grid


def _corners(size: Size, like: Tensor, align_corners: bool) -> Tensor:
    """Places from -1 to 1: of the corner pixels' centres, or of their outer edges."""
    place = 2 * torch.arange(size, device=like.device).to(like.dtype) - (size - 1)
    return place / (torch.sym_max(size - 1, 1) if align_corners else size)


def _pad(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Round the edge, by the places that each axis shows: torch's own depends on the layout of the batch in memory."""
    x, pad, mode = arguments(("input", "pad", "mode"), args, {"mode": "constant", **kwargs})
    if mode != "circular" or not is_open(*x.shape, *pad):
        return func(*args, **kwargs)
    for number in range(len(pad) // 2):
        axis = x.dim() - 1 - number
        size, before, after = x.shape[axis], pad[2 * number], pad[2 * number + 1]
        torch._check(before <= size)
        torch._check(after <= size)
        shown = torch.arange(-before, size + after, device=x.device)
        shown = torch.where(shown < 0, shown + size, torch.where(shown < size, shown, shown - size))
        x = x.index_select(axis, shown)
    return x


def _take_along_dim(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    x, indices, dim = arguments(("input", "indices", "dim"), args, {"dim": None, **kwargs})
    if not is_open(*x.shape, *indices.shape):
        return func(*args, **kwargs)
    if dim is None:
        return x.reshape(-1).gather(0, indices.reshape(-1))
    axis = dim % x.dim()
    rest = [place for place in range(x.dim()) if place != axis]
    shape = torch.broadcast_shapes([x.shape[place] for place in rest], [indices.shape[place] for place in rest])
    return _widen(x, shape, axis).gather(axis, _widen(indices, shape, axis))


def _widen(x: Tensor, rest: Sequence[Size], axis: int) -> Tensor:
    return x.expand(*rest[:axis], x.shape[axis], *rest[axis:])


def _kron(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    left, right = arguments(("input", "other"), args, kwargs)
    if not is_open(*left.shape, *right.shape) or left.dim() != right.dim():
        return func(*args, **kwargs)
    outer = [size for pair in zip(left.shape, [1] * left.dim(), strict=True) for size in pair]
    inner = [size for pair in zip([1] * right.dim(), right.shape, strict=True) for size in pair]
    shape = [a * b for a, b in zip(left.shape, right.shape, strict=True)]
    return (left.reshape(outer) * right.reshape(inner)).reshape(shape)


def _cdist(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """torch's own function tests for more than 25 rows; the operator below it does not."""
    given = {"p": 2.0, "compute_mode": next(iter(_MODES)), **kwargs}
    x1, x2, p, mode = arguments(("x1", "x2", "p", "compute_mode"), args, given)
    if not is_open(*x1.shape, *x2.shape) or mode not in _MODES:
        return func(*args, **kwargs)
    return torch.ops.aten._cdist_forward(x1, x2, p, _MODES[mode])


def _vander(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A column of ones, and products of as many copies of x as each further column has."""
    x, columns, increasing = arguments(("x", "N", "increasing"), args, {"N": None, "increasing": False, **kwargs})
    columns = x.shape[0] if columns is None else columns
    if x.dim() != 1 or not is_open(x.shape[0], columns):
        return func(*args, **kwargs)
    column = (x if x.is_floating_point() or x.is_complex() else x.to(torch.int64))[:, None]
    powers = column.expand(-1, torch.sym_max(columns - 1, 0)).cumprod(1)
    rising = torch.cat([torch.ones_like(column), powers], 1)[:, :columns]
    return rising if increasing else rising.flip(1)


def _div(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A size by a size is a size. torch makes a tensor of it, and does not know where it came from when it is read."""
    if any(isinstance(value, Tensor) for value in (*args, *kwargs.values())):
        return func(*args, **kwargs)
    x, other, mode = arguments(("input", "other", "rounding_mode"), args, {"rounding_mode": None, **kwargs})
    are_whole = all(isinstance(value, (int, SymInt)) for value in (x, other))
    if not is_open(x, other) or not are_whole or mode not in ("floor", "trunc"):
        return func(*args, **kwargs)
    if mode == "floor":
        return x // other
    return torch.sym_max(x, 0) // other - torch.sym_max(-x, 0) // other if other > 0 else func(*args, **kwargs)


def adaptive_avg_pool1d(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Its number of bins is a plain int, that of the one in two axes is not."""
    x, bins = arguments(("input", "output_size"), args, kwargs)
    bins = bins[0] if isinstance(bins, (tuple, list)) else bins
    if not is_open(bins):
        return func(*args, **kwargs)
    return F.adaptive_avg_pool2d(x.unsqueeze(-2), (1, bins)).squeeze(-2)


def _fill_diagonal(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Of a matrix, at any sizes: what a mask of its diagonal chooses. torch writes into a view of a stride and length that are
    plain ints, which neither symbolic sizes nor traces at several sizes leave open.
    """
    x, value, wraps = arguments(("input", "fill_value", "wrap"), args, {"wrap": False, **kwargs})
    if x.dim() != 2 or wraps:
        return func(*args, **kwargs)
    return x.masked_fill_(torch.eye(*x.shape, dtype=torch.bool, device=x.device), value)


def arguments(names: tuple[str, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
    given = {**kwargs, **dict(zip(names, args, strict=False))}
    return [given[name] if name in given else given[{"input": "self"}.get(name, name)] for name in names]
