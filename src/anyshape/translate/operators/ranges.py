"""Tensors made or moved along an axis: ranges, repetitions, random numbers, roll and pad.

aten::arange of floats: as many numbers as torch counts in double precision, each computed there.

torch.onnx (to 2.13) counts in single precision, which is one more or one less at some ends: `arange(0, 7, 0.7)`, for one.
Of integers, it is theirs.

aten::repeat_interleave by a number, which may be a size, and aten::nonzero_static.

torch.onnx (to 2.13) repeats by 1 where the number is a size, and has no nonzero_static.

aten::repeat_interleave of a tensor of numbers: the places of what is repeated, none included.

torch.onnx (to 2.13) writes Dropout and Bernoulli, of which onnxruntime (to 1.31) seeds a new generator in each run: the first
element is nearly the same each time. It has no translation of uniform and randperm.

aten::roll, also by amounts that are sizes, and on axes without elements.

torch.onnx (to 2.13) takes constant amounts only. An element moves from place i to (i + shift) mod n.

aten::pad that wraps round, and padding by a negative number beside a mode: each axis reads the places it shows.

ONNX has "wrap" since opset 19, and onnxruntime (1.31) refuses it without elements, as it does "edge" where a negative
number takes the whole axis. torch.onnx's own translation (to 2.13) is used for all else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.leaves.open_lengths import CUTS_BOUNDS
from anyshape.translate.operators.size_values import (
    WHOLE,
    Size,
    as_scalar,
    as_vector,
    constant,
    count_up,
    ints,
    positive,
    rank,
    shape_of,
    size_scalar,
    size_vector,
    slice_axis,
    static_size,
)

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

_DOUBLE, _INT64 = ir.DataType.DOUBLE, ir.DataType.INT64
Bound = ir.Value | float
_FLOAT = ir.DataType.FLOAT


def translate_arange(end: Bound, *, dtype: int = -1, **options: Any) -> ir.Value:
    return _count(0, end, 1, dtype, lambda core: core.aten_arange(end, dtype=dtype))


def translate_arange_start(start: Bound, end: Bound, *, dtype: int = -1, **options: Any) -> ir.Value:
    return _count(start, end, 1, dtype, lambda core: core.aten_arange_start(start, end, dtype=dtype))


def translate_arange_step(start: Bound, end: Bound, step: Bound = 1, *, dtype: int = -1, **options: Any) -> ir.Value:
    return _count(start, end, step, dtype, lambda core: core.aten_arange_start_step(start, end, step, dtype=dtype))


def _count(start: Bound, end: Bound, step: Bound, dtype: int | None, theirs: Callable[[Any], ir.Value]) -> ir.Value:
    is_whole = not any(_is_float(bound) for bound in (start, end, step))
    if dtype in (-1, None):
        dtype = _INT64 if is_whole else ir.DataType.FLOAT
    wanted = ir.DataType(dtype)
    if wanted == _INT64 and not is_whole and not CUTS_BOUNDS:
        first, width = (op.Cast(_double(bound), to=_INT64) for bound in (start, step))
        return op.Add(first, op.Mul(count_up(_steps_between(start, end, step)), width))
    if not wanted.is_floating_point():
        from onnxscript.function_libs.torch_lib.ops import core

        return theirs(core)
    if is_whole:
        return op.Cast(op.Range(*(as_scalar(_plain(bound)) for bound in (start, end, step))), to=wanted)
    return write_steps(start, step, _steps_between(start, end, step), wanted)


def _steps_between(start: Bound, end: Bound, step: Bound) -> ir.Value:
    """How many numbers there are, counted in double precision."""
    first, last, width = (_double(bound) for bound in (start, end, step))
    return op.Cast(op.Ceil(op.Div(op.Sub(last, first), width)), to=_INT64)


def write_steps(start: Bound, step: Bound, number: Size, dtype: ir.DataType) -> ir.Value:
    """start, start + step, ... : that many."""
    steps = op.Mul(op.Cast(count_up(number), to=_DOUBLE), _double(step))
    return op.Cast(op.Add(_double(start), steps), to=dtype)


def _is_float(bound: Bound) -> bool:
    if isinstance(bound, ir.Value):
        return bound.dtype is not None and bound.dtype.is_floating_point()
    return isinstance(bound, float)


def _plain(bound: Bound) -> int | ir.Value:
    return bound if isinstance(bound, ir.Value) else int(bound)


def _double(bound: Bound) -> ir.Value:
    if not isinstance(bound, ir.Value):
        return constant(bound, _DOUBLE)
    return op.Cast(as_scalar(bound) if bound.dtype == _INT64 else op.Squeeze(bound), to=_DOUBLE)


def translate_repeat_interleave(
    x: ir.Value, repeats: Size, dim: int | None = None, *, output_size: Size | None = None
) -> ir.Value:
    if dim is None:
        return _repeat_axis(op.Reshape(x, ints(-1)), repeats, 0, 1)
    return _repeat_axis(x, repeats, positive(dim, rank(x)), rank(x))


def _repeat_axis(x: ir.Value, repeats: Size, axis: int, of_rank: int) -> ir.Value:
    """The axis becomes two, the second as long as there are repeats, and the two become one."""
    number = as_vector(repeats)
    before, after = shape_of(x, 0, axis), shape_of(x, axis + 1, of_rank)
    size = op.Shape(x, start=axis, end=axis + 1)
    wide = op.Expand(op.Unsqueeze(x, ints(axis + 1)), op.Concat(*before, size, number, *after, axis=0))
    return op.Reshape(wide, op.Concat(*before, op.Mul(size, number), *after, axis=0), allowzero=1)


def translate_nonzero_static(x: ir.Value, *, size: Size, fill_value: int = -1) -> ir.Value:
    """The first `size` places that are not zero, filled up where there are fewer."""
    found = op.Transpose(op.NonZero(x), perm=[1, 0])
    wanted = as_vector(size)
    cut = op.Slice(found, ints(0), wanted, ints(0))
    missing = op.Sub(wanted, op.Shape(cut, start=0, end=1))
    return op.Pad(cut, op.Concat(ints(0, 0), missing, ints(0), axis=0), constant(fill_value, ir.DataType.INT64))


# mypy: disable-error-code="no-any-return"
# onnxscript has no types.


def translate_native_dropout(x: ir.Value, p: float, train: bool | None = True) -> tuple[ir.Value, ir.Value]:
    """An element is kept where a number of [0, 1) is at least p."""
    if train is False or p == 0.0:
        return op.Identity(x), op.CastLike(op.Expand(op.Constant(value_float=1.0), op.Shape(x)), _true())
    kept = op.GreaterOrEqual(_uniform(x), op.Constant(value_float=float(p)))
    scale = 0.0 if p >= 1.0 else 1.0 / (1.0 - p)
    return op.Mul(op.Mul(x, op.CastLike(kept, x)), op.CastLike(op.Constant(value_float=scale), x)), kept


def translate_dropout(x: ir.Value, p: float, train: bool) -> ir.Value:
    return translate_native_dropout(x, p, train)[0]


def translate_bernoulli(p: ir.Value, generator: Any = None) -> ir.Value:
    return op.CastLike(op.Less(_uniform(p), op.Cast(p, to=_FLOAT)), p)


def translate_bernoulli_p(x: ir.Value, p: float = 0.5, generator: Any = None) -> ir.Value:
    return op.CastLike(op.Less(_uniform(x), op.Constant(value_float=float(p))), x)


def translate_uniform(x: ir.Value, low: float = 0.0, high: float = 1.0, generator: Any = None) -> ir.Value:
    return op.CastLike(op.RandomUniformLike(x, low=float(low), high=float(high), dtype=_FLOAT), x)


def translate_randperm(n: Size, **_: Any) -> ir.Value:
    """The order that sorts n random numbers."""
    length = as_vector(n)
    noise = _uniform(op.Expand(op.Constant(value_float=0.0), length))
    return op.TopK(noise, length)[1]


def _uniform(like: ir.Value) -> ir.Value:
    return op.RandomUniformLike(like, low=0.0, high=1.0, dtype=_FLOAT)


def _true() -> ir.Value:
    return op.Cast(ints(1), to=ir.DataType.BOOL)


# mypy: disable-error-code="no-any-return"
# onnxscript has no types.


def translate_roll(x: ir.Value, shifts: Sequence[Size], dims: Sequence[int] = ()) -> ir.Value:
    if rank(x) == 0:
        return op.Identity(x)
    if not dims:
        flat = _roll_axis(op.Reshape(x, ints(-1)), shifts[0], 0, None, op.Size(x))
        return op.Reshape(flat, op.Shape(x))
    rolled = x  # of complex numbers, torch.onnx finds the shape of a result only where it has none yet
    for shift, dim in zip(shifts, dims, strict=True):
        axis = positive(dim, rank(x))
        rolled = _roll_axis(rolled, shift, axis, static_size(x, axis), size_vector(x, axis))
    return rolled


def _roll_axis(x: ir.Value, shift: Size, axis: int, known_size: int | None, size: ir.Value) -> ir.Value:
    """`x` cut in two, the parts exchanged."""
    if isinstance(shift, int) and known_size is not None:
        cut: Size = -shift % known_size if known_size else 0
    elif isinstance(shift, int) and shift in (1, -1):
        cut = -shift  # a slice that starts at -1 is the last element, whatever the size
    else:
        # Never 0, by which one may not divide.
        divisor = op.Max(as_vector(size), ints(1))
        cut = op.Mod(op.Neg(as_vector(shift)), divisor)
    return op.Concat(slice_axis(x, cut, WHOLE, axis), slice_axis(x, 0, cut, axis), axis=axis)


def translate_pad(x: ir.Value, pad: Sequence[Size], mode: str = "constant", value: float | None = None) -> ir.Value:
    from onnxscript.function_libs.torch_lib.ops.nn import aten_pad

    has_negative = any(isinstance(size, int) and size < 0 for size in pad)
    if mode == "constant" or (mode != "circular" and not has_negative):
        return aten_pad(x, pad, mode, value)
    for number in range(len(pad) // 2):
        axis = rank(x) - 1 - number
        before, after = pad[2 * number], pad[2 * number + 1]
        if before == 0 and after == 0:
            continue
        read = op.Gather(x, _places(size_scalar(x, axis), before, after, mode), axis=axis)
        # Other axes are as they were; this one is not read again.
        read.type, read.shape = x.type, x.shape
        x = read
    return x


def _places(size: ir.Value, before: Size, after: Size, mode: str) -> ir.Value:
    one = constant(1, ir.DataType.INT64)
    shown = op.Range(op.Neg(as_scalar(before)), op.Add(size, as_scalar(after)), one)
    if mode == "circular":
        return op.Mod(shown, size)
    last = op.Sub(size, one)
    if mode == "replicate":
        return op.Max(op.Min(shown, last), constant(0, ir.DataType.INT64))
    return op.Sub(last, op.Abs(op.Sub(last, op.Abs(shown))))


def translate_masked_select(x: ir.Value, mask: ir.Value) -> ir.Value:
    seen = op.And(mask, op.Expand(constant(True, ir.DataType.BOOL), op.Shape(x)))
    wide = op.Expand(x, op.Shape(seen))
    return op.Compress(op.Reshape(wide, ints(-1)), op.Reshape(seen, ints(-1)), axis=0)


def translate_repeats(repeats: ir.Value, *, output_size: Any = None) -> ir.Value:
    """Each place as many times as its number says: how many ends are at or before each place of the result."""
    one = constant(1, _INT64)
    ends = op.CumSum(op.Cast(repeats, to=_INT64), constant(0, _INT64))
    total = op.ReduceMax(op.Concat(ends, ints(0), axis=0), keepdims=0)
    places = op.Unsqueeze(op.Range(constant(0, _INT64), total, one), ints(1))
    return op.ReduceSum(op.Cast(op.LessOrEqual(ends, places), to=_INT64), ints(1), keepdims=0)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "masked_select": translate_masked_select,
    "repeat_interleave.self_int": translate_repeat_interleave,
    "repeat_interleave.Tensor": translate_repeats,
    "nonzero_static": translate_nonzero_static,
    "arange": translate_arange,
    "arange.start": translate_arange_start,
    "arange.start_step": translate_arange_step,
    "bernoulli": translate_bernoulli,
    "bernoulli.p": translate_bernoulli_p,
    "dropout": translate_dropout,
    "native_dropout": translate_native_dropout,
    "randperm": translate_randperm,
    "uniform": translate_uniform,
    "roll": translate_roll,
    "pad": translate_pad,
}
