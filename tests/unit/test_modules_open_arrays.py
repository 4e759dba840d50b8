"""An open array computes what numpy computes, in numpy's dtypes, wherever it meets arrays and numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch._numpy as torch_numpy

from anyshape.intercept.array_functions import FUNCTIONS
from anyshape.intercept.open_arrays import OpenArray, OpenNumpy, open_numpy

opened = OpenNumpy()


def as_open(array):
    return OpenArray(torch_numpy.asarray(array))


@pytest.mark.parametrize(
    "compute",
    [
        lambda np, a: a * 2 + 1,
        lambda np, a: 1.5 / (a + 1),
        lambda np, a: np.sin(a) ** 2,
        lambda np, a: np.ones(5) * a,
        lambda np, a: np.ones(5, np.float32) - a,
        lambda np, a: np.where(a < 2, 1.0, 0.0),
        lambda np, a: np.where(a < 2, a, 0),
        lambda np, a: np.stack([a, np.ones(5)]),
        lambda np, a: np.concatenate([a, a])[1:-1:2],
        lambda np, a: np.array([a.sum(), a.max()]),
        lambda np, a: np.outer(a, a).reshape(-1).astype(np.float32),
        lambda np, a: np.tril(np.outer(a, a), k=-1) == 0,
        lambda np, a: np.clip(a, 1, 3).mean(),
        lambda np, a: np.fft.fft(a),
        lambda np, a: a[::-1][np.newaxis].T,
    ],
)
def test_it_computes_as_numpy_does(compute) -> None:
    array = np.arange(5)
    expected, actual = compute(np, array), compute(opened, as_open(array))
    assert isinstance(actual, OpenArray) and actual.dtype == expected.dtype
    np.testing.assert_allclose(actual.tensor.numpy(), expected)


def test_it_is_written_into() -> None:
    array, own = np.zeros((3, 4)), as_open(np.zeros((3, 4)))
    for each in (array, own):
        each[:, ::2] = 3
        each += 1
        each[0] = np.arange(4)
    np.testing.assert_array_equal(own.tensor.numpy(), array)


def test_without_open_sizes_numpy_is_numpy() -> None:
    assert isinstance(opened.arange(3), np.ndarray) and opened.float32 is np.float32 and opened.pi == np.pi
    assert opened.random is np.random
    assert open_numpy(np.random) is None and open_numpy(np.float32) is None and open_numpy(len) is None


def test_it_has_no_values_to_give_away() -> None:
    with pytest.raises(TypeError, match="no values"):
        np.asarray(as_open(np.ones(2)))


def test_a_step_backwards_beside_a_new_axis_is_refused() -> None:
    with pytest.raises(NotImplementedError):
        as_open(np.ones((2, 3)))[None, ::-1]


@pytest.mark.parametrize(("first", "last"), [(0, 6), (0, 28), (1, 7.5), (3, 3)])
@pytest.mark.parametrize("count", [1, 2, 7, 10])
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace_has_numpy_s_own_roundings(first, last, count, endpoint) -> None:
    expected = np.linspace(first, last, count, endpoint=endpoint)
    actual = FUNCTIONS["linspace"](first, last, count, endpoint=endpoint).tensor.numpy()
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(
        FUNCTIONS["linspace"](first, last, count, dtype=int).tensor.numpy(), np.linspace(first, last, count, dtype=int)
    )


@pytest.mark.parametrize("points", [[2.0], [0.0, 1.0], [0.0, 2.0, 2.0, 5.0], [-1.0, 0.0, 3.0]])
@pytest.mark.parametrize("ends", [{}, {"left": -9.0, "right": 9.0}])
def test_interp_has_numpy_s_own_values(points, ends) -> None:
    at, values = np.arange(-2, 7, 0.5), np.arange(len(points)) ** 2 - 1.0
    expected = np.interp(at, points, values, **ends)
    actual = FUNCTIONS["interp"](as_open(at)._array, points, list(values), **ends).tensor.numpy()
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda a: opened.unwrap(a), "numpy.unwrap"),
        (lambda a: np.unwrap(a), "numpy.unwrap"),
        (lambda a: opened.add.accumulate(a), "numpy.add.accumulate"),
        (lambda a: np.spacing(a), "numpy.spacing"),
    ],
)
def test_a_function_that_is_not_followed_is_named(call, name) -> None:
    with pytest.raises(TypeError, match=f"{name} is not followed on an array that is computed from open sizes"):
        call(as_open(np.ones(2)))
