"""Integer arithmetic of sizes, exact in 64 bits: powers, shifts, and floor division of what may be negative.

operator.pow(n, 7)         ->  products; onnxruntime's Pow goes through doubles, which are exact to 2**53 only
operator.floordiv(a, b)    ->  (a - a mod b) / b where a or b may be negative; torch.onnx truncates (seen to 2.13)
operator.lshift, rshift    ->  a product or a floor division by a power of two, from a table
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18 as op
from torch.export import ExportedProgram

from anyshape.translate.operators.size_values import constant

Size = ir.Value | int
_INT64 = ir.DataType.INT64
_SHIFTS = [2**exponent for exponent in range(63)]


def floored(numerator: Any, divisor: Any) -> Any:
    """`numerator // divisor`, where one of them may be negative."""
    return numerator // divisor


def mark_floors(program: ExportedProgram) -> None:
    """In place: operator.floordiv of integers that may be negative  ->  floored."""
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            if node.target is operator.floordiv and any(_may_be_negative(arg) for arg in node.args):
                node.target = floored


def _may_be_negative(argument: Any) -> bool:
    value = argument.meta.get("val") if isinstance(argument, torch.fx.Node) else argument
    if isinstance(value, torch.SymInt):
        return bool(value.node.shape_env.bound_sympy(value.node.expr).lower < 0)
    return isinstance(value, int) and value < 0


def size_translations() -> dict[Callable[..., Any], Callable[..., Any]]:
    """By the Python functions that a captured program calls; without types, which torch.onnx would try to read."""
    return {
        operator.pow: lambda *args: translate_power(*args),
        operator.lshift: lambda *args: translate_left_shift(*args),
        operator.rshift: lambda *args: translate_right_shift(*args),
        floored: lambda *args: translate_floored(*args),
    }


def translate_floored(numerator: Size, divisor: Size) -> ir.Value:
    number, by = _value(numerator), _value(divisor)
    return op.Div(op.Sub(number, op.Mod(number, by)), by)


def translate_power(base: Size | float, exponent: Size | float) -> ir.Value:
    """Products by squaring, none larger than the result; with an exponent that varies, onnxruntime's Pow."""
    if not isinstance(exponent, int) or exponent < 1 or not isinstance(base, ir.Value) or base.dtype != _INT64:
        return op.Pow(_value(base), _value(exponent))
    result: ir.Value | None = None
    square, left = base, exponent
    while left:
        if left % 2:
            result = square if result is None else op.Mul(result, square)
        left //= 2
        if left:
            square = op.Mul(square, square)
    return op.Identity(base) if result is None or result is base else result


def translate_left_shift(number: Size, count: Size) -> ir.Value:
    return op.Mul(_value(number), _power_of_two(count))


def translate_right_shift(number: Size, count: Size) -> ir.Value:
    return translate_floored(number, _power_of_two(count))


def _power_of_two(count: Size) -> ir.Value:
    """At most 2**62: by that, 0 shifted left is 0, and what is below 2**62 shifted right is 0 or -1."""
    most = len(_SHIFTS) - 1
    if isinstance(count, int):
        return constant(_SHIFTS[min(count, most)], _INT64)
    return op.Gather(constant(_SHIFTS, _INT64), op.Min(count, constant(most, _INT64)))


def _value(number: Size | float) -> ir.Value:
    if isinstance(number, ir.Value):
        return number
    return constant(number, _INT64 if isinstance(number, int) else ir.DataType.FLOAT)
