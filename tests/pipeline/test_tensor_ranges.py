"""`torch.arange` between tensors has as many numbers as their values say, and `out=` and `set_` give a tensor other sizes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import anyshape


class Applied(torch.nn.Module):
    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x, bound):
        return self.function(x, bound)


def into_ints(x, bound):
    out = torch.tensor([1], dtype=torch.int64)
    torch.arange(x.shape[0], bound, out=out)
    return out * 2


def into_floats(x, bound):
    return torch.arange(x.shape[0], bound, 1.5, out=torch.tensor([1.0]))


ROWS = {
    "end of ints": (lambda x, bound: torch.arange(bound), torch.tensor(9)),
    "end of floats": (lambda x, bound: torch.arange(0, bound, 0.5), torch.tensor(8.25)),
    "floats cut to int64": (lambda x, bound: torch.arange(bound, dtype=torch.int64), torch.tensor(8.5)),
    "floats not cut to int32": (lambda x, bound: torch.arange(bound, dtype=torch.int32), torch.tensor(8.5)),
    "start": (lambda x, bound: torch.arange(bound, 100, 7), torch.tensor(9)),
    "step": (lambda x, bound: torch.arange(start=50, end=3, step=-bound), torch.tensor(9)),
    "out of ints": (into_ints, torch.tensor(12)),
    "out of floats": (into_floats, torch.tensor(12.25)),
}


@pytest.mark.filterwarnings("ignore::anyshape.NarrowedWarning", "ignore:The number of elements in the out tensor")
@pytest.mark.parametrize("row", ROWS)
def test_a_range_has_the_numbers_that_its_bounds_say(row: str, tmp_path) -> None:
    function, example = ROWS[row]
    module = Applied(function)
    path = tmp_path / "m.onnx"
    result = anyshape.export(module, (torch.randn(2, 3), example), path, dynamic={"x": "n 3"}, where=["n <= 4"])
    assert result.strategy == "symbolic" and result.is_kept
    for bound in (example, example + 3, example * 2):
        expected = module(torch.ones(3, 3), bound)
        actual = torch.from_numpy(anyshape.load(path)(torch.ones(3, 3).numpy(), bound.numpy()))
        assert actual.dtype == expected.dtype and torch.equal(actual, expected)


class Replaced(torch.nn.Module):
    def forward(self, x, y):
        x.set_(y)
        x.add_(1)
        return x, y


def test_an_input_that_becomes_another_tensor_is_that_tensor() -> None:
    result = anyshape.export(Replaced(), lambda a=2, b=4: (torch.ones(a, 3), torch.randn(b, 6)))
    assert result.is_kept and [str(tensor.axes[0]) for tensor in result.contract.outputs] == ["b", "b"]
