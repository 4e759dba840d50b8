"""Axes of outputs have the shortest expression that the rules of the domain allow, in the contract and in the file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import anyshape


class UpAndDown(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(F.avg_pool2d(x, 8), scale_factor=8.0)


class Strided(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 2, 3, 2, 1), nn.Conv2d(2, 2, 3, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(self.one(x)).flatten(2).transpose(1, 2)


class Padded(nn.Module):
    """Pads an odd length: two branches, whose lengths are one expression."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] % 2:
            x = F.pad(x, (0, 1))
        return x.view(x.shape[0], -1, 2).sum(-1)


class AtLeastOne(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.new_ones(x.shape[0], max(1, x.shape[1])) * x.sum(1, keepdim=True)


class Norms(nn.Module):
    """torch fixes the axis of a norm by columns at the size of the example."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.linalg.matrix_norm(x, 1), torch.linalg.vector_norm(x, 3, dim=0)


def picture(batch: int = 2, h: int = 16, w: int = 32) -> torch.Tensor:
    return torch.randn(batch, 3, h, w)


def rows(batch: int = 3, seq: int = 8) -> torch.Tensor:
    return torch.randn(batch, seq)


EVEN = ("h % 16 == 0", "w % 16 == 0", "h <= 64", "w <= 64", "batch <= 4")


@pytest.mark.parametrize(
    ("model", "inputs", "where", "axes"),
    [
        (UpAndDown(), picture, EVEN, ["batch", 3, "h", "w"]),
        (UpAndDown(), picture, ("8 <= h", "8 <= w"), ["batch", 3, "8*(h//8)", "8*(w//8)"]),
        (Strided(), picture, EVEN, ["batch", "h//4*(w//4)", 2]),
        (Padded(), rows, ("batch <= 4", "seq <= 32"), ["batch", "(seq + 1)//2"]),
        (Padded(), rows, ("batch <= 4", "seq <= 32", "seq % 4 == 0"), ["batch", "seq//2"]),
        (AtLeastOne(), rows, ("batch <= 4", "1 <= seq <= 32"), ["batch", "seq"]),
    ],
    ids=["up and down", "without a rule", "strided", "two branches", "one branch", "at least one"],
)
def test_an_axis_has_the_shortest_expression(
    model: nn.Module, inputs: Callable[..., Any], where: tuple[str, ...], axes: list[str | int]
) -> None:
    with_rules = anyshape.export(model.eval(), inputs, where=list(where), enforce="load", verify="quick")
    shape = with_rules.model.graph.outputs[0].shape
    assert shape is not None
    assert [size if isinstance(size, int) else size.value for size in shape] == axes
    assert [str(axis) for axis in with_rules.contract.outputs[0].axes] == list(map(str, axes))


def test_a_name_that_is_right_under_the_rules_is_accepted() -> None:
    result = anyshape.export(
        UpAndDown(),
        (picture(),),
        dynamic={"x": {0: "batch", 2: "h", 3: "w"}, "output": {0: "batch", 2: "h", 3: "w"}},
        where=list(EVEN),
        output_names=["output"],
        verify="quick",
    )
    assert str(result.contract.outputs[0]) == "output: float32[batch, 3, h, w]"


def test_a_size_that_torch_fixed_is_no_number_in_the_file() -> None:
    result = anyshape.export(Norms(), rows, where=["1 <= batch <= 4", "1 <= seq <= 16"])
    assert str(result.contract.outputs[1]) in ("output.1: float32[?]", "output.1: float32[seq]")
    proto = onnx.shape_inference.infer_shapes(result.model_proto)
    for value in (*proto.graph.output, *proto.graph.value_info):
        sizes = [size.dim_value or size.dim_param for size in value.type.tensor_type.shape.dim]
        assert 8 not in sizes and "8" not in sizes, (value.name, sizes)
