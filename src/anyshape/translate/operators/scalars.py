"""aten::mul, add, sub and pow by a number that is computed from sizes; aten::copy of something smaller; aten::scalar_tensor
and full in double precision, and full, zeros and ones of complex numbers.

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

from anyshape.translate.operators.size_values import constant, dtype_of, ints

_HALF = 0.5
_DOUBLE = ir.DataType.DOUBLE
_COMPLEX = {ir.DataType.COMPLEX64: ir.DataType.FLOAT, ir.DataType.COMPLEX128: _DOUBLE}


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

        # torch takes the square root, NaN for -inf; of float16 the power, inf for -inf.
        takes_root = dtype_of(x).is_floating_point() and dtype_of(x) != ir.DataType.FLOAT16
        if exponent == _HALF and takes_root:
            return op.Sqrt(x)
        if exponent == -_HALF and takes_root:
            return op.Reciprocal(op.Sqrt(x))
        return core.aten_pow_tensor_scalar(x, exponent)
    return op.Pow(x, _as_dtype(exponent, x))


def _as_dtype(number: ir.Value | float, x: ir.Value) -> ir.Value:
    return op.Cast(number, to=dtype_of(x)) if isinstance(number, ir.Value) else constant(number, dtype_of(x))


def translate_scalar_tensor(number: ir.Value | float, *, dtype: int | None = None, **unused: Any) -> ir.Value:
    from onnxscript.function_libs.torch_lib.ops import core

    wanted = ir.DataType.FLOAT if dtype in (None, -1) else dtype
    return core.aten_scalar_tensor(_exact(number, wanted), dtype=wanted)


def translate_full(size: Any, number: ir.Value | complex, *, dtype: int | None = None, **unused: Any) -> ir.Value:
    from onnxscript.function_libs.torch_lib.ops import core

    shape = size if isinstance(size, ir.Value) else ints(*size)
    if dtype in (None, -1) and isinstance(number, complex):
        dtype = ir.DataType.COMPLEX64
    if dtype in _COMPLEX and not isinstance(number, ir.Value):
        pair = constant([complex(number).real, complex(number).imag], _COMPLEX[ir.DataType(dtype)])
        return op.Expand(pair, op.Concat(shape, ints(2), axis=0))
    wanted = -1 if dtype is None else dtype
    return core.aten_full(shape, _exact(number, wanted), dtype=wanted)


def filled(number: int) -> Callable[..., Any]:
    """`zeros` or `ones`."""

    def translate(size: Any, *, dtype: int | None = None, **unused: Any) -> ir.Value:
        return translate_full(size, number, dtype=ir.DataType.FLOAT if dtype in (None, -1) else dtype)

    return translate


def _exact(number: ir.Value | complex, dtype: int | None) -> ir.Value | complex:
    return constant(number, ir.DataType.DOUBLE) if isinstance(number, float) and dtype == _DOUBLE else number


def translate_copy(x: ir.Value, src: ir.Value, non_blocking: bool = False) -> ir.Value:
    same_dtype = src if src.dtype == dtype_of(x) else op.Cast(src, to=dtype_of(x))
    if x.shape is not None and src.shape is not None and x.shape == src.shape:
        return op.Identity(same_dtype)
    return op.Expand(same_dtype, op.Shape(x))
