"""Compare two lists of arrays in this order: structure, shape, dtype, NaN, infinity, value.

Nothing is broadcast, cast to a common type by numpy, or skipped: an output that is not compared is a mismatch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anyshape.records.verdict import Difference, FailureKind, Mismatch
from anyshape.runtime.child_messages import EXTENDED, Array, ChildDied, Death, RunError, RuntimeRejected
from anyshape.verify.tolerance import DEFAULT_TOLERANCE, FACTOR, Tolerance

_SINGLE = float(np.finfo(np.float32).eps)
_ORDER = {mismatch: rank for rank, mismatch in enumerate(Mismatch)}
_DEATHS = {
    Death.CRASHED: FailureKind.CRASHED,
    Death.TIMED_OUT: FailureKind.TIMED_OUT,
    Death.OUT_OF_MEMORY: FailureKind.OUT_OF_MEMORY,
}


@dataclass(frozen=True)
class OutputTolerance:
    """How much one output may differ. `any_float`: a Python float, which a file may have as float32 or as float64.

    `rounding` is the epsilon of the narrowest precision on the way to it, where that is not its own.
    """

    name: str
    tolerance: Tolerance = DEFAULT_TOLERANCE
    any_float: bool = False
    rounding: float = 0.0


@dataclass(frozen=True)
class Comparison:
    """The heaviest difference, if there is one, and the worst error of each output as a multiple of its tolerance."""

    difference: Difference | None
    excess: tuple[float, ...]


def compare_outputs(
    expected: Sequence[Array], actual: Sequence[Array], tolerances: Sequence[OutputTolerance]
) -> Difference | None:
    """Why the answers differ, or None if they do not."""
    return compare_in_full(expected, actual, tolerances).difference


def compare_in_full(
    expected: Sequence[Array],
    actual: Sequence[Array],
    tolerances: Sequence[OutputTolerance],
    sensitivities: Sequence[Array] | None = None,
) -> Comparison:
    """Compare two lists of arrays, with the errors of outputs that are equal within their tolerance as well.

    `sensitivities` widens the tolerance element by element: how far each value moves by rounding on these very inputs.
    """
    if len(expected) != len(actual):
        what = Difference(Mismatch.STRUCTURE, "", _count(len(expected)), _count(len(actual)))
        return Comparison(what, tuple(math.inf for _ in expected))
    slacks = [None] * len(expected) if sensitivities is None else sensitivities
    results = [
        compare_arrays(one, other, allowed, slack)
        for one, other, allowed, slack in zip(expected, actual, tolerances, slacks, strict=True)
    ]
    differences = [difference for difference, _ in results if difference is not None]
    heaviest = min(differences, key=lambda found: (_ORDER[found.mismatch], -found.excess), default=None)
    return Comparison(heaviest, tuple(excess for _, excess in results))


def compare_arrays(
    expected: Array, actual: Array, allowed: OutputTolerance, sensitivity: Array | None = None
) -> tuple[Difference | None, float]:
    """The difference between two arrays, or None; and the worst error as a multiple of the tolerance."""
    if expected.shape != actual.shape:  # first: numpy would broadcast and hide it
        return Difference(Mismatch.SHAPE, allowed.name, tuple(expected.shape), tuple(actual.shape)), math.inf
    if expected.dtype != actual.dtype and not _is_any_float(expected, actual, allowed):
        return Difference(Mismatch.DTYPE, allowed.name, dtype_name(expected), dtype_name(actual)), math.inf
    if expected.size == 0:
        return None, 0.0
    if not is_float(expected):
        return _compare_exactly(expected, actual, allowed, sensitivity)
    if np.array_equal(expected, actual):  # no NaN on either side: nothing is left to measure
        return None, 0.0
    eps = max(allowed.rounding, _SINGLE if allowed.any_float else epsilon(expected))
    wide = widen(expected)
    limit = allowed.tolerance.limit(wide, eps)
    if sensitivity is not None:
        limit = limit + FACTOR * sensitivity
    return _compare_floats(wide, widen(actual), allowed, limit)


def is_float(array: Array) -> bool:
    """Whether the elements are real or complex floating-point numbers, bfloat16 and its like included."""
    return array.dtype.kind in "fc" or array.dtype.name in EXTENDED


def widen(array: Array) -> Array:
    """Floats in double precision, in which the difference of two of them loses nothing that matters."""
    wide: Array = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return wide


def epsilon(array: Array) -> float:
    """The distance from 1 to the next number of the array's type."""
    if array.dtype.name in EXTENDED:
        import ml_dtypes

        return float(ml_dtypes.finfo(array.dtype).eps)  # type: ignore[no-untyped-call]
    return float(np.finfo(array.dtype).eps)


def dtype_name(array: Array) -> str:
    """The dtype as users know it: strings come as objects."""
    return "string" if array.dtype.kind in "OUS" else array.dtype.name


def _count(number: int) -> str:
    return f"{number} output" + ("" if number == 1 else "s")


def _is_any_float(expected: Array, actual: Array, allowed: OutputTolerance) -> bool:
    return allowed.any_float and expected.dtype.kind == "f" and actual.dtype in (np.float32, np.float64)


def _compare_exactly(
    expected: Array, actual: Array, allowed: OutputTolerance, sensitivity: Array | None
) -> tuple[Difference | None, float]:
    unequal = expected != actual  # never a subtraction: unsigned numbers wrap around
    if sensitivity is not None:
        unequal = unequal & (sensitivity == 0)
    if not unequal.any():
        return None, 0.0
    return _difference(Mismatch.VALUE, allowed, expected, actual, unequal, None), math.inf


def _compare_floats(
    expected: Array, actual: Array, allowed: OutputTolerance, limit: Array
) -> tuple[Difference | None, float]:
    finite = np.isfinite(expected)
    is_finite = bool(finite.all()) and bool(np.isfinite(actual).all())
    for mismatch, places in () if is_finite else ((Mismatch.NAN, _nan_places), (Mismatch.INFINITY, _infinity_places)):
        unequal = places(expected) != places(actual)
        if unequal.any():
            return _difference(mismatch, allowed, expected, actual, unequal, None), math.inf
    error = np.abs(np.subtract(actual, expected, where=finite, out=np.zeros_like(expected)))
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.where(error > 0, error / limit, 0.0)
    worst = float(excess.max())
    if worst <= 1.0:
        return None, worst
    return _difference(Mismatch.VALUE, allowed, expected, actual, excess > 1.0, excess), worst


def without_numbers_apart(one: Array, other: Array) -> tuple[Array, Array]:
    """Both with 0 where neither is finite, if there is NaN among them: what comes of 1/0 - 1/0 is a matter of the formula.

    Without a NaN the signs of infinities count: those of 1/x at zeros are the signs of the zeros.
    """
    if not is_float(one) or not is_float(other) or one.shape != other.shape:
        return one, other
    if not np.isnan(widen(one)).any() and not np.isnan(widen(other)).any():
        return one, other
    places = ~np.isfinite(widen(one)) & ~np.isfinite(widen(other))
    return np.where(places, 0, one).astype(one.dtype), np.where(places, 0, other).astype(other.dtype)


def finite_in_both(expected: Sequence[Array], actual: Sequence[Array]) -> tuple[tuple[Array, ...], list[Array]]:
    """Both with 0 at elements that are NaN or infinite on one of the two sides. Integers, which may come of such numbers,
    are those that are expected: what int() makes of NaN is left open."""
    if len(expected) != len(actual):
        return tuple(expected), list(actual)
    pairs = [_finite_in_both(one, other) for one, other in zip(expected, actual, strict=True)]
    return tuple(one for one, _ in pairs), [other for _, other in pairs]


def _finite_in_both(expected: Array, actual: Array) -> tuple[Array, Array]:
    if expected.shape != actual.shape or is_float(expected) != is_float(actual):
        return expected, actual
    if not is_float(expected):
        return expected, expected if expected.dtype == actual.dtype else actual
    places = np.isfinite(widen(expected)) & np.isfinite(widen(actual))
    zero = np.zeros((), expected.dtype), np.zeros((), actual.dtype)
    return np.where(places, expected, zero[0]), np.where(places, actual, zero[1])


def _nan_places(array: Array) -> Array:
    return np.isnan(array)


def _infinity_places(array: Array) -> Array:
    """0 where finite, else which infinity: their sign counts."""
    if array.dtype.kind == "c":
        return np.asarray(_infinity_places(array.real) + 3.0 * _infinity_places(array.imag))
    return np.asarray(np.where(np.isinf(array), np.sign(array), 0.0))


def _difference(
    mismatch: Mismatch, allowed: OutputTolerance, expected: Array, actual: Array, unequal: Array, excess: Array | None
) -> Difference:
    """At the worst element, which is the first one where no measure decides which is worst."""
    flat = int(np.argmax(unequal if excess is None else excess))
    index = tuple(int(axis) for axis in np.unravel_index(flat, expected.shape))
    return Difference(
        mismatch,
        allowed.name,
        _plain(expected[index]),
        _plain(actual[index]),
        index,
        int(np.count_nonzero(unequal)),
        math.inf if excess is None else float(excess[index]),
    )


def _plain(element: Any) -> Any:
    return element.item() if isinstance(element, np.generic) else element


def kind_of(error: RunError) -> FailureKind:
    """The kind under which a run that raised is counted."""
    if isinstance(error, ChildDied):
        return _DEATHS[error.death]
    if isinstance(error, RuntimeRejected):
        return FailureKind.UNSUPPORTED if error.unsupported else FailureKind.REJECTED
    return FailureKind.RAISED
