"""A batch norm behind a layer leaves no node: its numbers are in the weights, and the answers stay the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch import nn

import anyshape
from anyshape.optimize import fold_norms
from anyshape.runtime.session import Session


def shaken(module: nn.Module) -> nn.Module:
    """The module with norms whose statistics are not 0 and 1."""
    generator = torch.Generator().manual_seed(1)
    for each in module.modules():
        if isinstance(each, nn.modules.batchnorm._NormBase):
            for tensor in (each.running_mean, each.running_var, each.weight, each.bias):
                if tensor is not None:
                    tensor.data.copy_(torch.rand(tensor.shape, generator=generator) + 0.5)
    return module.eval()


def picture(batch: int = 2, h: int = 6, w: int = 7) -> torch.Tensor:
    return torch.randn(batch, 4, h, w)


def row(batch: int = 3) -> torch.Tensor:
    return torch.randn(batch, 4)


def operators_of(model: ir.Model) -> Counter[str]:
    return Counter(node.op_type for node in ir.traversal.RecursiveGraphIterator(model.graph))


@pytest.mark.parametrize(
    ("layers", "inputs"),
    [
        ((nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6)), picture),
        ((nn.Conv2d(4, 6, 3, bias=False), nn.BatchNorm2d(6), nn.ReLU()), picture),
        ((nn.Conv2d(4, 8, 3, groups=2, padding=1, stride=2), nn.BatchNorm2d(8)), picture),
        ((nn.Conv2d(4, 4, 3, groups=4), nn.BatchNorm2d(4, affine=False)), picture),
        ((nn.ConvTranspose2d(4, 6, 2, stride=2), nn.BatchNorm2d(6)), picture),
        ((nn.Linear(4, 6), nn.BatchNorm1d(6)), row),
    ],
    ids=["conv", "no bias", "groups", "depthwise", "transposed", "linear"],
)
def test_a_norm_behind_a_layer_is_folded(
    layers: tuple[nn.Module, ...], inputs: Callable[..., torch.Tensor], tmp_path: Path
) -> None:
    model = shaken(nn.Sequential(*layers))
    result = anyshape.export(model, inputs, tmp_path / "m.onnx", enforce="load", verify="quick")
    assert operators_of(result.model)["BatchNormalization"] == 0
    assert not any("running" in name for name in result.model.graph.initializers)
    x = inputs(5)
    (actual,) = Session(tmp_path / "m.onnx").run({"input": x.numpy()})
    np.testing.assert_allclose(actual, model(x).detach().numpy(), rtol=2e-5, atol=2e-6)


class AddedTo(nn.Module):
    """A product with a constant added, which need not be a number for each column, and a norm."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(6)
        self.weight, self.bias = nn.Parameter(torch.randn(6, 6)), nn.Parameter(torch.randn(shape))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.norm(torch.addmm(self.bias, x.reshape(-1, 6, 6)[0], self.weight)), x + 1


@pytest.mark.parametrize(
    ("shape", "norms"), [((6, 1), 1), ((6, 6), 1), ((1, 6), 0), ((6,), 0), ((1, 1), 0), ((), 0)], ids=str
)
def test_a_norm_is_folded_where_what_is_added_is_the_same_in_every_row(
    shape: tuple[int, ...], norms: int, tmp_path: Path
) -> None:
    model = shaken(AddedTo(*shape))
    result = anyshape.export(
        model, lambda n=2: {"x": torch.randn(n * 6, 6)}, tmp_path / "m.onnx", enforce="load", verify="none"
    )
    assert operators_of(result.model)["BatchNormalization"] == norms
    x = torch.randn(12, 6)
    actual = Session(tmp_path / "m.onnx").run({"x": x.numpy()})[0]
    np.testing.assert_allclose(actual, model(x)[0].detach().numpy(), rtol=2e-5, atol=2e-6)


class Shared(nn.Module):
    """One convolution before two norms, and what it gives is read twice."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.one, self.other = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.one(self.conv(x))
        between = self.conv(first)
        return self.other(self.conv(between)) + between * first + self.other(between)


def test_what_is_read_twice_keeps_its_norm_and_shared_weights_are_folded_for_each_norm(tmp_path: Path) -> None:
    model = shaken(Shared())
    result = anyshape.export(model, picture, tmp_path / "m.onnx", enforce="load", verify="quick")
    assert operators_of(result.model)["BatchNormalization"] == 1
    x = picture(3)
    (actual,) = Session(tmp_path / "m.onnx").run({"x": x.numpy()})
    np.testing.assert_allclose(actual, model(x).detach().numpy(), rtol=2e-5, atol=2e-6)


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Sequential(nn.Conv2d(4, 64, 3, padding=1), nn.BatchNorm2d(64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 3:
            return self.layer(x) * 2
        return self.layer(x) + 1


class ByValues(Branches):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) * 2 if x.sum() > 0 else self.layer(x) + 1


@pytest.mark.parametrize("kind", [Branches, ByValues])
def test_weights_of_several_branches_are_folded_once(kind: type[nn.Module]) -> None:
    result = anyshape.export(
        shaken(kind()), picture, enforce="load", verify="quick", where=["batch <= 8", "h <= 16", "w <= 16"]
    )
    assert operators_of(result.model)["BatchNormalization"] == 0
    weights = [
        name for name, value in result.model.graph.initializers.items() if value.shape == ir.Shape([64, 4, 3, 3])
    ]
    assert len(weights) == 1


def test_half_precision_keeps_its_norm() -> None:
    model = shaken(nn.Sequential(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6))).half()
    result = anyshape.export(model, lambda batch=2: torch.randn(batch, 4, 5, 5).half(), enforce="load", verify="quick")
    assert operators_of(result.model)["BatchNormalization"] == 1


TEXT = """
<ir_version: 8, opset_import: ["" : 18]>
agraph (float[n, 1, 5, 5] x, float[2] given) => (float[n, 2, 5, 5] y)
<float[2, 1, 1, 1] w = {1, 1}, float[2] one = {1, 1}, float[2] huge = {1, 1e38}, float[2] tiny = {1, 1e-6}>
{
    c = Conv(x, w)
    y = BatchNormalization<epsilon = 1e-12>(c, SCALE, one, MEAN, VARIANCE)
}
"""


@pytest.mark.parametrize(
    ("scale", "mean", "variance", "folded"),
    [("one", "one", "tiny", 1), ("one", "given", "one", 0), ("huge", "one", "tiny", 0)],
    ids=["constants", "statistics that are computed", "weights that would not be finite"],
)
def test_norms_are_folded_where_the_new_weights_are_finite_constants(
    scale: str, mean: str, variance: str, folded: int
) -> None:
    text = TEXT.replace("SCALE", scale).replace("MEAN", mean).replace("VARIANCE", variance)
    assert fold_norms(ir.from_onnx_text(text)) == folded


def test_without_optimize_the_norm_stays() -> None:
    model = shaken(nn.Sequential(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6)))
    result = anyshape.export(model, picture, enforce="load", verify="quick", optimize=False)
    assert operators_of(result.model)["BatchNormalization"] == 1
