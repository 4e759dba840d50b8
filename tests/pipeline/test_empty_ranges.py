"""Open ranges begin at 0 where the model's own code shows that 0 is meant, and the file is right there; else at 1."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import anyshape

OPEN = torch.export.Dim.DYNAMIC


class ReturnsEarly(nn.Module):
    def forward(self, x):
        if x.shape[0] == 0:
            return torch.ones(4)
        return x.amax(0)


class TruthOfALocal(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        if not n:
            return torch.ones(4)
        return x.amax(0)


def is_empty(x):
    return x.numel() == 0


class CallsATest(nn.Module):
    def forward(self, x):
        return x.sum(0) + 1 if is_empty(x) else x.amax(0)


class ChoosesByCond(nn.Module):
    def forward(self, x, offset):
        def used(x, offset):
            return x.sum(0) * 2 + offset

        def unused(x, offset):
            return torch.ones(4) - offset

        return torch.cond(x.numel() > 0, used, unused, [x, offset])


class ReadsSizesAlone(nn.Module):
    def forward(self, x):
        return torch.full((x.shape[0], 1), 2)


class ComparesWithOne(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[0] > 1 else x + 1


class ComparesValues(nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() == 0 else x * 2


class RaisesWhereEmpty(nn.Module):
    def forward(self, x):
        if len(x) == 0:
            raise ValueError("nothing to do")
        return x * 2


class GivesAnotherDtype(nn.Module):
    def forward(self, x):
        return torch.zeros(4, dtype=torch.int64) if len(x) == 0 else x.sum(0)


def smallest(module, tmp_path, *more, **options) -> int:
    inputs = anyshape.Inputs((torch.randn(3, 4), *more))
    dynamic = options.pop("dynamic", {"x": {0: OPEN}})
    result = anyshape.export(module, inputs, tmp_path / "m.onnx", dynamic=dynamic, **options)
    return result.contract.domain.dims[0].min


@pytest.mark.parametrize("module", [ReturnsEarly(), TruthOfALocal(), CallsATest(), ReadsSizesAlone()])
def test_a_range_begins_at_zero_where_the_code_expects_that(tmp_path, module) -> None:
    assert smallest(module, tmp_path) == 0
    loaded = anyshape.load(tmp_path / "m.onnx")
    for size in (0, 1, 2, 9):
        x = torch.randn(size, 4)
        torch.testing.assert_close(torch.as_tensor(loaded(x=x)), module(x))


def test_a_condition_on_sizes_in_torch_cond_keeps_both_sides_and_takes_numbers(tmp_path) -> None:
    assert smallest(ChoosesByCond(), tmp_path, 7) == 0
    loaded = anyshape.load(tmp_path / "m.onnx")
    for size in (0, 1, 5):
        x = torch.randn(size, 4)
        torch.testing.assert_close(torch.as_tensor(loaded(x=x)), ChoosesByCond()(x, 7))


@pytest.mark.parametrize("module", [ComparesWithOne(), RaisesWhereEmpty(), GivesAnotherDtype()])
def test_a_range_begins_at_one_without_such_a_condition_or_an_answer(tmp_path, module) -> None:
    assert smallest(module, tmp_path) == 1


@pytest.mark.filterwarnings("ignore::anyshape.NarrowedWarning")
def test_a_test_of_values_is_not_one_of_sizes(tmp_path) -> None:
    assert smallest(ComparesValues(), tmp_path) == 1


def test_a_declared_range_stays_as_it_is(tmp_path) -> None:
    assert smallest(ReturnsEarly(), tmp_path, dynamic={"x": {0: torch.export.Dim("n", min=1, max=64)}}) == 1


def test_nothing_is_opened_without_comparisons(tmp_path) -> None:
    assert smallest(ReturnsEarly(), tmp_path, verify="none") == 1
