"""aten::mul, add, sub and pow by a number that is computed from sizes; aten::copy of something smaller; aten::scalar_tensor
and full in double precision.

torch.onnx (to 2.13) takes every scalar for a constant, copies what should be broadcast as it is, and makes a double of a
number that went through single precision.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.values import constant, dtype_of

_DOUBLE = ir.DataType.DOUBLE


def by_scalar(name: str) -> Callable[..., Any]:
    """`Mul`, `Add` or `Sub`, in the tensor's own dtype: where another is wanted, torch has converted the tensor before."""

    def translate(x: ir.Value, other: ir.Value | float, alpha: ir.Value | float = 1) -> ir.Value:
        if not isinstance(other, ir.Value) and not isinstance(alpha, ir.Value):
            from onnxscript.function_libs.torch_lib.ops import core

            theirs = getattr(core, f"aten_{name.lower()}_scalar")
            return theirs(x, other) if name == "Mul" else theirs(x, other, alpha=alpha)
        number = _as_dtype(other, x)
        if isinstance(alpha, ir.Value) or alpha != 1:
            number = op.Mul(number, _as_dtype(alpha, x))
        return getattr(op, name)(x, number)

    return translate


def translate_pow(x: ir.Value, exponent: ir.Value | float) -> ir.Value:
    if not isinstance(exponent, ir.Value):
        from onnxscript.function_libs.torch_lib.ops import core

        return core.aten_pow_tensor_scalar(x, exponent)
    return op.Pow(x, _as_dtype(exponent, x))


def _as_dtype(number: ir.Value | float, x: ir.Value) -> ir.Value:
    return op.Cast(number, to=dtype_of(x)) if isinstance(number, ir.Value) else constant(number, dtype_of(x))


def translate_scalar_tensor(number: ir.Value | float, *, dtype: int = ir.DataType.FLOAT, **unused: Any) -> ir.Value:
    from onnxscript.function_libs.torch_lib.ops import core

    return core.aten_scalar_tensor(_exact(number, dtype), dtype=dtype)


def translate_full(size: Any, number: ir.Value | float, *, dtype: int = -1, **unused: Any) -> ir.Value:
    from onnxscript.function_libs.torch_lib.ops import core

    return core.aten_full(size, _exact(number, dtype), dtype=dtype)


def _exact(number: ir.Value | float, dtype: int) -> ir.Value | float:
    return constant(number, ir.DataType.DOUBLE) if isinstance(number, float) and dtype == _DOUBLE else number


def translate_copy(x: ir.Value, src: ir.Value, non_blocking: bool = False) -> ir.Value:
    same_dtype = src if src.dtype == dtype_of(x) else op.Cast(src, to=dtype_of(x))
    if x.shape is not None and src.shape is not None and x.shape == src.shape:
        return op.Identity(same_dtype)
    return op.Expand(same_dtype, op.Shape(x))
