"""Operators along an axis: reductions, and running products, extremes and sums.

Reductions that ONNX has not for every dtype, value or number of elements: aten::amax, amin, aminmax, max, min, argmax and
argmin of bool and of NaN; norms of infinite order; var, std and var_mean with a correction as large as the axis; any and
all of no elements.

torch.onnx (to 2.13) writes a file that does not load for bool, loses a NaN, divides by a negative number where torch gives
NaN, and gives True for any of no elements.

Prefix operators, along an axis of any length, 0 included. torch.onnx (to 2.13) has none of cumprod, cummax and cummin, and
a logcumsumexp that overflows. cumsum and cumprod of float32 run in float64, as torch's own kernels do.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import (
    WHOLE,
    Size,
    Values,
    accumulate,
    along,
    constant,
    count_up,
    dtype_of,
    ints,
    positive,
    rank,
    size_scalar,
    squeeze_both,
    static_size,
)
from anyshape.translate.operators.sorting import prefer_nan, sort_key


def extreme(name: str) -> Callable[..., Any]:
    """amax and amin, and max and min of all elements. NaN, where there is one."""

    def translate(x: ir.Value, dim: Sequence[int] = (), keepdim: bool = False) -> ir.Value:
        axes = ints(*([positive(axis, rank(x)) for axis in dim] or range(rank(x))))
        if not rank(x):
            return op.Identity(x)
        dtype = dtype_of(x)
        if dtype == ir.DataType.BOOL:
            reduced = getattr(op, name)(op.Cast(x, to=ir.DataType.INT32), axes, keepdims=int(keepdim))
            return op.Cast(reduced, to=dtype)
        reduced = getattr(op, name)(x, axes, keepdims=int(keepdim))
        return _or_nan(x, axes, reduced, keepdim) if dtype.is_floating_point() else reduced

    return translate


def _or_nan(x: ir.Value, axes: ir.Value, reduced: ir.Value, keepdim: bool) -> ir.Value:
    # onnxruntime's own extremes skip a NaN, or take it, by its place.
    dtype = dtype_of(x)
    wide = x if dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE) else op.Cast(x, to=ir.DataType.FLOAT)
    is_nan = op.ReduceMax(op.Cast(op.IsNaN(wide), to=ir.DataType.INT32), axes, keepdims=int(keepdim))
    return op.Where(op.Cast(is_nan, to=ir.DataType.BOOL), constant(math.nan, dtype), reduced)


def extreme_with_index(name: str, index_name: str) -> Callable[..., Any]:
    """max.dim and min.dim: of equals the first, and the first NaN before all."""

    def translate(x: ir.Value, dim: int, keepdim: bool = False) -> tuple[ir.Value, ir.Value]:
        if not rank(x):
            return op.Identity(x), constant(0, ir.DataType.INT64)
        axis = positive(dim, rank(x))
        is_bool = dtype_of(x) == ir.DataType.BOOL
        key = op.Cast(x, to=ir.DataType.INT32) if is_bool else x
        value = getattr(op, name)(key, ints(axis), keepdims=1)
        index = getattr(op, index_name)(key, axis=axis, keepdims=1)
        if dtype_of(x).is_floating_point():
            value, index = prefer_nan(x, axis, value, index)
        value = op.Cast(value, to=ir.DataType.BOOL) if is_bool else value
        return squeeze_both(value, index, axis, keepdim)

    return translate


def place_of_extreme(name: str) -> Callable[..., Any]:
    """argmax with "ArgMax", argmin with "ArgMin": of equals the first, and the first NaN before all."""

    def translate(x: ir.Value, dim: int | None = None, keepdim: bool = False) -> ir.Value:
        if not rank(x):
            return constant(0, ir.DataType.INT64)
        key = sort_key(x, dtype_of(x), nan_is_least=name == "ArgMin")
        if dim is not None:
            return getattr(op, name)(key, axis=positive(dim, rank(x)), keepdims=int(keepdim))
        place = getattr(op, name)(op.Reshape(key, ints(-1)), axis=0, keepdims=0)
        return op.Reshape(place, ints(*[1] * rank(x))) if keepdim else place

    return translate


def translate_aminmax(x: ir.Value, *, dim: int | None = None, keepdim: bool = False) -> tuple[ir.Value, ir.Value]:
    axes = () if dim is None else (dim,)
    return extreme("ReduceMin")(x, axes, keepdim), extreme("ReduceMax")(x, axes, keepdim)


def translate_vector_norm(
    x: ir.Value,
    order: float = 2.0,
    dim: Sequence[int] | int | None = None,
    keepdim: bool = False,
    *,
    dtype: int | None = None,
) -> ir.Value:
    """Of infinite order: NaN, where there is one. Else torch.onnx's."""
    if not math.isinf(order):
        from onnxscript.function_libs.torch_lib.ops import linalg

        return linalg.aten_linalg_vector_norm(x, order, dim, keepdim, -1 if dtype is None else dtype)
    wanted = dtype_of(x) if dtype in (None, -1) else ir.DataType(dtype)
    magnitude = op.Abs(x if wanted == dtype_of(x) else op.Cast(x, to=wanted))
    magnitude.type, magnitude.shape = ir.TensorType(wanted), x.shape
    axes = () if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    return extreme("ReduceMax" if order > 0 else "ReduceMin")(magnitude, axes, keepdim)


def spread(*wanted: str) -> Callable[..., Any]:
    """Some of "mean", "var" and "std" along axes; in float64 to the end: a variance above 3e38 has a root below it."""

    def translate(
        x: ir.Value, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
    ) -> Any:
        variance, mean = _wide_var_mean(x, dim, correction, keepdim)
        found = {"mean": lambda: mean, "var": lambda: variance, "std": lambda: op.Sqrt(variance)}
        cast = [op.Cast(found[name](), to=dtype_of(x)) for name in wanted]
        return cast[0] if len(cast) == 1 else tuple(cast)

    return translate


def _wide_var_mean(
    x: ir.Value, dim: Sequence[int] | None, correction: float | None, keepdim: bool
) -> tuple[ir.Value, ir.Value]:
    """Squares about the mean over max(0, n - correction); in float64, where the mean of equals is each of them.

    torch adds one element after the other to the mean: beyond an infinity it is NaN, infinite only if the last one is.
    """
    wide = ir.DataType.DOUBLE
    places = [positive(axis, rank(x)) for axis in dim] if dim else list(range(rank(x)))
    axes, values = ints(*places), op.Cast(x, to=wide)
    count = op.Cast(op.ReduceProd(op.Gather(op.Shape(x), axes), keepdims=0), to=wide)
    mean = op.Div(op.ReduceSum(values, axes, keepdims=1), count)  # NaN without elements, as ReduceMean is not
    apart = op.Sub(values, mean)
    squares = op.ReduceSum(op.Mul(apart, apart), axes, keepdims=int(keepdim))
    lowered = op.Sub(count, constant(1.0 if correction is None else float(correction), wide))
    variance = op.Div(squares, op.Max(lowered, constant(0, wide)))
    mean = op.Where(_is_infinite_before_last(values, places), constant(math.nan, wide), mean)
    return variance, mean if keepdim else op.Squeeze(mean, axes)


def _is_infinite_before_last(values: ir.Value, places: Sequence[int]) -> ir.Value:
    """Whether an element is infinite that is not the last one along these axes."""
    axes, count = ints(*places), len(places)
    flags = op.Cast(op.IsInf(values), to=ir.DataType.INT64)
    last = op.Slice(flags, ints(*[-1] * count), ints(*[WHOLE] * count), axes) if count else flags
    return op.Greater(op.ReduceSum(flags, axes, keepdims=1), op.ReduceSum(last, axes, keepdims=1))


def truth(name: str) -> Callable[..., Any]:
    """any with "ReduceMax", all with "ReduceMin": of no elements, any is False and all is True."""

    def translate(x: ir.Value, dim: Sequence[int] | int | None = None, keepdim: bool = False) -> ir.Value:
        is_true = op.Cast(x, to=ir.DataType.BOOL)
        if not rank(x) or (isinstance(dim, (list, tuple)) and not dim):
            return is_true
        dims = range(rank(x)) if dim is None else [dim] if isinstance(dim, int) else dim
        axes = ints(*(positive(axis, rank(x)) for axis in dims))
        reduced = getattr(op, name)(op.Cast(is_true, to=ir.DataType.INT32), axes, keepdims=int(keepdim))
        # Of no elements ONNX gives the least or the greatest integer, and the least is not 0.
        return op.Greater(reduced, constant(0, ir.DataType.INT32))

    return translate


def translate_cumsum(x: ir.Value, dim: int, *, dtype: int | None = None) -> ir.Value:
    wanted = ir.DataType(dtype) if dtype not in (None, -1) else _promoted(dtype_of(x))
    values = op.Cast(x, to=wanted)
    if rank(x) == 0:
        return values
    axis = constant(positive(dim, rank(x)), ir.DataType.INT64)
    if not wanted.is_floating_point() or wanted == ir.DataType.DOUBLE:
        return op.CumSum(values, axis)
    return op.Cast(op.CumSum(op.Cast(values, to=ir.DataType.DOUBLE), axis), to=wanted)


def translate_cumprod(x: ir.Value, dim: int, *, dtype: int | None = None) -> ir.Value:
    given = dtype_of(x)
    wanted = ir.DataType(dtype) if dtype not in (None, -1) else _promoted(given)
    if rank(x) == 0:
        return op.Cast(x, to=wanted)
    working = ir.DataType.DOUBLE if wanted.is_floating_point() else ir.DataType.INT64
    axis = positive(dim, rank(x))
    (product,) = accumulate(
        [(op.Cast(op.Cast(x, to=wanted), to=working), working)],
        axis,
        _size(x, axis),
        rank(x),
        lambda earlier, later: [op.Mul(earlier[0], later[0])],
    )
    return op.Cast(product, to=wanted)


def _promoted(dtype: ir.DataType) -> ir.DataType:
    return dtype if dtype.is_floating_point() else ir.DataType.INT64


def translate_logcumsumexp(x: ir.Value, dim: int) -> ir.Value:
    if rank(x) == 0:
        return op.Identity(x)
    dtype = dtype_of(x)
    axis = positive(dim, rank(x))

    def combine(earlier: Values, later: Values) -> Values:
        lower, upper = op.Min(earlier[0], later[0]), op.Max(earlier[0], later[0])
        total = op.Add(upper, op.Log(op.Add(constant(1, dtype), op.Exp(op.Sub(lower, upper)))))
        # Equal infinities: their difference is not a number.
        is_same = op.And(op.Equal(lower, upper), op.IsInf(op.Cast(upper, to=ir.DataType.FLOAT)))
        return [op.Where(is_same, upper, total)]

    (result,) = accumulate([(x, dtype)], axis, _size(x, axis), rank(x), combine)
    return result


def running_extreme(comparison: str) -> Callable[..., Any]:
    """cummax with "GreaterOrEqual", cummin with "LessOrEqual": of equals the last is taken, and NaN wins over all."""

    def translate(x: ir.Value, dim: int) -> tuple[ir.Value, ir.Value]:
        if rank(x) == 0:
            return op.Identity(x), constant(0, ir.DataType.INT64)
        dtype = dtype_of(x)
        axis = positive(dim, rank(x))
        places = op.Expand(along(count_up(size_scalar(x, axis)), axis, rank(x)), op.Shape(x))
        compared = _comparable(dtype)
        key = x if compared == dtype else op.Cast(x, to=compared)

        def combine(earlier: Values, later: Values) -> Values:
            takes_later = getattr(op, comparison)(later[0], earlier[0])
            if dtype.is_floating_point():
                takes_later = op.Or(op.IsNaN(later[0]), op.And(op.Not(op.IsNaN(earlier[0])), takes_later))
            return [op.Where(takes_later, new, old) for new, old in zip(later, earlier, strict=True)]

        states = [(key, compared), (places, ir.DataType.INT64)]
        values, indices = accumulate(states, axis, _size(x, axis), rank(x), combine)
        return (values if compared == dtype else op.Cast(values, to=dtype)), indices

    return translate


def _comparable(dtype: ir.DataType) -> ir.DataType:
    if dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT64, ir.DataType.INT32):
        return dtype
    return ir.DataType.FLOAT if dtype.is_floating_point() else ir.DataType.INT64


def _size(x: ir.Value, axis: int) -> Size:
    known = static_size(x, axis)
    return size_scalar(x, axis) if known is None else known


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "amax": extreme("ReduceMax"),
    "amin": extreme("ReduceMin"),
    "aminmax": translate_aminmax,
    "argmax": place_of_extreme("ArgMax"),
    "argmin": place_of_extreme("ArgMin"),
    "any": truth("ReduceMax"),
    "any.dim": truth("ReduceMax"),
    "any.dims": truth("ReduceMax"),
    "all": truth("ReduceMin"),
    "all.dim": truth("ReduceMin"),
    "all.dims": truth("ReduceMin"),
    "_is_all_true": truth("ReduceMin"),  # of torch._check_tensor_all
    "_is_any_true": truth("ReduceMax"),
    "max": extreme("ReduceMax"),
    "min": extreme("ReduceMin"),
    "max.dim": extreme_with_index("ReduceMax", "ArgMax"),
    "min.dim": extreme_with_index("ReduceMin", "ArgMin"),
    "linalg_vector_norm": translate_vector_norm,
    "var.correction": spread("var"),
    "std.correction": spread("std"),
    "var_mean.correction": spread("var", "mean"),
    "std_mean.correction": spread("std", "mean"),
    "cumsum": translate_cumsum,
    "cumprod": translate_cumprod,
    "cummax": running_extreme("GreaterOrEqual"),
    "cummin": running_extreme("LessOrEqual"),
    "logcumsumexp": translate_logcumsumexp,
}
