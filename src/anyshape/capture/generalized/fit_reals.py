"""Floats seen at many points -> factor * f(e) * g(d) + shift, where f and g are roots, logarithms and reciprocals.

Python computes such numbers in double precision, so an explanation has to be right to a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyshape.capture.generalized.fit_integers import fit_integers
from anyshape.capture.generalized.samples import Points
from anyshape.domain import Expr, evaluate, simplify

Reals = NDArray[np.float64]

_CLOSE = 1e-13
_OFFSETS = (0, 1, -1, 2, -2)


@dataclass(frozen=True)
class Part:
    """One function of one integer expression."""

    function: str
    of: Expr


@dataclass(frozen=True)
class Real:
    """factor * product of parts + shift."""

    factor: float
    parts: tuple[Part, ...]
    shift: float = 0.0

    def __str__(self) -> str:
        product = "*".join(f"{part.function}({part.of})" if part.function else f"({part.of})" for part in self.parts)
        return f"{self.factor:.12g}*{product}" + (f" + {self.shift:.12g}" if self.shift else "")


def evaluate_real(real: Real, sizes: Mapping[str, int]) -> float:
    """The number at these sizes."""
    product = real.factor
    for part in real.parts:
        product *= float(_FUNCTIONS[part.function](np.float64(evaluate(part.of, sizes))))
    return product + real.shift


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
    return None


def _of_integer(values: Reals, points: Points) -> Real | None:
    """f(n), where n is any integer expression: the inverse of f gives integers at all points."""
    inverses: dict[str, Callable[[Any], Any]] = {
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
            if (integers <= 0).any() or np.abs(numbers - integers).max() > 1e-9 * np.abs(integers).max():
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
