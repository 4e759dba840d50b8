"""Quotients and remainders of integers, by divisors that are known only when the file runs; and the nodes in place of one node.

onnxruntime's Div and Mod end the whole process where a divisor is 0, where torch raises, and where the least integer is
divided by -1 (seen to 1.31). Its Mod of the dividend's sign goes by way of doubles, exact up to 2**53.

    Div(x, y)              ->   Where(y == -1, -x, Div(x, y'))     y' is 1 where y is -1; a Gather fails where y has a 0
    Mod(x, y)              ->   Mod(x, y')
    Mod <fmod = 1> (x, y)  ->   Mod(x, y') of the divisor's sign, less the divisor where the signs differ
"""

from __future__ import annotations

import itertools

import numpy as np
import onnx_ir as ir

from anyshape.translate.lacking_forms import attribute_of
from anyshape.translate.names import SOURCE

INT64 = ir.DataType.INT64
_BOOL = ir.DataType.BOOL
_WITH_KERNELS = (ir.DataType.INT32, INT64)
_REFUSAL = "anyshape AS419: the model refuses these values: RuntimeError: ZeroDivisionError"


class NodeWriter:
    """Nodes that take the place of one node, with its line."""

    def __init__(self, node: ir.Node) -> None:
        self._node, self._count = node, itertools.count()
        self.nodes: list[ir.Node] = []

    def add(
        self,
        op_type: str,
        *inputs: ir.Value,
        dtype: ir.DataType = INT64,
        outputs: int = 1,
        called: str = "",
        **given: int,
    ) -> ir.Value:
        """The first output of a new node, which may have a name of its own."""
        name = f"order_{next(self._count)}"
        node = ir.node(op_type, inputs, given, num_outputs=outputs, name=f"{self._node.name}/{called or name}")
        node.metadata_props.update(self._node.metadata_props)
        for place, value in enumerate(node.outputs):
            value.name = f"{self._node.outputs[0].name}/{name}{place or ''}"
            value.dtype = dtype
        self.nodes.append(node)
        return node.outputs[0]

    def constant(self, numbers: int | list[int], dtype: ir.DataType = INT64) -> ir.Value:
        tensor = ir.Tensor(np.array(numbers, dtype.numpy()))
        value = self.add("Constant", dtype=dtype)
        value.producer().attributes["value"] = ir.AttrTensor("value", tensor)  # type: ignore[union-attr]
        value.const_value = tensor
        return value

    def larger(self, one: ir.Value, other: ir.Value) -> ir.Value:
        return self.add("Where", self.add("Less", one, other, dtype=ir.DataType.BOOL), other, one)

    def smaller(self, one: ir.Value, other: ir.Value) -> ir.Value:
        return self.add("Where", self.add("Less", other, one, dtype=ir.DataType.BOOL), other, one)


def needs_care(node: ir.Node) -> bool:
    """Whether a divisor may be 0 or -1, or the kernel computes in doubles."""
    return not _is_plain(node) or bool(attribute_of(node, "fmod") and node.outputs[0].dtype == INT64)


def _is_plain(node: ir.Node) -> bool:
    """Whether the divisors are constants, none of them 0 or -1."""
    divisor = node.inputs[1]
    known = ir.convenience.get_const_tensor(divisor) if divisor is not None else None
    return known is not None and not ({0, -1} & set(known.numpy().ravel().tolist()))


def quotient(writer: NodeWriter, node: ir.Node) -> ir.Value:
    value, given, dtype = _operands(writer, node)
    divisor, is_minus = _safe(writer, node, given, dtype)
    plain = writer.add("Div", value, divisor, dtype=dtype)
    negated = writer.add("Neg", value, dtype=dtype)
    return _narrowed(writer, node, writer.add("Where", is_minus, negated, plain, dtype=dtype))


def remainder(writer: NodeWriter, node: ir.Node) -> ir.Value:
    value, given, dtype = _operands(writer, node)
    divisor = given if _is_plain(node) else _safe(writer, node, given, dtype)[0]
    rest = writer.add("Mod", value, divisor, dtype=dtype)
    if not attribute_of(node, "fmod"):
        return _narrowed(writer, node, rest)
    zero = writer.constant(0, dtype)
    signs = [writer.add("Less", each, zero, dtype=_BOOL) for each in (value, divisor)]
    differ = writer.add("Xor", *signs, dtype=_BOOL)
    is_left = writer.add("Not", writer.add("Equal", rest, zero, dtype=_BOOL), dtype=_BOOL)
    away = writer.add("And", differ, is_left, dtype=_BOOL)
    toward = writer.add("Where", away, writer.add("Sub", rest, divisor, dtype=dtype), rest, dtype=dtype)
    return _narrowed(writer, node, toward)


def _operands(writer: NodeWriter, node: ir.Node) -> tuple[ir.Value, ir.Value, ir.DataType]:
    """Both, in a dtype for which onnxruntime has all kernels."""
    value, divisor = node.inputs
    assert value is not None and divisor is not None
    dtype = _dtype_of(node)
    if dtype in _WITH_KERNELS:
        return value, divisor, dtype
    wide = [writer.add("Cast", each, to=INT64.value) for each in (value, divisor)]
    return wide[0], wide[1], INT64


def _narrowed(writer: NodeWriter, node: ir.Node, value: ir.Value) -> ir.Value:
    dtype = _dtype_of(node)
    return value if dtype in _WITH_KERNELS else writer.add("Cast", value, dtype=dtype, to=dtype.value)


def _safe(writer: NodeWriter, node: ir.Node, divisor: ir.Value, dtype: ir.DataType) -> tuple[ir.Value, ir.Value]:
    """The divisor with 1 in place of -1, and where that is; a program that runs this fails where a divisor is 0."""
    zero, table, line = writer.constant(0, dtype), writer.constant([0], dtype), node.metadata_props.get(SOURCE)
    words = f"{_REFUSAL} ({line})" if line else _REFUSAL
    is_zero = writer.add("Cast", writer.add("Equal", divisor, zero, dtype=_BOOL), to=INT64.value)
    divisor = writer.add("Add", divisor, writer.add("Gather", table, is_zero, dtype=dtype, called=words), dtype=dtype)
    is_minus = writer.add("Equal", divisor, writer.constant(-1, dtype), dtype=_BOOL)
    return writer.add("Where", is_minus, writer.constant(1, dtype), divisor, dtype=dtype), is_minus


def _dtype_of(node: ir.Node) -> ir.DataType:
    found = next(
        value.dtype for value in (*node.inputs, *node.outputs) if value is not None and value.dtype is not None
    )
    assert found is not None
    return found
