"""Products and distances of rows and matrices, and scaled_dot_product_attention.

aten::einsum whose ellipsis is summed away, `b...j->b`: the ellipsis is written out as letters. onnxruntime requires one in
the output where the inputs have one; torch.onnx (to 2.13) passes the equation on.

aten::_grouped_mm (the experts of a mixture), and `transformers::grouped_mm_fallback`, which replaces it in captured programs:
its Python body reads the values of the offsets, so that it cannot be inlined. torch.onnx (to 2.13) has neither.

aten::_cdist_forward and _pdist_forward, for every norm: Euclidean distances of more than 25 rows go through a matrix product,
as in torch, so that a large table needs no memory for every difference; which way is decided at run time. torch.onnx (to
2.13) has neither.

torch.onnx (to 2.13) takes tensors of four axes only. What depends on the mask alone (the bias, the rows without a key) is
computed from the mask: layers with one mask share these nodes, and nothing but one addition reads all scores once more.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.ranges import translate_repeat_interleave
from anyshape.translate.operators.size_values import (
    WHOLE,
    as_scalar,
    choose,
    constant,
    count_up,
    dtype_of,
    ints,
    lowest,
    rank,
    size_scalar,
    size_vector,
    slice_axis,
    static_size,
)

_MANY_ROWS = 25
_NEVER_BY_PRODUCT, _ALWAYS_BY_PRODUCT = 2, 1

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.


def translate_einsum(equation: str, tensors: Sequence[ir.Value], path: Any = None) -> ir.Value:
    return op.Einsum(*tensors, equation=write_out(equation.replace(" ", ""), [rank(tensor) for tensor in tensors]))


def write_out(equation: str, ranks: Sequence[int]) -> str:
    """The equation without an ellipsis, where its output has none; else as it is."""
    inputs, arrow, output = equation.partition("->")
    if not arrow or "..." not in inputs or "..." in output:
        return equation
    terms = inputs.split(",")
    hidden = [of_rank - len(term.replace("...", "")) for term, of_rank in zip(terms, ranks, strict=True)]
    free = [letter for letter in string.ascii_letters if letter not in equation][: max(hidden)]
    # Axes of an ellipsis are aligned from the right.
    written = [
        term.replace("...", "".join(free[len(free) - count :])) for term, count in zip(terms, hidden, strict=True)
    ]
    return ",".join(written) + "->" + output


def translate_grouped(rows: ir.Value, matrices: ir.Value, offsets: ir.Value) -> ir.Value:
    """Rows up to offsets[0] times matrices[0], from there to offsets[1] times matrices[1], ...; zeros for those beyond."""
    groups = static_size(matrices, 0)
    if groups is None or rank(rows) != 2 or rank(matrices) != 3:
        raise NotImplementedError("a grouped product of another form than rows by a fixed number of matrices")
    ends = op.Cast(offsets, to=ir.DataType.INT64)
    starts = op.Concat(ints(0), ends, axis=0)
    counts = op.Sub(op.Concat(ends, size_vector(rows, 0), axis=0), starts)
    pieces = _split(rows, counts, groups + 1)
    products = [
        op.MatMul(piece, op.Gather(matrices, constant(number, ir.DataType.INT64), axis=0))
        for number, piece in enumerate(pieces[:-1])
    ]
    left_over = slice_axis(counts, groups, WHOLE, 0)
    zeros = op.Expand(constant(0, dtype_of(rows)), op.Concat(left_over, size_vector(matrices, 2), axis=0))
    return op.Concat(*products, zeros, axis=0)


def _split(rows: ir.Value, counts: ir.Value, number: int) -> Sequence[ir.Value]:
    import onnxscript.evaluator

    node = ir.node("Split", [rows, counts], {"axis": 0}, num_outputs=number)
    onnxscript.evaluator.default().nodes.append(
        node
    )  # torch.onnx's recorder; `op.Split` takes counts or a number alone
    return node.outputs


def translate_grouped_mm(
    rows: ir.Value,
    matrices: ir.Value,
    offs: ir.Value | None = None,
    bias: ir.Value | None = None,
    out_dtype: int | None = None,
) -> ir.Value:
    if offs is None or bias is not None or out_dtype not in (None, -1, dtype_of(rows)):
        raise NotImplementedError("a grouped product without offsets, with a bias, or in another dtype")
    return translate_grouped(rows, matrices, offs)


def translate_cdist(x1: ir.Value, x2: ir.Value, p: float, compute_mode: int | None = None) -> ir.Value:
    dtype = dtype_of(x1)
    if p != 2 or compute_mode == _NEVER_BY_PRODUCT:
        return _by_differences(x1, x2, p, dtype)
    if compute_mode == _ALWAYS_BY_PRODUCT:
        return _by_product(x1, x2, dtype)
    many = constant(_MANY_ROWS, ir.DataType.INT64)
    is_large = op.Or(op.Greater(size_scalar(x1, -2), many), op.Greater(size_scalar(x2, -2), many))
    (distance,) = choose(is_large, lambda: [_by_product(x1, x2, dtype)], lambda: [_by_differences(x1, x2, p, dtype)])
    return distance


def _by_product(x1: ir.Value, x2: ir.Value, dtype: ir.DataType) -> ir.Value:
    square1 = op.ReduceSumSquare(x1, ints(rank(x1) - 1), keepdims=1)
    square2 = op.Unsqueeze(op.ReduceSumSquare(x2, ints(rank(x2) - 1), keepdims=0), ints(-2))
    last = rank(x2)
    product = op.MatMul(x1, op.Transpose(x2, perm=[*range(last - 2), last - 1, last - 2]))
    squared = op.Sub(op.Add(square1, square2), op.Mul(constant(2, dtype), product))
    return op.Sqrt(op.Max(squared, constant(0, dtype)))


def _by_differences(x1: ir.Value, x2: ir.Value, p: float, dtype: ir.DataType) -> ir.Value:
    difference = op.Abs(op.Sub(op.Unsqueeze(x1, ints(-2)), op.Unsqueeze(x2, ints(-3))))
    return _norm(difference, max(rank(x1), rank(x2)), p, dtype)


def _norm(difference: ir.Value, axis: int, p: float, dtype: ir.DataType) -> ir.Value:
    """Of values that are not negative. `axis` counts from the front: onnxruntime 1.31 gives the wrong shape for a
    negative one where there are no rows."""
    last = ints(axis)
    if p == 0:
        is_not_zero = op.Greater(difference, constant(0, dtype))
        return op.ReduceSum(op.Cast(is_not_zero, to=dtype), last, keepdims=0)
    if p == 1:
        return op.ReduceSum(difference, last, keepdims=0)
    if p == 2:
        return op.ReduceL2(difference, last, keepdims=0)
    if math.isinf(p):
        return op.ReduceMax(difference, last, keepdims=0)
    total = op.ReduceSum(op.Pow(difference, constant(p, dtype)), last, keepdims=0)
    return op.Pow(total, constant(1 / p, dtype))


def translate_pdist(x: ir.Value, p: float = 2.0) -> ir.Value:
    """Distances of all pairs of rows i < j, in the order of i, then j."""
    size = size_scalar(x, 0)
    row = count_up(size)
    is_pair = op.Less(op.Unsqueeze(row, ints(1)), op.Unsqueeze(row, ints(0)))
    pairs = op.NonZero(is_pair)
    first, second = (op.Gather(pairs, as_scalar(number), axis=0) for number in (0, 1))
    difference = op.Abs(op.Sub(op.Gather(x, first, axis=0), op.Gather(x, second, axis=0)))
    return _norm(difference, 1, p, dtype_of(x))


LIBRARY_TRANSLATIONS: dict[str, Callable[..., Any]] = {"transformers::grouped_mm_fallback": translate_grouped}


# mypy: disable-error-code="no-any-return"
# onnxscript has no types.


def translate_attention(
    query: ir.Value,
    key: ir.Value,
    value: ir.Value,
    attn_mask: ir.Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> ir.Value:
    if enable_gqa:
        groups = op.Div(size_scalar(query, -3), size_scalar(key, -3))
        key, value = (_typed(translate_repeat_interleave(heads, groups, -3), heads) for heads in (key, value))
    scores = _scores(query, key, scale)
    dtype, axis = dtype_of(query), rank(query) - 1
    if attn_mask is None:
        # The first key is seen from every row, also under a causal mask.
        seen = op.Add(scores, _bias(_causal(query, key), dtype)) if is_causal else scores
        return op.MatMul(op.Softmax(seen, axis=axis), value)
    axis = max(axis, rank(attn_mask) - 1)
    bias = _bias(attn_mask, dtype)
    if rank(attn_mask) == 0:
        return op.MatMul(op.Softmax(op.Add(scores, bias), axis=axis), value)
    lowest_bias = constant(lowest(dtype), dtype)
    is_hidden = op.Equal(op.ReduceMax(bias, ints(rank(attn_mask) - 1), keepdims=1), lowest_bias)
    # Such a row is computed as if it had no mask, and then replaced by zeros: x - x is 0, and NaN where a score is NaN or a
    # value NaN or infinite, as in torch. ReduceMax leaves out NaN, so a NaN of the mask has to stay in the bias.
    is_cleared = is_hidden if attn_mask.dtype == ir.DataType.BOOL else op.And(is_hidden, op.Equal(bias, lowest_bias))
    shown = op.Where(is_cleared, constant(0, dtype), bias)
    result = op.MatMul(op.Softmax(op.Add(scores, shown), axis=axis), value)
    return op.Where(is_hidden, op.Sub(result, result), result)


def _bias(mask: ir.Value, dtype: ir.DataType) -> ir.Value:
    """What is added to the scores: a mask of booleans as 0 and minus infinity, one of numbers as it is."""
    if mask.dtype == ir.DataType.BOOL:
        return op.Where(mask, constant(0, dtype), constant(lowest(dtype), dtype))
    return op.Cast(mask, to=dtype) if mask.dtype != dtype else mask


def _causal(query: ir.Value, key: ir.Value) -> ir.Value:
    """bool[L, S]: no step sees a later one."""
    zero, one = constant(0, ir.DataType.INT64), constant(1, ir.DataType.INT64)
    rows, columns = (op.Range(zero, size_scalar(value, -2), one) for value in (query, key))
    mask = op.GreaterOrEqual(op.Unsqueeze(rows, ints(1)), op.Unsqueeze(columns, ints(0)))
    return _known(mask, 2)


def _known(mask: ir.Value, axes: int) -> ir.Value:
    mask.type, mask.shape = ir.TensorType(ir.DataType.BOOL), ir.Shape([None] * axes)
    return mask


def _typed(heads: ir.Value, like: ir.Value) -> ir.Value:
    heads.type = like.type
    heads.shape = ir.Shape([None] * rank(like))
    return heads


def _scores(query: ir.Value, key: ir.Value, scale: float | None) -> ir.Value:
    last = rank(key)
    turned = op.Transpose(key, perm=[*range(last - 2), last - 1, last - 2])
    return op.Mul(op.MatMul(query, turned), _scale(query, scale, dtype_of(query)))


def _scale(query: ir.Value, scale: float | None, dtype: ir.DataType) -> ir.Value:
    if scale is not None and not isinstance(scale, ir.Value):
        return constant(float(scale), dtype)
    if scale is not None:
        return op.Cast(scale, to=dtype)
    return op.Reciprocal(op.Sqrt(op.Cast(size_scalar(query, -1), to=dtype)))


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
    "_cdist_forward": translate_cdist,
    "_pdist_forward": translate_pdist,
    "einsum": translate_einsum,
    "_grouped_mm": translate_grouped_mm,
    "scaled_dot_product_attention": translate_attention,
}
