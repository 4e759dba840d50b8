"""Products and powers of whole numbers, which wrap around in 64 bits as in torch: aten::prod, pow with open
exponents; addmm, for which onnxruntime has no kernel of integers.

onnxruntime's ReduceProd and Pow of integers go by way of doubles: exact up to 2**53, and the largest integer beyond 2**63
(seen to 1.31).
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from onnxscript import opset18 as op

from anyshape.translate.operators.integers import translate_left_shift
from anyshape.translate.operators.size_values import (
    Values,
    accumulate,
    constant,
    count_halvings,
    dtype_of,
    flattened,
    ints,
    positive,
    rank,
    repeat,
    size_scalar,
    static_size,
)

_INT64 = ir.DataType.INT64
_FEW = 8
"""So many factors are multiplied one by one."""


def translate_prod(x: ir.Value, *, dtype: int | None = None) -> ir.Value:
    values, wanted = _given(x, dtype)
    if wanted.is_floating_point():
        return op.ReduceProd(values, keepdims=0)
    return op.Cast(_multiplied(flattened(values), 0, keepdim=False), to=wanted)


def translate_prod_dim(x: ir.Value, dim: int, keepdim: bool = False, *, dtype: int | None = None) -> ir.Value:
    values, wanted = _given(x, dtype)
    if rank(x) == 0:
        return op.Identity(values)
    axis = positive(dim, rank(x))
    if wanted.is_floating_point():
        return op.ReduceProd(values, ints(axis), keepdims=int(keepdim))
    return op.Cast(_multiplied(values, axis, keepdim), to=wanted)


def _given(x: ir.Value, dtype: int | None) -> tuple[ir.Value, ir.DataType]:
    given = dtype_of(x)
    wanted = ir.DataType(dtype) if dtype not in (None, -1) else given if given.is_floating_point() else _INT64
    values = x if wanted == given else op.Cast(x, to=wanted)
    values = values if wanted.is_floating_point() or wanted == _INT64 else op.Cast(values, to=_INT64)
    values.shape = x.shape
    return values, wanted


def _multiplied(x: ir.Value, axis: int, keepdim: bool) -> ir.Value:
    known = static_size(x, axis)
    if known is not None and 1 <= known <= _FEW:
        product = op.Gather(x, ints(0), axis=axis)
        for place in range(1, known):
            product = op.Mul(product, op.Gather(x, ints(place), axis=axis))
    else:
        shape = op.Shape(x)
        before = op.Slice(shape, ints(0), ints(axis), ints(0))
        after = op.Slice(shape, ints(axis + 1), ints(2**31), ints(0))
        one = op.Expand(constant(1, _INT64), op.Concat(before, ints(1), after, axis=0))
        all_of_them = op.Concat(one, x, axis=axis)  # there may be none
        size = op.Add(size_scalar(x, axis), constant(1, _INT64))
        (prefixes,) = accumulate([(all_of_them, _INT64)], axis, size, rank(x), _product)
        product = op.Slice(prefixes, ints(-1), ints(2**31), ints(axis))
    return product if keepdim else op.Squeeze(product, ints(axis))


def _product(earlier: Values, later: Values) -> Values:
    return [op.Mul(earlier[0], later[0])]


def translate_power(x: ir.Value | float, exponent: ir.Value | float) -> ir.Value:
    tensors = [each for each in (x, exponent) if isinstance(each, ir.Value)]
    dtype = dtype_of(tensors[0])
    is_whole = not any(isinstance(each, float) for each in (x, exponent))
    if not is_whole or any(dtype_of(each).is_floating_point() for each in tensors):
        return op.Pow(*(each if isinstance(each, ir.Value) else constant(each, dtype) for each in (x, exponent)))
    if not isinstance(x, ir.Value) and x == 2:
        return translate_left_shift(1, tensors[0])
    base, times = (
        op.Cast(each, to=_INT64) if isinstance(each, ir.Value) else constant(each, _INT64) for each in (x, exponent)
    )
    return op.Cast(_whole_power(base, times), to=_result_dtype(tensors))


def _result_dtype(tensors: Sequence[ir.Value]) -> ir.DataType:
    """That of torch for integers: the wider one of two; a tensor without axes counts less."""
    if len(tensors) == 1:
        return dtype_of(tensors[0])
    likes = [torch.from_numpy(np.ones([1] * rank(each), dtype_of(each).numpy())) for each in tensors]
    return ir.DataType.from_numpy(torch.empty(0, dtype=torch.result_type(*likes)).numpy().dtype)


def _whole_power(base: ir.Value, times: ir.Value) -> ir.Value:
    """By squaring. With a negative exponent, torch gives 0 but for 1 and -1, whose powers are those of its distance."""
    shape = op.Shape(op.Add(base, times))
    zero, one, two = (constant(number, _INT64) for number in (0, 1, 2))
    base, times = op.Expand(base, shape), op.Expand(times, shape)
    is_below = op.Less(times, zero)
    distance = op.Where(is_below, op.Neg(times), times)
    rounds = op.Add(count_halvings(op.ReduceMax(op.Concat(flattened(distance), ints(0), axis=0), keepdims=0)), one)

    def square(number: ir.Value, result: ir.Value, power: ir.Value, left: ir.Value) -> Values:
        is_odd = op.Equal(op.Mod(left, two), one)
        return [op.Where(is_odd, op.Mul(result, power), result), op.Mul(power, power), op.Div(left, two)]

    states = [(op.Expand(one, shape), _INT64), (base, _INT64), (distance, _INT64)]
    result, *_ = repeat(rounds, states, square)
    is_unit = op.Or(op.Equal(base, one), op.Equal(base, constant(-1, _INT64)))
    return op.Where(op.And(is_below, op.Not(is_unit)), zero, result)


def translate_addmm(x: ir.Value, one: ir.Value, other: ir.Value, beta: float = 1, alpha: float = 1) -> ir.Value:
    dtype = dtype_of(one)
    if dtype.is_floating_point():
        from onnxscript.function_libs.torch_lib.ops import core

        return core.aten_addmm(x, one, other, beta=beta, alpha=alpha)
    product = op.MatMul(one, other)
    product = product if alpha == 1 else op.Mul(product, constant(int(alpha), dtype))
    return op.Add(x if beta == 1 else op.Mul(x, constant(int(beta), dtype)), product)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "addmm": translate_addmm,
    "prod": translate_prod,
    "prod.dim_int": translate_prod_dim,
    "pow.Tensor_Tensor": translate_power,
    "pow.Scalar": translate_power,
}
