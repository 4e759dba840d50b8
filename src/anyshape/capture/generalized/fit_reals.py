"""Floats seen at many points -> factor * f(e) * g(d) + shift, where f and g are roots, logarithms and reciprocals.

Python computes such numbers in double precision, so an explanation has to be right to a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyshape.capture.generalized.fit_forms import Points
from anyshape.capture.generalized.fit_integers import fit_integers
from anyshape.domain import Compare, Condition, Expr, Number, Op, Ref, evaluate, simplify

Seen = Sequence[tuple[Mapping[str, int], Any]]

_MOST_JUMPS = 4
_FEWEST_BESIDE = 2  # values on each side of a jump
_LONG_ENOUGH = 64
_CLOSE = 1e-13
_OFFSETS = (0, 1, -1, 2, -2)
_FEWEST_FREE = 5  # values before the end, to learn from


def fit_jumps(seen: Seen) -> tuple[Any, tuple[tuple[Expr, Any], ...]] | None:
    """The first value, and for each jump an expression that is 0 before and 1 after it, with the difference.

    None if the values are not constant between a few sharp jumps of one name.
    """
    for name in seen[0][0] if seen else ():
        rows = _by_size(seen, name)
        jumps = _jumps(rows) if rows is not None else None
        if rows is not None and jumps:
            steps = tuple((_step(name, size), after - before) for size, before, after in jumps)
            return rows[0][1], steps
    return None


def find_break(seen: Seen, names: Sequence[str]) -> Condition | None:
    """`name > c` where the values jump for the first time; None if no jump of these names was seen on both sides."""
    for name in names:
        if any(name not in point for point, _ in seen):
            continue
        rows = _by_size(seen, name)
        if rows is None:
            continue
        for place, ((size, value), (following, other)) in enumerate(pairwise(rows)):
            if value == other:
                continue
            if following != size + 1 or place + 1 < _FEWEST_BESIDE:
                break
            return Compare(">", Ref(name), Number(size))
    return None


def _by_size(seen: Seen, name: str) -> list[tuple[int, Any]] | None:
    """The values by sizes of this name, in ascending order; None if another name changes them, too."""
    found: dict[int, Any] = {}
    for point, value in seen:
        if found.setdefault(point[name], value) != value:
            return None
    return sorted(found.items())


def _jumps(rows: list[tuple[int, Any]]) -> list[tuple[int, Any, Any]] | None:
    """(last size before, value before, value after) of each jump; None if one is not sharp, or there are too many."""
    found: list[tuple[int, Any, Any]] = []
    beside = 0
    for (size, before), (following, after) in pairwise(rows):
        beside += 1
        if before == after:
            continue
        if following != size + 1 or beside < _FEWEST_BESIDE or len(found) == _MOST_JUMPS:
            return None
        found.append((size, before, after))
        beside = 0
    if not found or beside + 1 < _FEWEST_BESIDE:
        return None
    last = found[-1][0]
    return found if rows[-1][0] - last >= min(last + 1, _LONG_ENOUGH) else None


def _step(name: str, last: int) -> Expr:
    """0 up to `last`, 1 beyond."""
    return Op("min", (Number(1), Op("max", (Number(0), Ref(name) - last))))


Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """One function of one integer expression."""

    function: str
    of: Expr


@dataclass(frozen=True)
class Real:
    """factor * product of parts + shift, cut off below `least` and above `most`."""

    factor: float
    parts: tuple[Part, ...]
    shift: float = 0.0
    least: float | None = None
    most: float | None = None

    def __str__(self) -> str:
        product = "*".join(f"{part.function}({part.of})" if part.function else f"({part.of})" for part in self.parts)
        text = f"{self.factor:.12g}*{product}" + (f" + {self.shift:.12g}" if self.shift else "")
        text = text if self.least is None else f"max({self.least:.12g}, {text})"
        return text if self.most is None else f"min({self.most:.12g}, {text})"


def evaluate_real(real: Real, sizes: Mapping[str, int]) -> float:
    """The number at these sizes."""
    product = real.factor
    for part in real.parts:
        product *= float(_FUNCTIONS[part.function](np.float64(evaluate(part.of, sizes))))
    number = product + real.shift
    number = number if real.least is None else max(real.least, number)
    return number if real.most is None else min(real.most, number)


def _reciprocal(values: Reals) -> Reals:
    return np.float64(1.0) / values


def _reciprocal_root(values: Reals) -> Reals:
    return np.float64(1.0) / np.sqrt(values)


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "": np.float64,
    "sqrt": np.sqrt,
    "log": np.log,
    "reciprocal": _reciprocal,
    "rsqrt": _reciprocal_root,
}


def fit_reals(values: Reals, points: Points) -> Real | None:
    """The simplest explanation of these values, or None."""
    if not np.isfinite(values).all():
        return None
    candidates = list(_candidates(points))
    for part, numbers in candidates:
        found = _scaled(values, (part,), numbers)
        if found is not None:
            return found
    for part, numbers in candidates:
        found = _shifted(values, part, numbers)
        if found is not None:
            return found
    found = _of_integer(values, points)
    if found is not None:
        return found
    for index, (first, one) in enumerate(candidates):
        for second, other in candidates[index + 1 :]:
            found = _scaled(values, (first, second), one * other)
            if found is not None:
                return found
    return _cut_off(values, points)


def _cut_off(values: Reals, points: Points) -> Real | None:
    """min(1.0, (t + 1) / 20): what grows until it reaches an end, and stays there."""
    for is_above, end in ((True, float(values.max())), (False, float(values.min()))):
        free = values != end
        if free.sum() < _FEWEST_FREE or (~free).sum() < 2:
            continue
        cut = np.minimum if is_above else np.maximum
        for part, numbers in _candidates(points.where(free)):
            found = _scaled(values[free], (part,), numbers) or _shifted(values[free], part, numbers)
            if found is None:
                continue
            everywhere = cut(found.factor * _everywhere(part, points) + found.shift, end)
            if np.abs(everywhere - values).max() <= 8 * _CLOSE * max(1.0, abs(end)):
                return replace(found, most=end) if is_above else replace(found, least=end)
    return None


def _everywhere(part: Part, points: Points) -> Reals:
    """The part at all points; NaN, which is close to nothing, where it has no value."""
    with np.errstate(all="ignore"):
        return np.asarray(_FUNCTIONS[part.function](np.asarray(points.evaluate(part.of), dtype=np.float64)))


def _of_integer(values: Reals, points: Points) -> Real | None:
    """f(n), where n is any integer expression: the inverse of f gives integers at all points."""
    inverses: dict[str, Callable[[Any], Any]] = {
        "": np.float64,
        "reciprocal": _reciprocal,
        "sqrt": np.square,
        "rsqrt": lambda x: _reciprocal(np.square(x)),
        "log": np.exp,
    }
    with np.errstate(all="ignore"):
        for function, inverse in inverses.items():
            numbers = np.asarray(inverse(values), dtype=np.float64)
            if not np.isfinite(numbers).all() or np.abs(numbers).max() > 1e9:
                continue
            integers = np.rint(numbers)
            if (function and (integers <= 0).any()) or np.abs(numbers - integers).max() > 1e-9 * np.abs(integers).max():
                continue
            found = fit_integers(integers.astype(np.int64), points)
            if found is not None:
                return Real(1.0, (Part(function, found),))
    return None


def _candidates(points: Points) -> Iterator[tuple[Part, Reals]]:
    expressions = [(expr, column) for expr, column in points.atoms]
    expressions += [(a * b, x * y) for i, (a, x) in enumerate(points.atoms[:4]) for b, y in points.atoms[i:4]]
    for offset in _OFFSETS:
        for expr, column in expressions:
            numbers = (column + offset).astype(np.float64)
            for name, function in _FUNCTIONS.items():
                if name and (numbers <= 0).any() and not (name == "reciprocal" and numbers.all()):
                    continue
                yield (
                    Part(name, simplify(expr + offset) if offset else expr),
                    np.asarray(function(numbers), dtype=np.float64),
                )


def _scaled(values: Reals, parts: tuple[Part, ...], numbers: Reals) -> Real | None:
    if not numbers.all():
        zeros = numbers == 0
        if (values[zeros] != 0).any() or zeros.all():
            return None
        values, numbers = values[~zeros], numbers[~zeros]
    factors = values / numbers
    factor = float(np.median(factors))
    if factor == 0 or np.abs(factors - factor).max() > _CLOSE * abs(factor):
        return None
    return Real(_nice(factor), parts)


def _shifted(values: Reals, part: Part, numbers: Reals) -> Real | None:
    low, high = int(numbers.argmin()), int(numbers.argmax())
    if numbers[low] == numbers[high]:
        return None
    factor = _nice(float((values[high] - values[low]) / (numbers[high] - numbers[low])))
    shift = _nice(float(values[low] - factor * numbers[low]))
    size = max(float(np.abs(values).max()), abs(shift))
    if factor == 0 or np.abs(factor * numbers + shift - values).max() > 8 * _CLOSE * size:
        return None
    return Real(factor, (part,), shift)


def _nice(number: float) -> float:
    """The short fraction next to the number where there is one: what the user wrote, before it was rounded."""
    if not math.isfinite(number) or number == 0:
        return number
    short = Fraction(number).limit_denominator(1000)
    close = abs(float(short) - number) <= 4e-13 * max(abs(number), 1e-3)
    return float(short) if close else number
