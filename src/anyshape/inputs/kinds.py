"""What kind of values an example has, so that others of the same kind can be drawn at other sizes.

A kind is recognised only where the example leaves little doubt; the last one, values within the example's range, always
fits. Nothing here knows the module: whether drawn values are legal for it, only a call tells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import factorial, prod

import torch

Shape = tuple[int, ...]
Draw = Callable[[Shape, torch.Generator], torch.Tensor]

_MANY = 8
_SURE = 24  # an order that 1 of so many random examples would show is no accident
_MOST_COLUMNS = 256
_FEW_ROWS = 4  # fewer say little about the range of a column
_ACCIDENT = 1e-4  # a range of a column that numbers drawn from all of the range would have less often is its own
_MOST_DRAWN = 1_000_003  # floats; a prime, so that no axis and no stride is a multiple of it by accident


@dataclass(frozen=True)
class ValueKind:
    """The kind's name and a way to draw values of it, on the CPU and in a wide dtype."""

    name: str
    draw: Draw


def recognise(examples: Sequence[torch.Tensor]) -> ValueKind:
    """The kind of the values in these examples of one input."""
    tensors = [_widened(example) for example in examples if example.numel()]
    if not tensors:
        return _nothing_known(examples[0])
    for rule in _RULES:
        kind = rule(tensors)
        if kind is not None:
            return kind
    return _within_range(tensors)


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach().to("cpu")
    if plain.is_complex():
        return plain.to(torch.complex128)
    return plain.to(torch.float64) if plain.is_floating_point() else plain.to(torch.int64)


def _nothing_known(example: torch.Tensor) -> ValueKind:
    if example.is_floating_point() or example.is_complex():
        return ValueKind("normal", lambda shape, random: torch.randn(shape, generator=random, dtype=torch.float64))
    return ValueKind("zeros", lambda shape, random: torch.zeros(shape, dtype=torch.int64))


def _constant(tensors: Sequence[torch.Tensor]) -> ValueKind | None:
    value = tensors[0].flatten()[0]
    alone = sum(tensor.numel() for tensor in tensors) == 1 and tensors[0].ndim > 0
    if alone and value.is_floating_point() and value != value.round():
        # One float says nothing about its neighbours, and equal neighbours would hide mistakes.
        return ValueKind("normal", lambda shape, random: value.abs() * torch.randn(shape, generator=random))
    if not all(bool((tensor == value).all()) for tensor in tensors):
        return None
    return ValueKind("constant", lambda shape, random: value.expand(shape).clone())


def _arange(tensors: Sequence[torch.Tensor]) -> ValueKind | None:
    """Counting along one axis; where rows begin at different numbers, so do the drawn ones."""
    for axis in reversed(range(tensors[0].ndim)):
        longest = max(tensors, key=lambda tensor: tensor.shape[axis])
        if longest.is_complex() or longest.shape[axis] < 2:
            continue
        step = longest.select(axis, 1).flatten()[0] - longest.select(axis, 0).flatten()[0]
        starts = torch.cat([tensor.select(axis, 0).flatten() for tensor in tensors])
        is_short = longest.shape[axis] == 2 and not (step == 1 and bool((starts == 0).all()))
        if is_short or step == 0 or step != step.round():
            continue
        if all(bool((tensor.diff(dim=axis) == step).all()) for tensor in tensors):
            return ValueKind("arange", partial(_draw_arange, axis=axis, step=step, starts=starts))
    return None


def _draw_arange(
    shape: Shape, random: torch.Generator, *, axis: int, step: torch.Tensor, starts: torch.Tensor
) -> torch.Tensor:
    rows = [1 if other == axis else size for other, size in enumerate(shape)]
    first = torch.randint(int(starts.min()), int(starts.max()) + 1, rows, generator=random).to(starts.dtype)
    line = step * torch.arange(shape[axis])
    return first + line.reshape([-1 if other == axis else 1 for other in range(len(shape))])


def _linspace(tensors: Sequence[torch.Tensor]) -> ValueKind | None:
    """Floats at even distances along the last axis: from the same first to the same last, whatever their number."""
    if not all(tensor.is_floating_point() and tensor.ndim and tensor.shape[-1] >= 4 for tensor in tensors):
        return None
    first, last = tensors[0].flatten()[0], tensors[0].flatten()[-1]

    def draw(shape: Shape, random: torch.Generator) -> torch.Tensor:
        return torch.linspace(float(first), float(last), shape[-1], dtype=torch.float64).expand(shape).clone()

    if not all(torch.allclose(tensor, draw(tuple(tensor.shape), torch.Generator())) for tensor in tensors):
        return None
    return ValueKind("linspace", draw)


def _two_values(tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor] | None:
    if tensors[0].is_complex() or any(len(torch.unique(tensor.flatten()[:_MANY])) > 2 for tensor in tensors):
        return None
    seen = torch.unique(torch.cat([tensor.flatten() for tensor in tensors]))
    return (seen[0], seen[1]) if len(seen) == 2 else None


def _triangle(tensors: Sequence[torch.Tensor]) -> ValueKind | None:
    """A causal mask, either way round."""
    values = _two_values(tensors)
    if values is None or any(tensor.ndim < 2 for tensor in tensors) or max(min(t.shape[-2:]) for t in tensors) < 3:
        return None
    low, high = values
    for keep in (torch.tril, torch.triu):
        for diagonal in (0, 1, -1):
            if all(bool(((tensor == high) == _corner(tensor.shape, keep, diagonal)).all()) for tensor in tensors):
                return ValueKind(
                    "triangle",
                    lambda shape, _, k=keep, d=diagonal: torch.where(_corner(shape, k, d), high, low),  # type: ignore[misc]
                )
    return None


def _corner(shape: Sequence[int], keep: Callable[..., torch.Tensor], diagonal: int) -> torch.Tensor:
    return keep(torch.ones(list(shape), dtype=torch.bool), diagonal=diagonal)


def _prefix(tensors: Sequence[torch.Tensor]) -> ValueKind | None:
    """Rows of one value, then of the other: padding. Every drawn row begins with at least one of the first."""
    values = _two_values(tensors)
    if values is None or any(tensor.ndim == 0 for tensor in tensors) or not _are_flags(tensors, values):
        return None
    for first, second in (values[::-1], values):
        if all(bool(((tensor == second).to(torch.int8).diff(dim=-1) >= 0).all()) for tensor in tensors):
            return ValueKind("prefix", lambda shape, random, f=first, s=second: _draw_prefix(shape, random, f, s))  # type: ignore[misc]
    return None


def _draw_prefix(shape: Shape, random: torch.Generator, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    lengths = torch.randint(1, max(shape[-1], 1) + 1, (*shape[:-1], 1), generator=random)
    return torch.where(torch.arange(shape[-1]) < lengths, first, second)


def _permutation(tensors: Sequence[torch.Tensor]) -> ValueKind | None:
    whole = all(not tensor.is_floating_point() and not tensor.is_complex() and tensor.ndim for tensor in tensors)
    if not whole or not _is_sure(tensors):
        return None
    if not all(bool((tensor.sort(-1).values == torch.arange(tensor.shape[-1])).all()) for tensor in tensors):
        return None
    return ValueKind("permutation", lambda shape, random: torch.rand(shape, generator=random).argsort(-1))


def _sorted(tensors: Sequence[torch.Tensor]) -> ValueKind | None:
    """Rising rows; where every row begins with the same value, so do the drawn ones: offsets begin with 0."""
    if tensors[0].is_complex() or any(tensor.ndim == 0 for tensor in tensors) or not _is_sure(tensors):
        return None
    if not all(bool((tensor.diff(dim=-1) >= 0).all()) for tensor in tensors):
        return None
    firsts = torch.cat([tensor[..., 0].flatten() for tensor in tensors])
    inner = _by_column(tensors) or _within_range(tensors)

    def draw(shape: Shape, random: torch.Generator) -> torch.Tensor:
        rows = inner.draw(shape, random).sort(-1).values
        if bool((firsts == firsts[0]).all()) and shape[-1]:
            rows[..., 0] = firsts[0]
        return rows

    return ValueKind("sorted", draw)


def _is_sure(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether so much order cannot be an accident."""
    chance = 1
    for tensor in tensors:
        chance *= factorial(min(tensor.shape[-1], 10)) ** min(tensor.numel() // max(tensor.shape[-1], 1), 10)
    return chance >= _SURE


def _few_values(tensors: Sequence[torch.Tensor]) -> ValueKind | None:
    """Masks and flags: floats or whole numbers of at most two values, drawn as often as they were seen."""
    values = _two_values(tensors)
    if values is None:
        return None
    low, high = values
    total = sum(tensor.numel() for tensor in tensors)
    share = sum(int((tensor == high).sum()) for tensor in tensors) / total
    if not _are_flags(tensors, values):
        return None
    return ValueKind(
        "two values", lambda shape, random: torch.where(torch.rand(shape, generator=random) < share, high, low)
    )


def _are_flags(tensors: Sequence[torch.Tensor], values: tuple[torch.Tensor, torch.Tensor]) -> bool:
    """Whether two values are all that there is, rather than all that a few numbers happen to be."""
    low, high = values
    if bool(low.isinf() or high.isinf() or (low == 0 and high == 1) or (high == 0 and low <= -1e3)):
        return True
    return sum(tensor.numel() for tensor in tensors) >= _MANY


def _within_range(tensors: Sequence[torch.Tensor]) -> ValueKind:
    seen = torch.cat([tensor.flatten() for tensor in tensors])
    if seen.is_complex():
        parts = _within_range([torch.view_as_real(seen)])
        return ValueKind(parts.name, lambda shape, random: torch.view_as_complex(parts.draw((*shape, 2), random)))
    if not seen.is_floating_point():
        low, high = int(seen.min()), int(seen.max())
        return ValueKind("whole numbers", lambda shape, random: torch.randint(low, high + 1, shape, generator=random))
    finite = seen[seen.isfinite()]
    if not len(finite):
        return ValueKind("constant", lambda shape, random: seen[0].expand(shape).clone())
    return ValueKind("floats", _float_drawer(finite))


def _float_drawer(seen: torch.Tensor) -> Draw:
    low, high = seen.min(), seen.max()
    mean, spread = seen.mean(), seen.std(correction=0)

    def draw(shape: Shape, random: torch.Generator) -> torch.Tensor:
        """Normal with the example's mean and spread; what would leave its range is drawn evenly within it.

        More than a million are repeated: to draw those of four thousand pictures takes seconds.
        """
        if (count := prod(shape)) > _MOST_DRAWN:
            return draw((_MOST_DRAWN,), random).repeat(-(-count // _MOST_DRAWN))[:count].reshape(shape)
        normal = torch.randn(shape, generator=random, dtype=torch.float64).mul_(spread).add_(mean)
        if not normal.numel() or bool((normal.min() >= low) & (normal.max() <= high)):
            return normal
        even = torch.rand(shape, generator=random, dtype=torch.float64).mul_(high - low).add_(low)
        return torch.where((normal < low) | (normal > high), even, normal)

    return draw


def _by_column(tensors: Sequence[torch.Tensor]) -> ValueKind | None:
    """Columns of a table that are not of one kind: floats beside the whole numbers of categories, or categories of which some
    tables are much longer than others. Whole numbers are drawn within the range of their column."""
    rows = _rows(tensors)
    if rows is None:
        return None
    is_whole, low, high = _whole_columns(rows), rows.amin(0), rows.amax(0)
    if not rows.is_floating_point():
        shares = (high - low + 1) / (rows.max() - rows.min() + 1)
        has_kinds = len(rows) >= _FEW_ROWS and bool((shares ** len(rows)).min() * len(low) < _ACCIDENT)
    else:
        has_kinds = bool((is_whole & (low < high)).any()) and not bool(is_whole.all())
    return column_by_column(tensors) if has_kinds else None


def _rows(tensors: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """All rows of tables with one number of columns; None for other tensors."""
    widths = {tensor.shape[-1] if tensor.ndim > 1 else 0 for tensor in tensors}
    if len(widths) != 1 or not 2 <= (width := widths.pop()) <= _MOST_COLUMNS or tensors[0].is_complex():
        return None
    return torch.cat([tensor.reshape(-1, width) for tensor in tensors])


def _whole_columns(rows: torch.Tensor) -> torch.Tensor:
    return ((rows == rows.round()) & rows.isfinite()).all(0)


def column_by_column(examples: Sequence[torch.Tensor]) -> ValueKind | None:
    """Whole numbers within the range of their column, and floats as those of all other columns; None where there are none."""
    tensors = [_widened(example) for example in examples if example.numel()]
    rows = _rows(tensors) if tensors else None
    if rows is None:
        return None
    is_whole, low, high, width = _whole_columns(rows), rows.amin(0), rows.amax(0), rows.shape[1]
    everywhere = _within_range(tensors)
    elsewhere = everywhere if is_whole.all() else _within_range([rows[:, ~is_whole]])

    def draw(shape: Shape, random: torch.Generator) -> torch.Tensor:
        if shape[-1] != width:
            return everywhere.draw(shape, random)
        drawn = elsewhere.draw(shape, random)
        for column in is_whole.nonzero().flatten().tolist():
            ends = int(low[column]), int(high[column]) + 1
            drawn[..., column] = torch.randint(*ends, shape[:-1], generator=random).to(drawn)
        return drawn

    return ValueKind("columns", draw)


_RULES = (_constant, _arange, _linspace, _triangle, _prefix, _permutation, _sorted, _few_values, _by_column)
