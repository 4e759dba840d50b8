"""SkipLayerNormalization, which onnxruntime runs slowly on a CPU, becomes a sum and a norm with the same result."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnx import parser

from anyshape.optimize import split_skip_norms

FLOATS, HALVES = "float", "float16"


def fused(given: str = "x, skip, scale, shift", outputs: str = "y", dtype: str = FLOATS, opset: int = 18) -> ir.Model:
    named = {"mean": "mean", "total": "total"}
    further = "".join(f", {dtype}[b, s, 8] {each}" for each in named if each in outputs)
    text = f"""<ir_version: 8, opset_import: ["": {opset}, "com.microsoft": 1]>
    graph ({dtype}[b, s, 8] x, {dtype}[b, s, 8] skip, {dtype}[8] scale, {dtype}[8] shift, {dtype}[8] bias)
        => ({dtype}[b, s, 8] y{further})
    {{ {outputs} = com.microsoft.SkipLayerNormalization <epsilon: float = 1e-5> ({given}) }}"""
    return ir.from_proto(parser.parse_model(text))


def run(model: ir.Model) -> list[Any]:
    rng = np.random.default_rng(0)
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {
        value.name: rng.standard_normal((2, 3, 8) if len(value.shape) == 3 else 8).astype(np.float32)
        for value in session.get_inputs()
    }
    return list(session.run(None, feeds))


def operators(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph]


@pytest.mark.parametrize(
    ("given", "outputs"),
    [
        ("x, skip, scale, shift", "y"),
        ("x, skip, scale, shift, bias", "y"),
        ("x, skip, scale, shift, bias", "y, , , total"),
    ],
)
def test_the_parts_give_what_the_fused_node_gives(given: str, outputs: str) -> None:
    model = fused(given, outputs)
    before = run(model)
    assert split_skip_norms(model) == 1
    assert operators(model) == ["Sum", "LayerNormalization"]
    onnx.checker.check_model(ir.to_proto(model))
    for one, other in zip(before, run(model), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_onnxruntime_does_not_fuse_them_again(tmp_path: Any) -> None:
    model = fused()
    split_skip_norms(model)
    ir.save(model, tmp_path / "m.onnx")
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "loaded.onnx")
    onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), options, providers=["CPUExecutionProvider"])
    loaded = onnx.load(tmp_path / "loaded.onnx")
    assert [node.op_type for node in loaded.graph.node] == ["Sum", "LayerNormalization"]


@pytest.mark.parametrize("made", [{"dtype": HALVES}, {"opset": 16}, {"given": "x, skip, scale"}])
def test_others_stay(made: dict[str, Any]) -> None:
    model = fused(**made)
    assert split_skip_norms(model) == 0 and operators(model) == ["SkipLayerNormalization"]
