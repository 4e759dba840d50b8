"""A file of a model that asserts something about values fails where the model raises, whatever form the assertion has."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import anyshape


class Asserted(torch.nn.Module):
    def forward(self, x):
        torch._assert((x < 10).all(), "too large")
        return x * 2


class AssertedLargest(torch.nn.Module):
    def forward(self, x):
        torch._assert(x.max() < 10, "too large")
        return x * 2


class Checked(torch.nn.Module):
    def forward(self, x):
        torch._check(bool((x < 10).all()), lambda: "too large")
        return x * 2


class CheckedItem(torch.nn.Module):
    def forward(self, x):
        torch._check((x.max() < 10).item(), lambda: "too large")
        return x * 2


class CheckedNumber(torch.nn.Module):
    def forward(self, x):
        torch._check(x.max().item() < 10, lambda: "too large")
        return x * 2


class CheckedAll(torch.nn.Module):
    def forward(self, x):
        torch._check_tensor_all(x < 10, lambda: "too large")
        return x * 2


class CheckedValue(torch.nn.Module):
    def forward(self, x):
        torch._check_value(x.max().item() < 10, lambda: "too large")
        return x * 2


class AssertedAsync(torch.nn.Module):
    def forward(self, x):
        torch._assert_async(x.max() < 10, "too large")
        return x * 2


class AssertedInBranchOfSizes(torch.nn.Module):
    def forward(self, x):
        if x.shape[0] > 3:
            torch._assert_async((x < 10).all(), "too large")
            return x * 2
        return x + x


class CheckedInBranchOfValues(torch.nn.Module):
    def forward(self, x):
        torch._check(x.max().item() < 10, lambda: "too large")
        if x.sum() > 100:
            return x * 3
        return x * 2


class Plain(torch.nn.Module):
    def forward(self, x):
        assert x.max() < 10, "too large"
        return x * 2


FORMS = [
    Asserted,
    AssertedLargest,
    Checked,
    CheckedItem,
    CheckedNumber,
    CheckedAll,
    CheckedValue,
    AssertedAsync,
    AssertedInBranchOfSizes,
    CheckedInBranchOfValues,
    Plain,
]


@pytest.mark.parametrize("module", FORMS)
def test_the_file_fails_with_the_words_of_the_assertion(module, tmp_path) -> None:
    result = anyshape.export(module(), lambda n=4: {"x": torch.randn(n, 3)}, tmp_path / "m.onnx", where=["n <= 64"])
    assert result.contract.status == "kept"
    loaded = anyshape.load(tmp_path / "m.onnx")
    np.testing.assert_array_equal(loaded(x=np.ones((5, 3), np.float32)), np.full((5, 3), 2, np.float32))
    with pytest.raises(anyshape.PromiseBroken, match="too large"):
        loaded(x=np.full((5, 3), 11, np.float32))


class CheckedWithValueInWords(torch.nn.Module):
    def forward(self, x):
        largest = x.max().item()
        torch._check(largest < 10, lambda: f"{largest} is too large")
        return x * 2


class AssertedWithoutWords(torch.nn.Module):
    def forward(self, x):
        torch._assert_async(x.max() < 10)
        return x.sum(), x * 2


@pytest.mark.parametrize("module", [CheckedWithValueInWords, AssertedWithoutWords])
def test_a_check_without_words_of_its_own_fails_with_its_line(module, tmp_path) -> None:
    result = anyshape.export(module(), lambda n=4: {"x": torch.randn(n, 3)}, tmp_path / "m.onnx")
    assert not result.findings
    loaded = anyshape.load(tmp_path / "m.onnx")
    with pytest.raises(anyshape.PromiseBroken, match=r"RuntimeError: Expected .*test_asserted_values.py:\d+"):
        loaded(x=np.full((5, 3), 11, np.float32))


class CountsSelected(torch.nn.Module):
    """The number of selected elements is a size that torch takes for the other one from the check on."""

    def forward(self, x, mask, new):
        torch._check(x[mask].numel() == new.numel(), lambda: "counts differ")
        return x * 2 + new.sum()


def half_selected(n=6):
    mask = torch.arange(n) < n // 2
    return {"x": torch.randn(n), "mask": mask, "new": torch.randn(n // 2)}


def test_a_check_that_makes_two_sizes_one_stays_in_the_file(tmp_path) -> None:
    anyshape.export(CountsSelected(), half_selected, tmp_path / "m.onnx")
    loaded = anyshape.load(tmp_path / "m.onnx")
    inputs = half_selected(8)
    assert torch.allclose(torch.as_tensor(loaded(**inputs)), CountsSelected()(**inputs))
    with pytest.raises(anyshape.PromiseBroken, match="counts differ"):
        loaded(**inputs | {"mask": torch.ones(8, dtype=torch.bool)})


def test_a_trace_does_not_drop_a_check_of_values(tmp_path) -> None:
    with pytest.raises(anyshape.PromiseBroken, match="AS124"):
        anyshape.export(CountsSelected(), half_selected, tmp_path / "m.onnx", strategy="generalized")


class AssertedAtSomeSizes(torch.nn.Module):
    """Both sides of each branch return the same."""

    def forward(self, x):
        if x.shape[0] % 2 == 0:
            torch._assert_async(x.max() < 10, "too large")
        if x.shape[1] > 7:
            torch._check(x.min().item() > -50, lambda: "too small")
        return x * 2


class AssertedInLoop(torch.nn.Module):
    def forward(self, x):
        rows = []
        for row in range(x.shape[0]):
            torch._assert_async((x[row] < 10).all(), "too large")
            rows.append(x[row].cumsum(0))
        return torch.stack(rows)


def rows_and_columns(rows=3, columns=5):
    return torch.rand(rows, columns)


@pytest.mark.parametrize("module", [AssertedAtSomeSizes(), AssertedInLoop()], ids=lambda each: type(each).__name__)
def test_an_assertion_holds_at_the_sizes_at_which_the_model_has_it(module, tmp_path) -> None:
    anyshape.export(module, rows_and_columns, tmp_path / "m.onnx")
    loaded = anyshape.load(tmp_path / "m.onnx")
    for rows, columns, value in ((2, 5, 20.0), (3, 5, 20.0), (3, 8, -60.0), (3, 7, -60.0), (2, 9, 20.0), (1, 1, 1.0)):
        x = rows_and_columns(rows, columns)
        x[0, 0] = value
        try:
            expected = module(x)
        except RuntimeError:
            with pytest.raises(anyshape.PromiseBroken, match="AS419"):
                loaded(x)
        else:
            np.testing.assert_allclose(loaded(x), expected, rtol=1e-6)
