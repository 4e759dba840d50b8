"""Contracts and their ONNX models from one line of text, for the tests of `anyshape.contract`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from anyshape.contract import write_contract
from anyshape.domain import Expr, Number, declare_domain, dims_of, parse_condition, parse_expr
from anyshape.records.contract import Constant, Contract, Rule, TensorPromise
from anyshape.saving import model_bytes

Array = np.ndarray[Any, np.dtype[Any]]


def tensors(text: str) -> tuple[TensorPromise, ...]:
    """`x: float32[batch, 3]; mask: bool[batch, past + seq]`; `?` is an axis that depends on values."""
    found = re.findall(r"([\w.]+): (\w+)\[([^\]]*)\]", text)
    return tuple(TensorPromise(name, name, dtype, tuple(_axes(axes))) for name, dtype, axes in found)


def _axes(text: str) -> list[Expr | None]:
    return [
        None if part.strip() == "?" else parse_expr(part) for part in re.split(r",(?![^(]*\))", text) if part.strip()
    ]


def contract(inputs: str, *where: str, outputs: str = "", **facts: Any) -> Contract:
    """A kept contract; `where` has the rules, all of them declared."""
    promised = tensors(inputs)
    names = dict.fromkeys(
        [name for tensor in promised for axis in tensor.axes if axis for name in dims_of(axis)]
        + [name for rule in where for name in dims_of(parse_condition(rule))]
    )
    facts.setdefault("status", "kept")
    facts.setdefault("rules", tuple(Rule(parse_condition(rule), "declared") for rule in where))
    facts["constants"] = tuple(Constant(path, value) for path, value in facts.get("constants", {}).items())
    return Contract(domain=declare_domain(tuple(names), where), inputs=promised, outputs=tensors(outputs), **facts)


def zeros(promised: Contract, **sizes: int) -> dict[str, Array]:
    """Feeds of zeros at these sizes, whether the contract allows them or not."""
    from anyshape.domain import evaluate

    return {
        tensor.name: np.zeros([evaluate(axis or Number(1), sizes) for axis in tensor.axes], tensor.dtype)
        for tensor in promised.inputs
    }


def echo_model(promised: Contract, opset: int = 18, unused: tuple[str, ...] = ()) -> ir.Model:
    """A model that answers each input as it is, through an Identity, except for the unused ones."""
    values = []
    for tensor in promised.inputs:
        element = ir.DataType.from_numpy(np.dtype(tensor.dtype)) if tensor.dtype != "bfloat16" else ir.DataType.BFLOAT16
        shape = [
            axis.value if isinstance(axis, Number) else None if axis is None else str(axis) for axis in tensor.axes
        ]
        values.append(ir.Value(name=tensor.name, type=ir.TensorType(element), shape=ir.Shape(shape)))
    nodes, outputs = [], []
    for value in values:
        if value.name not in unused:
            output = ir.Value(name=f"{value.name}_out", type=value.type, shape=value.shape.copy())
            nodes.append(ir.node("Identity", [value], outputs=[output]))
            outputs.append(output)
    graph = ir.Graph(values, outputs, nodes=nodes, opset_imports={"": opset}, name="echo")
    return ir.Model(graph, ir_version=8)


def echo_bytes(promised: Contract) -> bytes:
    """The bytes of such a model, with the contract in it."""
    model = echo_model(promised)
    write_contract(model, promised)
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
    return model_bytes(model)
