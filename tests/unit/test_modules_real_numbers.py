"""A float that was asked of values is a tensor, and counts as the Python float that it stands for."""

from __future__ import annotations

import math

import pytest
import torch

from anyshape.intercept.open_numbers import open_numbers
from anyshape.intercept.questions import Questions
from anyshape.intercept.real_numbers import real_number


@pytest.mark.parametrize(
    "compute",
    [
        lambda x, number: x / number,
        lambda x, number: x.sum() * number,
        lambda x, number: x.to(torch.float16) + number,
        lambda x, number: x.to(torch.float16) / (number * 1e5) * 1000,
        lambda x, number: x.to(torch.bfloat16) * (number / 7),
        lambda x, number: x.to(torch.float16).mul_(number),
        lambda x, number: x.to(torch.int32) * number,
        lambda x, number: (x > 1) * (1 / number),
        lambda x, number: torch.where(x > 1, x, number),
        lambda x, number: x.clamp(-number, number),
        lambda x, number: x.masked_fill(x > 1, number),
        lambda x, number: torch.tensor(number),
        lambda x, number: torch.tensor(data=number),
        lambda x, number: torch.tensor([[number, 2], [1, number**2]]),
        lambda x, number: torch.tensor(number, dtype=torch.float64),
        lambda x, number: torch.full((2, 3), number),
        lambda x, number: torch.full((2,), fill_value=number, dtype=torch.float16),
        lambda x, number: torch.full_like(x, number),
        lambda x, number: x.new_full((2,), -number),
    ],
)
def test_it_computes_as_a_float_does(compute) -> None:
    x = torch.tensor([1.0, 2.5, -3.0])
    expected = compute(x, float(x.max()))
    with Questions(x, ()):
        actual = compute(x, real_number(x.max()))
    assert actual.dtype == expected.dtype and torch.equal(actual, expected)


class Model(torch.nn.Module):
    def forward(self, x):
        return math.sqrt(float(x.max())), math.log(x.max().item(), 3), float(2), math.exp(x.min())


def test_python_s_own_functions_take_it() -> None:
    x = torch.tensor([1.5, 2.5])
    expected = Model()(x)
    with open_numbers(Model()), Questions(x, ()) as questions:
        actual = questions.outputs_as_tensors(Model()(x))
    assert actual[2] == 2.0
    assert [float(value) for value in actual] == pytest.approx(expected)
    assert actual[0].dtype == torch.float32


def test_what_does_not_depend_on_the_inputs_is_a_float() -> None:
    with Questions(torch.ones(2), ()):
        assert isinstance(real_number(torch.tensor(2.0)), float)
    assert real_number(torch.tensor(2.0)) == 2.0
