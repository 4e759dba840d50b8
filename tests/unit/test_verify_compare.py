"""Comparison: equal is equal, and every way of being wrong is noticed."""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from anyshape.records.verdict import Mismatch
from anyshape.verify.compare import OutputTolerance, compare_in_full, compare_outputs, epsilon
from anyshape.verify.tolerance import FACTOR, Tolerance

Array = np.ndarray
RULE = OutputTolerance("y")
GOOD = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
SPECIAL = np.array([1.0, np.nan, np.inf, -np.inf, 0.0, -3.0], np.float32)


def kind(expected: Array, actual: Array, rule: OutputTolerance = RULE) -> Mismatch | None:
    difference = compare_outputs([expected], [actual], [rule])
    return None if difference is None else difference.mismatch


def changed(array: Array, index: tuple[int, ...], value: object) -> Array:
    copy = array.copy()
    copy[index] = value
    return copy


FLOATS = [np.float16, np.float32, np.float64, np.complex64, ml_dtypes.bfloat16]
EXACT = [np.int8, np.uint8, np.int64, np.uint64, np.bool_]


@given(
    hnp.arrays(
        st.sampled_from([np.float16, np.float32, np.float64, np.complex64, np.int64, np.uint8, np.bool_]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    )
)
def test_an_array_equals_itself(array: Array) -> None:
    assert kind(array, array.copy()) is None


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_float_equals_itself_in_every_precision(dtype: type) -> None:
    array = np.arange(-6, 6).reshape(3, 4).astype(dtype)
    assert kind(array, array.copy()) is None


SABOTAGE: dict[str, tuple[Callable[[Array], Array], Mismatch]] = {
    "nan added": (lambda a: changed(a, (1, 2), np.nan), Mismatch.NAN),
    "infinity added": (lambda a: changed(a, (1, 2), np.inf), Mismatch.INFINITY),
    "row dropped": (lambda a: a[:-1], Mismatch.SHAPE),
    "row repeated": (lambda a: np.concatenate([a, a[:1]]), Mismatch.SHAPE),
    "broadcastable": (lambda a: a[:1], Mismatch.SHAPE),
    "axis added": (lambda a: a[None], Mismatch.SHAPE),
    "scalar": (lambda a: np.asarray(a.mean(), a.dtype), Mismatch.SHAPE),
    "axes swapped": (lambda a: a.T, Mismatch.SHAPE),
    "axes swapped, same shape": (lambda a: np.ascontiguousarray(a.T).reshape(a.shape), Mismatch.VALUE),
    "dtype widened": (lambda a: a.astype(np.float64), Mismatch.DTYPE),
    "dtype narrowed": (lambda a: a.astype(np.float16), Mismatch.DTYPE),
    "bits reinterpreted": (lambda a: a.view(np.int32), Mismatch.DTYPE),
    "one element": (lambda a: changed(a, (2, 4), a[2, 4] + 0.01), Mismatch.VALUE),
    "one element zeroed": (lambda a: changed(a, (0, 1), 0.0), Mismatch.VALUE),
    "sign": (lambda a: -a, Mismatch.VALUE),
    "rows reversed": (lambda a: a[::-1], Mismatch.VALUE),
    "scaled": (lambda a: a * np.float32(1.001), Mismatch.VALUE),
    "shifted": (lambda a: a + np.float32(1e-3), Mismatch.VALUE),
    "emptied": (lambda a: a[:0], Mismatch.SHAPE),
}


@pytest.mark.parametrize("name", SABOTAGE)
def test_sabotage_is_noticed(name: str) -> None:
    sabotage, expected = SABOTAGE[name]
    assert kind(GOOD, sabotage(GOOD)) is expected
    assert kind(sabotage(GOOD), GOOD) is expected


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_ten_tolerances_off_is_noticed_and_a_tenth_is_not(dtype: type) -> None:
    array = np.linspace(1, 2, 12).reshape(3, 4).astype(dtype)
    limit = Tolerance().limit(array.astype(np.float64), epsilon(array))[1, 1]
    beyond = changed(array, (1, 1), float(array[1, 1]) + 10 * limit)
    assert kind(array, beyond) is Mismatch.VALUE
    within = changed(array, (1, 1), float(array[1, 1]) + 0.1 * limit)
    assert kind(array, within) is None


@pytest.mark.parametrize("dtype", EXACT)
def test_integers_and_booleans_are_exact(dtype: type) -> None:
    array = np.array([[0, 1], [1, 0]]).astype(dtype)
    off = changed(array, (0, 0), 1)
    assert kind(array, off) is Mismatch.VALUE
    assert kind(off, array) is Mismatch.VALUE


def test_unsigned_zero_and_its_wrapped_neighbour_differ() -> None:
    zero, top = np.array([0], np.uint64), np.array([2**64 - 1], np.uint64)
    assert kind(zero, top) is Mismatch.VALUE
    assert kind(top, top - np.uint64(1)) is Mismatch.VALUE


def test_large_integers_do_not_pass_through_floats() -> None:
    assert kind(np.array([2**62]), np.array([2**62 + 1])) is Mismatch.VALUE


def test_strings_are_exact() -> None:
    words = np.array(["a", "b"], object)
    assert kind(words, words.copy()) is None
    assert kind(words, np.array(["a", "c"], object)) is Mismatch.VALUE


def test_nan_and_infinity_stand_in_the_same_places() -> None:
    assert kind(SPECIAL, SPECIAL.copy()) is None
    assert kind(SPECIAL, changed(SPECIAL, (1,), 0.0)) is Mismatch.NAN
    assert kind(SPECIAL, changed(SPECIAL, (2,), np.nan)) is Mismatch.NAN
    assert kind(SPECIAL, changed(SPECIAL, (2,), -np.inf)) is Mismatch.INFINITY
    assert kind(SPECIAL, changed(SPECIAL, (3,), np.finfo(np.float32).min)) is Mismatch.INFINITY
    assert kind(SPECIAL, changed(SPECIAL, (5,), -3.01)) is Mismatch.VALUE


def test_complex_parts_count_alike() -> None:
    array = np.array([1 + 2j, complex(np.inf, 1), complex(1, -np.inf)], np.complex64)
    assert kind(array, array.copy()) is None
    assert kind(array, np.conj(array)) is not None
    assert kind(array, changed(array, (0,), 1 + 2.1j)) is Mismatch.VALUE


def test_empty_arrays_are_equal_when_shape_and_dtype_are() -> None:
    empty = np.zeros((0, 3), np.float32)
    assert kind(empty, empty.copy()) is None
    assert kind(empty, np.zeros((0, 4), np.float32)) is Mismatch.SHAPE
    assert kind(empty, np.zeros((0, 3), np.float64)) is Mismatch.DTYPE


@pytest.mark.parametrize("actual", [[], [GOOD, GOOD]], ids=["dropped", "added"])
def test_another_number_of_outputs_is_a_difference(actual: list[Array]) -> None:
    difference = compare_outputs([GOOD], actual, [RULE])
    assert difference is not None
    assert difference.mismatch is Mismatch.STRUCTURE
    assert (difference.expected, difference.actual) == ("1 output", "0 outputs" if not actual else "2 outputs")


def test_swapped_outputs_are_noticed() -> None:
    a, b = GOOD, GOOD * 2
    assert compare_outputs([a, b], [b, a], [OutputTolerance("a"), OutputTolerance("b")]) is not None


def test_the_heaviest_difference_is_told() -> None:
    rules = [OutputTolerance("a"), OutputTolerance("b"), OutputTolerance("c")]
    difference = compare_outputs([GOOD, GOOD, GOOD], [GOOD + 1, GOOD[:1], GOOD * 2], rules)
    assert difference is not None
    assert (difference.mismatch, difference.output) == (Mismatch.SHAPE, "b")


def test_a_difference_says_where_and_how_much() -> None:
    difference = compare_outputs([GOOD], [changed(changed(GOOD, (0, 0), 9.0), (2, 1), 99.0)], [RULE])
    assert difference is not None
    assert (difference.index, difference.count, difference.actual) == ((2, 1), 2, 99.0)
    assert difference.expected == pytest.approx(float(GOOD[2, 1]))
    assert 1.0 < difference.excess < math.inf


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_python_float_may_come_in_either_precision(dtype: type) -> None:
    rule = OutputTolerance("y", any_float=True)
    assert (
        kind(np.float64(0.1) * np.ones(()), np.array(0.1, dtype), OutputTolerance("y", Tolerance(1e-7), True)) is None
    )
    assert kind(np.array(0.1), np.array(0.2, dtype), rule) is Mismatch.VALUE
    assert kind(np.array(0.1), np.array(0, np.int64), rule) is Mismatch.DTYPE
    assert kind(np.array(1), np.array(1.0, dtype), rule) is Mismatch.DTYPE


def test_a_fill_of_a_billion_does_not_blur_its_neighbours() -> None:
    scores = np.array([0.3, -1.2, -1e9, 2.0, np.finfo(np.float32).min], np.float32)
    assert kind(scores, changed(scores, (0,), 0.301)) is Mismatch.VALUE


def test_what_is_left_of_a_cancellation_is_noise() -> None:
    near_zero = np.array([0.0, 1.0, -2.0, 0.5], np.float32)
    assert kind(near_zero, changed(near_zero, (0,), 1e-7)) is None


def test_known_straying_widens_only_its_own_elements() -> None:
    sensitivity = np.zeros((3, 5))
    sensitivity[1, 1] = 1.0
    moved = changed(GOOD, (1, 1), GOOD[1, 1] + 0.9 * FACTOR)
    assert compare_in_full([GOOD], [moved], [RULE], [sensitivity]).difference is None
    assert compare_in_full([GOOD], [changed(moved, (0, 0), 9)], [RULE], [sensitivity]).difference is not None
    index, tie = np.array([3, 4]), np.array([np.inf, 0.0])
    assert compare_in_full([index], [np.array([2, 4])], [RULE], [tie]).difference is None
    assert compare_in_full([index], [np.array([2, 5])], [RULE], [tie]).difference is not None


def test_the_users_tolerance_is_taken_at_its_word() -> None:
    rule = OutputTolerance("y", Tolerance(rtol=0.0, atol=0.5))
    assert kind(GOOD, GOOD + np.float32(0.4), rule) is None
    assert kind(GOOD, GOOD + np.float32(0.6), rule) is Mismatch.VALUE
    assert kind(GOOD, GOOD * np.float32(1.01), OutputTolerance("y", Tolerance(rtol=0.02))) is None


@given(
    hnp.arrays(np.float32, (4, 3), elements=st.floats(-1e3, 1e3, width=32)), st.integers(0, 11), st.floats(0.01, 1e3)
)
def test_any_large_enough_change_of_one_element_is_noticed(array: Array, place: int, by: float) -> None:
    off = array.copy().reshape(-1)
    off[place] += np.float32(by + 1e-3 * np.abs(array).max())
    assert kind(array, off.reshape(array.shape)) is Mismatch.VALUE
