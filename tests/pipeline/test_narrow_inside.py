"""Half precision and bfloat16 inside of a model that takes and gives float32: the file runs, is right, and can be wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import numpy_helper
from torch import nn

import anyshape


class Narrow(nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.dtype = dtype
        self.linear = nn.Linear(8, 8).to(dtype)

    def forward(self, x: torch.Tensor) -> Any:
        y = self.linear(x.to(self.dtype))
        return (y * y).float().softmax(-1), x * 2


class Autocast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            y = self.linear(x).relu()
        return y.float() + x, x * 2


MODELS = {"bfloat16": lambda: Narrow(torch.bfloat16), "half": lambda: Narrow(torch.float16), "autocast": Autocast}


def inputs(batch: int = 2, seq: int = 5) -> torch.Tensor:
    return torch.randn(batch, seq, 8)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_is_narrow_inside_runs_anywhere(name: str, tmp_path: Path) -> None:
    model, path = MODELS[name]().eval(), tmp_path / "m.onnx"
    anyshape.export(model, inputs, path)
    session = onnxruntime.InferenceSession(str(path))
    x = inputs(3, 7)
    for actual, expected in zip(session.run(None, {"x": x.numpy()}), model(x), strict=True):
        np.testing.assert_allclose(actual, expected.detach(), atol=0.05)


@pytest.mark.parametrize(("name", "output"), [("bfloat16", "output.0"), ("half", "output.0"), ("half", "output.1")])
def test_a_wrong_one_is_noticed(name: str, output: str, tmp_path: Path) -> None:
    model, path = MODELS[name]().eval(), tmp_path / "m.onnx"
    anyshape.export(model, inputs, path)
    changed = onnx.load(path)
    if output == "output.0":
        weights = [each for each in changed.graph.initializer if len(each.dims) == 2 and each.data_type in (10, 16)]
        weight = numpy_helper.to_array(weights[0]).copy()
        weight[0] = -weight[0]
        weights[0].CopyFrom(numpy_helper.from_array(weight, weights[0].name))
    else:  # what no narrow value reaches has the floor of float32
        name = changed.graph.output[1].name
        last = next(node for node in changed.graph.node if name in node.output)
        last.output[list(last.output).index(name)] = "before"
        changed.graph.initializer.append(numpy_helper.from_array(np.float32(1.0003), "slightly"))
        changed.graph.node.append(onnx.helper.make_node("Mul", ["before", "slightly"], [name]))
    onnx.save(changed, path)
    with pytest.raises(anyshape.PromiseBroken, match=f"AS305 .*{output}"):
        anyshape.check(path, model, inputs)


class AutocastToTheEnd(Autocast):
    def forward(self, x: torch.Tensor) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return self.linear(x).relu()


def test_a_model_without_bfloat16_weights_runs_anywhere_even_if_it_returns_bfloat16(tmp_path: Path) -> None:
    model, path = AutocastToTheEnd().eval(), tmp_path / "m.onnx"
    assert anyshape.export(model, inputs, path).findings == ()
    x = inputs(3, 7)
    actual = anyshape.load(path)(x)
    assert actual.dtype is torch.bfloat16
    torch.testing.assert_close(actual, model(x), atol=0.05, rtol=0.02)


def test_a_file_in_bfloat16_that_no_cpu_loads_has_a_warning() -> None:
    def narrow_inputs(batch: int = 2) -> torch.Tensor:
        return torch.randn(batch, 8).bfloat16()

    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8)).bfloat16()
    (finding,) = anyshape.export(model, narrow_inputs).findings
    assert finding.code == "AS318"
    assert finding.severity.value == "warning"
    assert "Gemm, Tanh" in finding.what


class Compared(torch.nn.Module):
    def forward(self, x):
        bound = torch.tensor(0.3)  # without axes: it takes the dtype of x, too
        return x == 0.1, x > 0.3, x <= bound, bound != x, x >= 0.7


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_numbers_are_compared_in_the_dtype_of_the_tensor(tmp_path: Path, dtype: torch.dtype) -> None:
    module, path = Compared(), tmp_path / "m.onnx"
    anyshape.export(module, lambda n: (torch.randn(n).to(dtype),), path, where="n <= 50", verify="quick")
    x = torch.tensor([0.1, 0.3, 0.7, 0.5]).to(dtype)
    assert [each.tolist() for each in anyshape.load(path)(x)] == [each.tolist() for each in module(x)]
