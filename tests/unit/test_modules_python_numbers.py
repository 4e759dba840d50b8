"""Ints read from tensors compute as Python's ints do: the same value, the same kind, and an error where Python has one."""

from __future__ import annotations

import pytest
import torch

from anyshape.intercept.open_numbers import open_numbers
from anyshape.intercept.questions import Questions


def read(function, number: int | float, x: torch.Tensor | None = None, answers=()):
    """What the function gives of a tensor and of a number that was read from another tensor."""
    x = torch.ones(2) if x is None else x
    value = torch.tensor(number)
    with Questions((x, value), answers) as questions:
        return questions.outputs_as_tensors(function(x, value.item()))


ALONE = [
    lambda k: k + 3,
    lambda k: 3 - k,
    lambda k: k * -2,
    lambda k: k // 2,
    lambda k: k // -3,
    lambda k: 17 // (k * k + 1),
    lambda k: k % 3,
    lambda k: k % -3,
    lambda k: 100 % (abs(k) + 7),
    lambda k: k / 4,
    lambda k: k * 0.1,
    lambda k: k**2,
    lambda k: -k,
    lambda k: abs(k),
    lambda k: ~k,
    lambda k: k & 6,
    lambda k: k | 6,
    lambda k: k ^ 6,
    lambda k: k >> 1,
    lambda k: k << 2,
    lambda k: 1 << abs(k) % 50,
    lambda k: k > 2,
    lambda k: k >= 2.5,
    lambda k: (k > 2) + 1,
]


@pytest.mark.parametrize("number", [-100_003, -7, -1, 0, 1, 2, 3, 1000, 2**30])
@pytest.mark.parametrize("function", ALONE)
def test_a_number_computes_as_in_python(function, number) -> None:
    actual, expected = read(lambda x, k: function(k), number), function(number)
    assert actual.item() == pytest.approx(expected, rel=1e-6) if isinstance(expected, float) else actual == expected
    assert actual.dtype == torch.tensor(expected).dtype


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, k: x + k,
        lambda x, k: k - x,
        lambda x, k: x * k,
        lambda x, k: x.sum() + k,
        lambda x, k: x[0] * k,
        lambda x, k: x / k,
        lambda x, k: x // k,
        lambda x, k: x < k,
        lambda x, k: torch.where(x > 0, x, k),
        lambda x, k: torch.full((2,), k),
        lambda x, k: torch.full_like(x, k),
        lambda x, k: torch.tensor([k, 1]),
        lambda x, k: torch.tensor([k, 1.5]),
        lambda x, k: x[k - 3],
    ],
)
def test_beside_a_tensor_it_computes_as_an_int_does(function, dtype) -> None:
    x = torch.tensor([0, 1, 3]).to(dtype)
    try:
        expected = function(x, 3)
    except RuntimeError:  # torch has no differences and quotients of truths
        return
    actual = read(function, 3, x)
    assert actual.dtype == expected.dtype and torch.equal(actual, expected)


@pytest.mark.parametrize(
    ("function", "number"),
    [
        (lambda x, k: 7 // k, 0),
        (lambda x, k: 7 % k, 0),
        (lambda x, k: 7 / k, 0),
        (lambda x, k: 1 << k, -1),
        (lambda x, k: x.to(torch.int32) % k, 0),
        (lambda x, k: x.to(torch.int32) * k, 2**40),
        (lambda x, k: x.to(torch.uint8) + k, 300),
        (lambda x, k: k * k, 2**40),
        (lambda x, k: x[k], 5),
    ],
)
def test_where_python_or_torch_raise_or_64_bits_end_it_raises(function, number) -> None:
    with pytest.raises((RuntimeError, IndexError)):
        read(function, number)


def test_the_sign_of_an_exponent_decides_between_an_int_and_a_float() -> None:
    assert read(lambda x, k: 2**k, 5, answers=[True]).item() == 32
    result = read(lambda x, k: 2**k, -2, answers=[False])
    assert result.item() == 0.25 and result.dtype == torch.float32


def test_it_is_not_changed_in_place() -> None:
    def function(x, k):
        before = k
        k += 5
        k //= 2
        return before, k

    assert [int(value) for value in read(function, 4)] == [4, 4]


def test_it_is_no_key_of_a_dict_while_it_is_a_tensor() -> None:
    with pytest.raises(RuntimeError, match="no hash"):
        read(lambda x, k: {1: x}.get(k, x * 2), 1)


class Kind(torch.nn.Module):
    def forward(self, x, k):
        return isinstance(k.item(), int), isinstance(float(k), float), isinstance(k.item(), float)


def test_it_is_an_int_or_a_float_in_the_user_s_code() -> None:
    model, x, k = Kind(), torch.ones(2), torch.tensor(3)
    with open_numbers(model), Questions((x, k), ()):
        assert model(x, k) == (True, True, False)


class Rounds(torch.nn.Module):
    def forward(self, x, k):
        k = k.item()
        return x * round(k), x * int(k), x + min(int(k), 3), x + max(int(k), -1), x + divmod(int(k), 2)[0]


@pytest.mark.parametrize("number", [-3.7, -2.5, -0.5, 0.5, 1.5, 2.5, 100.2])
def test_python_s_own_functions_take_it(number) -> None:
    x, value, model = torch.ones(2), torch.tensor(number), Rounds()
    expected = model(x, value)
    with open_numbers(model), Questions((x, value), ()) as questions:
        actual = questions.outputs_as_tensors(model(x, value))
    assert all(torch.equal(one, other) for one, other in zip(actual, expected, strict=True))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e30])
def test_a_float_that_is_no_int_of_64_bits_raises(number) -> None:
    x, value, model = torch.ones(2), torch.tensor(number), Rounds()
    with open_numbers(model), Questions((x, value), ()), pytest.raises(IndexError):
        model(x, value)
