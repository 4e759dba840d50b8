"""Whether two sizes are one object: in eager mode they are ints, of which Python keeps the small ones."""

from __future__ import annotations

from pathlib import Path

import onnxruntime
import pytest
import torch
from torch import nn

import anyshape


class Sums(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.sum(0) + y.sum(0) if x.shape[0] is y.shape[0] else x.sum(0) - y.sum(0)


class Scaled(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        rows, others = x.size(0), len(y)
        scale = 3.0 if rows is not others else 1.0
        return x.sum(0) * scale + y.sum(0)


class Named(nn.Module):
    """A size that has two names is one object, however large it is."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        rows = x.shape[0]
        same = rows
        return x.sum(0) * (2.0 if rows is same else 1.0) + y.sum(0)


@pytest.mark.parametrize("model", [Sums(), Scaled(), Named()], ids=lambda model: type(model).__name__)
def test_small_equal_sizes_are_one_object_and_large_ones_are_not(model: nn.Module, tmp_path: Path) -> None:
    def inputs(a: int = 4, b: int = 6) -> dict[str, torch.Tensor]:
        return {"x": torch.randn(a, 2), "y": torch.randn(b, 2)}

    result = anyshape.export(model, inputs, tmp_path / "m.onnx")
    assert result.strategy == "symbolic" and result.contract.tested.capture_proved
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    for a, b in ((3, 5), (1, 1), (7, 7), (256, 256), (257, 257), (300, 300), (300, 7)):
        given = inputs(a, b)
        (actual,) = session.run(None, {name: value.numpy() for name, value in given.items()})
        torch.testing.assert_close(torch.from_numpy(actual), model(**given), rtol=1e-3, atol=1e-3)
