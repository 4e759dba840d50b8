"""Complex numbers as pairs, on a last axis of 2: aten::exp, sigmoid, einsum, mm, bmm, conversions, and moves of whole
numbers (select, expand, pad, unsqueeze ...), where only the axes must be counted without the last.

torch.onnx (to 2.13) has arithmetic and a few moves, and refuses all of these.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.products import translate_einsum
from anyshape.translate.operators.ranges import translate_roll
from anyshape.translate.operators.size_values import (
    Size,
    as_scalar,
    as_vector,
    constant,
    dtype_of,
    ints,
    positive,
    rank,
)

Parts = tuple[ir.Value, ir.Value]


def split(pairs: ir.Value) -> Parts:
    """Real and imaginary parts, without the last axis, and with the dtype and shape that are known of them."""
    parts = []
    for number in (0, 1):
        part = op.Gather(pairs, as_scalar(number), axis=-1)
        part.type = ir.TensorType(dtype_of(pairs))
        part.shape = ir.Shape(list(pairs.shape)[:-1]) if pairs.shape is not None else None
        parts.append(part)
    return parts[0], parts[1]


def join(real: ir.Value, imaginary: ir.Value) -> ir.Value:
    return op.Concat(op.Unsqueeze(real, ints(-1)), op.Unsqueeze(imaginary, ints(-1)), axis=-1)


def multiply(left: Parts, right: Parts) -> Parts:
    (a, b), (c, d) = left, right
    return op.Sub(op.Mul(a, c), op.Mul(b, d)), op.Add(op.Mul(a, d), op.Mul(b, c))


def translate_real(x: ir.Value) -> ir.Value:
    return split(x)[0]


def translate_imag(x: ir.Value) -> ir.Value:
    return split(x)[1]


def translate_conjugate(x: ir.Value) -> ir.Value:
    return op.Mul(x, constant([1, -1], dtype_of(x)))


def translate_exp(x: ir.Value) -> ir.Value:
    real, imaginary = split(x)
    size = op.Exp(real)
    return join(op.Mul(size, op.Cos(imaginary)), op.Mul(size, op.Sin(imaginary)))


def translate_sigmoid(x: ir.Value) -> ir.Value:
    """1 / (1 + exp(-x))."""
    dtype = dtype_of(x)
    powered = split_like(translate_exp(typed(op.Neg(x), x)), x)
    real = op.Add(powered[0], constant(1, dtype))
    length = op.Add(op.Mul(real, real), op.Mul(powered[1], powered[1]))
    return join(op.Div(real, length), op.Neg(op.Div(powered[1], length)))


def translate_silu(x: ir.Value) -> ir.Value:
    return join(*multiply(split(x), split_like(translate_sigmoid(x), x)))


def translate_mul_scalar(x: ir.Value, other: complex) -> ir.Value:
    if not isinstance(other, complex):
        return op.Mul(x, constant(other, dtype_of(x)))
    number = (constant(other.real, dtype_of(x)), constant(other.imag, dtype_of(x)))
    return join(*multiply(split(x), number))


def typed(value: ir.Value, like: ir.Value) -> ir.Value:
    """`value` with the dtype and shape of another: an operator's result has none yet."""
    value.type, value.shape = like.type, like.shape
    return value


def split_like(pairs: ir.Value, like: ir.Value) -> Parts:
    return split(typed(pairs, like))


def translate_matmul(x: ir.Value, other: ir.Value) -> ir.Value:
    """mm and bmm: four products of real matrices."""
    (a, b), (c, d) = split(x), split(other)
    return join(op.Sub(op.MatMul(a, c), op.MatMul(b, d)), op.Add(op.MatMul(a, d), op.MatMul(b, c)))


def translate_complex_einsum(equation: str, tensors: Sequence[ir.Value], path: Any = None) -> ir.Value:
    """Products are taken two by two, with all letters kept that a later term or the result has."""
    terms, _, result = _explicit(equation.replace(" ", "")).partition("->")
    letters = terms.split(",")
    if "." in equation or len(letters) > 2:
        raise NotImplementedError("einsum of complex numbers with an ellipsis or with more than two terms")
    parts = [split(tensor) for tensor in tensors]
    if len(parts) == 1:
        return join(*(translate_einsum(f"{terms}->{result}", [part]) for part in parts[0]))
    (a, b), (c, d) = parts

    def product(left: ir.Value, right: ir.Value) -> ir.Value:
        return translate_einsum(f"{terms}->{result}", [left, right])

    return join(op.Sub(product(a, c), product(b, d)), op.Add(product(a, d), product(b, c)))


def _explicit(equation: str) -> str:
    """The result of an equation without an arrow has the letters that appear once, in order."""
    if "->" in equation:
        return equation
    once = sorted(letter for letter in set(equation) - {","} if equation.count(letter) == 1)
    return equation + "->" + "".join(once)


def translate_sym_size(x: ir.Value, dim: int = 0) -> ir.Value:
    axis = positive(dim, rank(x) - 1)
    return as_scalar(op.Shape(x, start=axis, end=axis + 1))


def translate_unsqueeze(x: ir.Value, dim: int) -> ir.Value:
    return op.Unsqueeze(x, ints(positive(dim, rank(x))))


def translate_select(x: ir.Value, dim: int, index: Size) -> ir.Value:
    return op.Gather(x, as_scalar(index), axis=positive(dim, rank(x) - 1))


def translate_index_select(x: ir.Value, dim: int, index: ir.Value) -> ir.Value:
    return op.Gather(x, index, axis=positive(dim, rank(x) - 1))


def translate_expand(x: ir.Value, size: Sequence[Size], *, implicit: bool = False) -> ir.Value:
    # -1 keeps an axis, as 1 does in ONNX's Expand.
    sizes = [1 if isinstance(each, int) and each == -1 else each for each in size]
    return op.Expand(x, ints(*sizes, 2)) if len(sizes) == rank(x) - 1 else _expand_front(x, sizes)


def _expand_front(x: ir.Value, sizes: Sequence[Size]) -> ir.Value:
    new = len(sizes) - (rank(x) - 1)
    return op.Expand(op.Unsqueeze(x, ints(*range(new))), ints(*sizes, 2))


def translate_reshape(x: ir.Value, size: Sequence[Size]) -> ir.Value:
    return op.Reshape(x, op.Concat(*(as_vector(each) for each in (*size, 2)), axis=0), allowzero=1)


def translate_pad(x: ir.Value, pad: Sequence[Size], value: float = 0) -> ir.Value:
    """torch counts pads from the last axis, begin and end in turn; negative ones cut."""
    of_rank = rank(x) - 1
    begin: list[Size] = [0] * (of_rank + 1)
    end: list[Size] = [0] * (of_rank + 1)
    for number in range(len(pad) // 2):
        begin[of_rank - 1 - number], end[of_rank - 1 - number] = pad[2 * number], pad[2 * number + 1]
    if isinstance(value, (int, float)) and value == 0:
        return op.Pad(x, ints(*begin, *end), constant(0, dtype_of(x)))
    raise NotImplementedError("padding of complex numbers by another than 0")


def translate_complex_roll(x: ir.Value, shifts: Sequence[Size], dims: Sequence[int] = ()) -> ir.Value:
    if rank(x) == 1:
        return op.Identity(x)
    if dims:
        return translate_roll(x, shifts, [positive(dim, rank(x) - 1) for dim in dims])
    flat = op.Reshape(x, ints(-1, 2))
    flat.type, flat.shape = x.type, ir.Shape([None, 2])
    return op.Reshape(translate_roll(flat, shifts, (0,)), op.Shape(x))


def translate_where(condition: ir.Value, x: ir.Value, other: ir.Value) -> ir.Value:
    return op.Where(op.Unsqueeze(condition, ints(-1)), x, other)


def translate_recast(x: ir.Value, dtype: int = -1, **others: Any) -> ir.Value:
    """complex -> complex of another width; to real, the imaginary part is dropped."""
    wanted = ir.DataType(dtype) if dtype not in (None, -1) else ir.DataType.COMPLEX64
    part = {ir.DataType.COMPLEX64: ir.DataType.FLOAT, ir.DataType.COMPLEX128: ir.DataType.DOUBLE}.get(wanted)
    return op.Cast(split(x)[0], to=wanted) if part is None else op.Cast(x, to=part)


def translate_zeros_like(x: ir.Value, **options: Any) -> ir.Value:
    return op.Expand(constant(0, dtype_of(x)), op.Shape(x))


def translate_slice_scatter(
    x: ir.Value, src: ir.Value, dim: int = 0, start: Any = None, end: Any = None, step: Size = 1
) -> ir.Value:
    from onnxscript.function_libs.torch_lib.ops import core

    if rank(src) != rank(x):
        raise NotImplementedError("real numbers written into a slice of complex ones")
    return core.aten_slice_scatter(x, src, positive(dim, rank(x) - 1), start, end, step)


def translate_copy(x: ir.Value, src: ir.Value, non_blocking: bool = False) -> ir.Value:
    if src.shape is None or not rank(src) or src.shape[-1] != 2:
        raise NotImplementedError("real numbers copied into complex ones")
    same_dtype = src if src.dtype == dtype_of(x) else op.Cast(src, to=dtype_of(x))
    return op.Expand(same_dtype, op.Shape(x))


COMPLEX_TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "exp": translate_exp,
    "sigmoid": translate_sigmoid,
    "einsum": translate_complex_einsum,
    "silu": translate_silu,
    "mul.Scalar": translate_mul_scalar,
    "mm": translate_matmul,
    "bmm": translate_matmul,
    "real": translate_real,
    "imag": translate_imag,
    "conj_physical": translate_conjugate,
    "_conj_physical": translate_conjugate,
    "sym_size.int": translate_sym_size,
    "unsqueeze": translate_unsqueeze,
    "select.int": translate_select,
    "index_select": translate_index_select,
    "expand": translate_expand,
    "reshape": translate_reshape,
    "constant_pad_nd": translate_pad,
    "roll": translate_complex_roll,
    "where.self": translate_where,
    "_to_copy": translate_recast,
    "prims::convert_element_type": translate_recast,
    "zeros_like": translate_zeros_like,
    "slice_scatter": translate_slice_scatter,
    "copy": translate_copy,
}
