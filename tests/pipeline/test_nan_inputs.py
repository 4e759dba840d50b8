"""NaN in the inputs is compared: a file that loses it is kept with a note, one that keeps it without."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from onnxscript import opset18 as op

import anyshape


class Pooled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.max_pool1d(torch.relu(x), 2)


class Chosen(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return x.topk(2, -1).values, x.argmax(-1), x.softmax(-1), x.max(-1).values


class Signs(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sign(x) * 2


class MostFrequent(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mode(-1).values


def inputs(n: int = 3) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(n, 4, 16)}


def codes(module: torch.nn.Module, **options: Any) -> list[str]:
    return [finding.code for finding in anyshape.export(module, inputs, **options).findings]


def test_a_file_that_loses_nan_is_kept_with_a_note() -> None:
    assert codes(Pooled()) == ["AS159"]


def test_nan_at_the_first_place_of_a_row_is_compared() -> None:
    result = anyshape.export(MostFrequent(), lambda n=3: torch.randn(n, 8))
    assert [finding.code for finding in result.findings] == ["AS159"]  # torch's kernel keeps NaN at its place


def test_a_file_that_keeps_nan_has_no_note() -> None:
    assert codes(Chosen()) == []


def test_a_wrong_translation_is_noticed_by_nan() -> None:
    with anyshape.translation("aten::sign", lambda x: op.Sign(x)):  # NaN for NaN, and 0 in torch
        assert codes(Signs()) == ["AS159"]


def test_declared_values_have_no_nan() -> None:
    assert codes(Pooled(), values={"x": "-9 <= x <= 9"}) == []


@pytest.mark.parametrize("module", [Pooled(), Chosen()])
def test_nan_is_no_failure_of_a_check(module: torch.nn.Module, tmp_path: Any) -> None:
    anyshape.export(module, inputs, tmp_path / "m.onnx")
    assert anyshape.check(tmp_path / "m.onnx", module, inputs).passed


class Numbered(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return torch.unique(x, return_inverse=True)


def test_an_order_of_many_nan_that_the_file_has_not_is_a_note() -> None:
    """`torch.unique` numbers many NaN in the order in which its sort, which is not stable, leaves them."""
    result = anyshape.export(Numbered(), lambda n=3: {"x": torch.randint(0, 9, (n, 16)).float()})
    assert [finding.code for finding in result.findings] == ["AS159"]


class Moments(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return torch.var_mean(x, (0, 2)), torch.var_mean(x, 1), torch.std_mean(x, 2, keepdim=True)


def test_moments_of_infinities_are_those_of_torch(tmp_path: Any) -> None:
    anyshape.export(Moments(), lambda n=3: torch.randn(n, 4, 5), tmp_path / "m.onnx")
    loaded = anyshape.load(tmp_path / "m.onnx")
    for place in range(60):
        x = torch.randn(3, 4, 5)
        x.view(-1)[place] = torch.inf
        x.view(-1)[(place * 7) % 60] = -torch.inf
        expected = [each for pair in Moments()(x) for each in pair]
        for one, other in zip(expected, loaded(x), strict=True):
            torch.testing.assert_close(torch.as_tensor(other), one, equal_nan=True)
