"""onnxruntime recognises the forms in which activations, norms and attention are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import anyshape


class RootMeanSquare(nn.Module):
    """The norm of Llama and T5."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(8) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Attention(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        heads = x.view(x.shape[0], x.shape[1], 2, 4).transpose(1, 2)
        return F.scaled_dot_product_attention(heads, heads, heads)


def optimized_operators(module: Any, folder: Any) -> set[str]:
    """The operators of the graph that onnxruntime runs."""
    path, after = folder / "m.onnx", folder / "after.onnx"
    inputs = lambda batch=2, seq=3: torch.randn(batch, seq, 8)  # noqa: E731
    anyshape.export(module, inputs, path, where=["batch <= 4", "seq <= 8"], enforce="load")
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(after)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return {node.op_type for node in onnx.load(after).graph.node}


@pytest.mark.parametrize(
    ("build", "fused", "gone"),
    [
        (lambda: nn.Sequential(nn.Linear(8, 8), nn.GELU()), {"BiasGelu"}, {"Erf"}),
        (lambda: nn.GELU(), {"Gelu"}, {"Erf"}),
        (lambda: nn.Sequential(nn.GELU(approximate="tanh"), nn.Linear(8, 8)), {"FastGelu"}, {"Tanh"}),
        (RootMeanSquare, {"SimplifiedLayerNormalization"}, {"Sqrt", "ReduceMean"}),
        (Attention, {"FusedMatMul"}, {"Shape", "Concat", "Slice"}),
    ],
)
def test_onnxruntime_fuses(build: Callable[[], nn.Module], fused: set[str], gone: set[str], tmp_path) -> None:
    torch.manual_seed(0)
    found = optimized_operators(build(), tmp_path)
    assert fused <= found and not gone & found
