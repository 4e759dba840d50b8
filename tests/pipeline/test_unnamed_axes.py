"""An axis that was declared without a name, and at which the model answers at one size only, stays there with a warning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

import anyshape
from anyshape import compat

D = Dim.DYNAMIC


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(10, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


class Viewed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(3, 4) * 2


class Spread(nn.Module):
    """Rows of `y` are those of the table or 1."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.arange(12.0).reshape(6, 2)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.sum() + self.table * y


class Pairs(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.reshape(-1, 2, x.shape[1]).sum(1) + y


def export(module: nn.Module, inputs: tuple[torch.Tensor, ...], path: Path, **options: Any) -> Any:
    with pytest.warns(anyshape.NarrowedWarning):
        return anyshape.export(module, inputs, path, **options)


@pytest.mark.parametrize("dynamic", [{"x": (D, D)}, {"x": {0: D, 1: D}}, {"x": [0, 1]}])
def test_the_width_of_a_layer_stays_and_the_other_axis_varies(dynamic: Any, tmp_path: Path) -> None:
    result = export(Head(), (torch.randn(3, 10),), tmp_path / "m.onnx", dynamic=dynamic)
    domain = result.contract.domain
    assert [size for size in range(1, 99) if domain.contains({"x_0": 3, "x_1": size})] == [10]
    assert domain.dim("x_0").max is None
    assert [finding.code for finding in result.findings] == ["AS102"]
    assert "'net' is Linear with in_features=10" in result.findings[0].why
    loaded = anyshape.load(tmp_path / "m.onnx")
    assert loaded(x=torch.randn(7, 10)).shape == (7, 5)
    with pytest.raises(anyshape.AnyshapeError, match="x_1"):
        loaded(x=torch.randn(7, 9))


def test_a_number_in_the_code_is_shown_with_its_line_and_the_edit(tmp_path: Path) -> None:
    result = export(Viewed(), (torch.randn(3, 4),), tmp_path / "m.onnx", dynamic={"x": {0: D}})
    (finding,) = result.findings
    assert finding.where.text == "return x.view(3, 4) * 2" and "x.view(x.shape[0], 4)" in finding.fix
    assert [size for size in range(1, 99) if result.contract.domain.contains({"x_0": size})] == [3]


def test_a_size_of_one_that_broadcasts_is_in_the_contract_too(tmp_path: Path) -> None:
    inputs = (torch.randn(4), torch.randn(6, 2))
    result = export(Spread(), inputs, tmp_path / "m.onnx", dynamic={"x": {0: D}, "y": {0: D}})
    domain = result.contract.domain
    assert [size for size in range(1, 20) if domain.contains({"x_0": 4, "y_0": size})] == [1, 6]
    assert anyshape.load(tmp_path / "m.onnx")(x=torch.ones(9), y=torch.ones(1, 2)).shape == (6, 2)


def test_an_axis_that_was_left_out_is_named_and_rules_of_other_dims_are_told(tmp_path: Path) -> None:
    inputs = (torch.randn(6, 5), torch.randn(1, 5))
    result = export(Pairs(), inputs, tmp_path / "m.onnx", dynamic={"x": {0: D, 1: D}})
    assert sorted(finding.code for finding in result.findings) == ["AS106", "AS153"]
    domain = result.contract.domain
    inside = [(a, b) for a in range(1, 9) for b in range(1, 9) if domain.contains({"x_0": a, "x_1": b})]
    assert inside == [(a, b) for a in (2, 4, 6, 8) for b in (1, 5)]


@pytest.mark.parametrize(
    ("dynamic", "where"),
    [
        ({"x": "b n"}, ()),
        ({"x": {0: "b", 1: "n"}}, ()),
        ({"x": {0: D, 1: Dim("n")}}, ()),
        ({"x": {0: D, 1: D(min=2, max=64)}}, ()),
        ({"x": {0: D, 1: D}}, ("x_1 <= 64",)),
        ({"x": {0: D, 1: D}}, ("x_1 >= x_0",)),
    ],
)
def test_a_name_a_range_or_a_relation_makes_it_an_error(dynamic: Any, where: tuple[str, ...]) -> None:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(Head(), torch.randn(3, 10), dynamic=dynamic, where=where)
    assert "works only for" in str(broken.value) or "answers only where" in str(broken.value)


def test_a_name_that_is_given_afterwards_is_a_name() -> None:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(Head(), torch.randn(3, 10), dynamic={"x": (D, D)}, names={"x_1": "width"})
    assert broken.value.finding.code == "AS102"


def test_compat_gives_the_file_that_torch_gives(tmp_path: Path) -> None:
    with pytest.warns(anyshape.NarrowedWarning, match="AS102"):
        result = compat.export(Head(), (torch.randn(3, 10),), tmp_path / "m.onnx", dynamic_shapes=({0: D, 1: D},))
    assert result.is_kept
