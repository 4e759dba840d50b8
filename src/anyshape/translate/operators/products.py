"""Products and distances of rows and matrices.

aten::einsum whose ellipsis is summed away, `b...j->b`: the ellipsis is written out as letters. onnxruntime requires one in
the output where the inputs have one; torch.onnx (to 2.13) passes the equation on.

aten::_grouped_mm (the experts of a mixture), and `transformers::grouped_mm_fallback`, which replaces it in captured programs:
its Python body reads the values of the offsets, so that it cannot be inlined. torch.onnx (to 2.13) has neither.

aten::_cdist_forward and _pdist_forward, for every norm: Euclidean distances of more than 25 rows go through a matrix product,
as in torch, so that a large table needs no memory for every difference; which way is decided at run time. torch.onnx (to
2.13) has neither.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import math
import string
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.loop_nodes import choose
from anyshape.translate.operators.size_values import (
    WHOLE,
    as_scalar,
    constant,
    count_up,
    dtype_of,
    ints,
    rank,
    size_scalar,
    size_vector,
    slice_axis,
    static_size,
)


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


_MANY_ROWS = 25
_NEVER_BY_PRODUCT, _ALWAYS_BY_PRODUCT = 2, 1


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


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "_cdist_forward": translate_cdist,
    "_pdist_forward": translate_pdist,
    "einsum": translate_einsum,
    "_grouped_mm": translate_grouped_mm,
}


LIBRARY_TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "transformers::grouped_mm_fallback": translate_grouped,
}
