"""A value that is declared as legal, and for which the model raises, is an error with the values that it takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import anyshape


class Lookup(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(10, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.table(x)


class Rows(torch.nn.Module):
    def forward(self, table: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return table[x]


class Dark(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_exporting() and bool((x > 0.5).any()):
            raise ValueError("too bright")
        return x * 2


class Falling(torch.nn.Module):
    """Takes its lowest number at the end only, and its highest at the beginning."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_exporting() and bool((x.diff() > 0).any() | (x[0] != 5)):
            raise ValueError("not sorted")
        return x * 2


def ids(n: int = 3) -> dict[str, torch.Tensor]:
    return {"x": torch.randint(0, 10, (n,))}


def rows(n: int = 6, k: int = 3) -> dict[str, torch.Tensor]:
    return {"table": torch.randn(n, 3), "x": torch.randint(0, n, (k,))}


def dark(n: int = 3) -> dict[str, torch.Tensor]:
    return {"x": torch.rand(n) * 0.4}


def falling(n: int = 3) -> dict[str, torch.Tensor]:
    return {"x": torch.cat([torch.tensor([5]), torch.randint(1, 6, (n - 1,)).sort(descending=True).values])}


def finding_of(module: torch.nn.Module, inputs: Callable[..., Any], bounds: str, path: Path) -> Any:
    with pytest.raises(anyshape.PromiseBroken) as caught:
        anyshape.export(module, inputs, path, values={"x": bounds})
    assert not path.exists()
    return caught.value.finding


@pytest.mark.parametrize(
    ("module", "inputs", "bounds", "taken"),
    [
        (Lookup(), ids, "0 <= x < 20", "0 <= x <= 9"),
        (Lookup(), ids, "-5 <= x < 10", "0 <= x <= 9"),
        (Rows(), rows, "0 <= x <= n", "0 <= x <= n - 1"),
        (Dark(), dark, "0 <= x <= 1", "0 <= x <= 0.5"),
    ],
)
def test_the_values_that_the_model_takes_are_in_the_fix(
    module: torch.nn.Module, inputs: Callable[..., Any], bounds: str, taken: str, tmp_path: Path
) -> None:
    finding = finding_of(module, inputs, bounds, tmp_path / "m.onnx")
    assert finding.code == "AS157"
    assert f'"{taken}"' in finding.fix
    assert not finding.is_fix_untried


def test_an_example_with_bounds_that_are_too_wide_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(anyshape.PromiseBroken, match="AS157"):
        anyshape.export(Lookup(), ids(), tmp_path / "m.onnx", dynamic={"x": "n"}, values={"x": "0 <= x < 20"})


@pytest.mark.parametrize(("module", "inputs", "bounds"), [(Lookup(), ids, "0 <= x < 10"), (Rows(), rows, "0 <= x < n")])
def test_bounds_that_are_true_are_kept(
    module: torch.nn.Module, inputs: Callable[..., Any], bounds: str, tmp_path: Path
) -> None:
    assert anyshape.export(module, inputs, tmp_path / "m.onnx", values={"x": bounds}).contract.values["x"] == bounds


def test_an_end_that_is_legal_in_one_place_is_legal(tmp_path: Path) -> None:
    result = anyshape.export(Falling(), falling, tmp_path / "m.onnx", values={"x": "1 <= x <= 5"})
    assert "AS157" not in [finding.code for finding in result.findings]
