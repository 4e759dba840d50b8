"""A file that is wrong only for integers below those of the user's inputs: kept from the lowest on, and told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from onnxscript import opset18 as op

import anyshape


class Rest(torch.nn.Module):
    def forward(self, x: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        return x * (groups % 4)


def inputs(n: int = 3) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(n), "groups": torch.randint(2, 9, (n,))}


def export(path: Path, **options: Any) -> Any:
    def remainder(number: Any, divisor: int) -> Any:
        return op.Mod(number, op.Constant(value_int=divisor), fmod=1)  # right for numbers that are not negative

    with anyshape.translation("aten::remainder", remainder):
        return anyshape.export(Rest(), inputs, path, **options)


def test_the_bound_is_told_and_in_the_contract(tmp_path: Path) -> None:
    result = export(tmp_path / "m.onnx")
    assert [finding.code for finding in result.findings] == ["AS314"]
    assert result.contract.values == {"groups": "groups >= 2"}


def test_the_file_is_checked_within_its_bound(tmp_path: Path) -> None:
    export(tmp_path / "m.onnx")
    assert anyshape.check(tmp_path / "m.onnx", Rest(), inputs).passed


def test_lower_values_that_are_declared_make_it_an_error(tmp_path: Path) -> None:
    with pytest.raises(anyshape.PromiseBroken, match="AS305"):
        export(tmp_path / "m.onnx", values={"groups": "-3 <= groups <= 9"})
    assert not (tmp_path / "m.onnx").exists()
