"""Operators on integers and booleans that ONNX or onnxruntime has not in that type: the file answers as torch does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch

import anyshape
from anyshape.records.export import Exported
from anyshape.translate.lacking_forms import widen_types

BYTES = ("uint8", "int8", "int16")
X = {
    "bool": np.array([True, False, True, False]),
    "uint8": np.array([0, 1, 200, 255], np.uint8),
    "int8": np.array([-128, -1, 3, 127], np.int8),
    "int16": np.array([-32768, -1, 300, 32767], np.int16),
    "int32": np.array([-(2**31), -1, 3, 2**31 - 1], np.int32),
    "int64": np.array([-(2**63), -1, 2**53 + 1, 2**63 - 1], np.int64),
}
Y = {name: np.array([1, 1, 0, 1], array.dtype) for name, array in X.items()}
ROWS: list[tuple[str, str, Callable[..., Any]]] = [
    ("bool", "Add(x, y)", lambda x, y: x + y),
    ("bool", "Mul(x, y)", lambda x, y: x * y),
    ("bool", "Where(c, x, y)", lambda x, y: torch.where(y.bool(), x, y)),
    ("uint8", "Neg(x)", lambda x, y: -x),
    *((name, "Add(x, y)", lambda x, y: x + y) for name in BYTES),
    *((name, "Mul(x, x)", lambda x, y: x * x) for name in BYTES),
    *((name, "Pow(x, y)", lambda x, y: x**y) for name in BYTES),
    *((name, "Max(x, y)", torch.maximum) for name in BYTES),
    *((name, "Where(c, x, y)", lambda x, y: torch.where(y.bool(), x, y)) for name in BYTES),
    *((name, "MatMul(x, y)", lambda x, y: x @ y) for name in BYTES),
    *((name, "Relu(x)", lambda x, y: x.relu()) for name in BYTES),
    *((name, "ReduceMax <keepdims = 0> (x)", lambda x, y: x.max()) for name in BYTES),
    *((name, "IsNaN(x)", lambda x, y: x.isnan()) for name in X),
    *((name, "Floor(x)", lambda x, y: x.floor()) for name in X if name != "bool"),
]


def run(model: ir.Model, feeds: dict[str, Any]) -> Any:
    proto = ir.to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    return onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)[0]


def written(dtype: str, node: str, gives: str) -> ir.Model:
    text = f"""
        <ir_version: 10, opset_import: ["" : 18]>
        g ({dtype}[4] x, {dtype}[4] y) => ({gives} z) {{ c = Cast <to = 9> (y)  z = {node} }}
    """
    model = ir.from_proto(onnx.parser.parse_model(text))
    for each in model.graph:
        if each.op_type == "Cast":
            each.outputs[0].dtype = ir.DataType.BOOL
    return model


@pytest.mark.parametrize(("dtype", "node", "function"), ROWS, ids=lambda value: value if isinstance(value, str) else "")
def test_the_answer_is_that_of_torch(dtype: str, node: str, function: Callable[..., Any]) -> None:
    expected = function(torch.from_numpy(X[dtype]), torch.from_numpy(Y[dtype]))
    shape = "[4]" if expected.ndim else ""
    model = written(dtype, node, f"{expected.numpy().dtype.name}{shape}")
    widen_types(Exported(model, ("x", "y"), (), 18))
    np.testing.assert_array_equal(run(model, {"x": X[dtype], "y": Y[dtype]}), expected.numpy(), strict=True)


def test_without_it_onnx_refuses_the_file() -> None:
    with pytest.raises(Exception, match=r"Neg|uint8"):
        run(written("uint8", "Neg(x)", "uint8[4]"), {"x": X["uint8"], "y": Y["uint8"]})


def test_what_onnxruntime_has_stays_as_it_is() -> None:
    model = written("int32", "Add(x, y)", "int32[4]")
    widen_types(Exported(model, ("x", "y"), (), 18))
    assert [node.op_type for node in model.graph] == ["Cast", "Add"]


def test_the_types_of_other_values_stay() -> None:
    model = written("int16", "Max(x, y)", "int16[4]")
    for node in model.graph:
        node.outputs[0].type = model.graph.inputs[0].type  # one object for all
    widen_types(Exported(model, ("x", "y"), (), 18))
    assert [value.dtype for value in (*model.graph.inputs, *model.graph.outputs)] == [ir.DataType.INT16] * 3


class Either(torch.nn.Module):
    def forward(self, x, y):
        return x + y, (x * y).logical_not()


class Negated(torch.nn.Module):
    def forward(self, x):
        return -x, x.clamp(3, 100), x.cumsum(0), x.sum()


def numbers(dtype: torch.dtype, n: int = 4) -> torch.Tensor:
    return torch.randint(0, 120, (n,)).to(dtype)


def test_booleans_are_added_and_bytes_are_negated_by_an_exported_file() -> None:
    assert anyshape.export(Either(), lambda n=4: (torch.rand(n) > 0.5, torch.rand(n) > 0.5)).findings == ()
    for dtype in (torch.uint8, torch.int16):
        assert anyshape.export(Negated(), partial(numbers, dtype)).findings == ()


def test_a_file_of_others_that_adds_booleans_is_at_fault_itself(tmp_path: Path) -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (bool[n] x, bool[n] y) => (bool[n] output) { output = Add(x, y) }'
    )
    onnx.save(proto, tmp_path / "m.onnx")

    class Sum(torch.nn.Module):
        def forward(self, x, y):
            return x + y

    with pytest.raises(anyshape.PromiseBroken) as raised:
        anyshape.check(tmp_path / "m.onnx", Sum(), lambda n=3: (torch.rand(n) > 0.5, torch.rand(n) > 0.5))
    why = raised.value.finding.why
    assert "the fault is the file's: the ONNX standard does not define Add for this type" in why
    assert "onnxruntime's" not in why
