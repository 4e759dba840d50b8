"""Operators of ours that captured programs hold: loops, pieces of tensors, numbers computed through floats, assertions
about values, grouped products.

torch's own `select` and `slice` record conditions on a computed place (is it negative, does it reach beyond the end), which
a place learned from traces is known already; these record none. No place here is negative or beyond the end.

The body of a loop is not an argument: the record of the capture has it under the loop's name. `sizes` are the sizes of all
axes of all results, one result after the other, `ranks` of them each; so no kernel needs to know the body. A size that values
decide is `BY_VALUES`.

Python computes in double precision, and one step in single precision rounds to another whole number at some sizes (1.1 * 50
is 55.00000000000001). Kept in one piece, the formula is written in double precision through and through. How many numbers
`torch.arange` gives is such a number, too.

torch's `_grouped_mm` multiplies float32 on the CPU, but its rule for fake tensors takes bfloat16 alone (seen to torch 2.13).
Its ONNX nodes are those of torch's own operator, in `translate/operators/products.py`.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from anyshape.intercept.real_numbers import OPEN_EXP, OPEN_FLOAT32, OPEN_LOG, OPEN_LOG2, OPEN_LOG10
from anyshape.leaves import define

_SCHEMA = (
    "(str name, SymInt trips, Tensor[] carried, Tensor[] tensors, SymInt[] numbers, SymInt[] sizes, int[] ranks, "
    "str[] dtypes) -> Tensor[]"
)
BY_VALUES = -1
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "trunc": math.trunc,
    "round": round,
    "float": torch.sym_float,
    "sqrt": torch._sym_sqrt,  # type: ignore[attr-defined]
    "log": OPEN_LOG,
    "log2": OPEN_LOG2,
    "log10": OPEN_LOG10,
    "exp": OPEN_EXP,
    "float32": OPEN_FLOAT32,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "neg": operator.neg,
    "pow": operator.pow,
    "max": torch.sym_max,
    "min": torch.sym_min,
}
"""By the names that formulas use; `["size", k]` is the k-th size."""
_NAMES = ("self", "mat2", "offs", "bias", "out_dtype")
_DTYPES = (torch.float16, torch.float32)


def _pick(tensor: Tensor, axis: int, index: int) -> Tensor:
    return tensor.select(axis, index).clone()


def _pick_shape(tensor: Tensor, axis: int, index: int) -> Tensor:
    return tensor.new_empty([size for place, size in enumerate(tensor.shape) if place != axis])


def _cut(tensor: Tensor, axis: int, start: int, size: int, step: int) -> Tensor:
    return tensor.narrow(axis, start, (size - 1) * step + 1 if size else 0)[
        (slice(None),) * axis + (slice(None, None, step),)
    ].clone()


def _cut_shape(tensor: Tensor, axis: int, start: int, size: int, step: int) -> Tensor:
    shape = list(tensor.shape)
    shape[axis] = size
    return tensor.new_empty(shape)


def _put(tensor: Tensor, source: Tensor, axis: int, index: int) -> Tensor:
    return tensor.select_scatter(source, axis, index)


def _put_shape(tensor: Tensor, source: Tensor, axis: int, index: int) -> Tensor:
    return tensor.new_empty(tensor.shape)


def _put_slice(tensor: Tensor, source: Tensor, axis: int, start: int) -> Tensor:
    return tensor.slice_scatter(source, axis, start, start + source.shape[axis])


def _put_slice_shape(tensor: Tensor, source: Tensor, axis: int, start: int) -> Tensor:
    return tensor.new_empty(tensor.shape)


pick = define("pick", "(Tensor tensor, int axis, SymInt index) -> Tensor", _pick, _pick_shape)
cut = define("cut", "(Tensor tensor, int axis, SymInt start, SymInt size, int step) -> Tensor", _cut, _cut_shape)
put = define("put", "(Tensor tensor, Tensor source, int axis, SymInt index) -> Tensor", _put, _put_shape)
put_slice = define(
    "put_slice", "(Tensor tensor, Tensor source, int axis, SymInt start) -> Tensor", _put_slice, _put_slice_shape
)


def _run_loop(name: str, *_: object) -> list[Tensor]:
    raise RuntimeError(f"loop {name!r} is a mark in a program: its body is elsewhere, and only the ONNX file runs it")


def _shapes(
    name: str,
    trips: int,
    carried: Sequence[Tensor],
    tensors: Sequence[Tensor],
    numbers: Sequence[int],
    sizes: Sequence[int],
    ranks: Sequence[int],
    dtypes: Sequence[str],
) -> list[Tensor]:
    new_size = torch.library.get_ctx().new_dynamic_size
    device = next((tensor.device for tensor in (*carried, *tensors)), torch.device("cpu"))
    results, rest = [], list(sizes)
    for rank, dtype in zip(ranks, dtypes, strict=True):
        given, rest = rest[:rank], rest[rank:]
        shape: list[Any] = [new_size() if isinstance(size, int) and size == BY_VALUES else size for size in given]
        results.append(torch.empty(shape, dtype=getattr(torch, dtype), device=device))
    return results


loop = define("loop", _SCHEMA, _run_loop, _shapes)


def whole(formula: str, *sizes: Any) -> Any:
    """What the formula gives at these sizes."""
    return _evaluate(json.loads(formula), sizes)


def number(formula: str, is_double: bool, *sizes: Any) -> Any:
    """The float that the formula gives at these sizes; a tensor where it meets doubles."""
    found = _evaluate(json.loads(formula), sizes)
    return torch.scalar_tensor(found, dtype=torch.float64) if is_double else found


def _evaluate(formula: Any, sizes: tuple[Any, ...]) -> Any:
    if not isinstance(formula, list):
        return formula
    name, *parts = formula
    return sizes[parts[0]] if name == "size" else FUNCTIONS[name](*(_evaluate(part, sizes) for part in parts))


def counted(number: Any, start: Any, step: Any, dtype: str) -> torch.Tensor:
    """`torch.arange(start, end, step)` of floats, as many as `number`, which a formula counts."""
    return (start + step * torch.arange(number, dtype=torch.float64)).to(getattr(torch, dtype))


def _refuse(x: Tensor, truths: Sequence[Tensor], words: Sequence[str]) -> Tensor:
    for truth, text in zip(truths, words, strict=True):
        torch._assert_async(truth, text)
    return x.clone()


def _refused_shape(x: Tensor, truths: Sequence[Tensor], words: Sequence[str]) -> Tensor:
    return torch.empty_like(x)


refused = define("refused", "(Tensor x, Tensor[] truths, str[] words) -> Tensor", _refuse, _refused_shape)


Function = Callable[..., Any]


def _run_grouped(rows: Tensor, matrices: Tensor, ends: Tensor) -> Tensor:
    product: Tensor = torch._grouped_mm(rows, matrices, offs=ends)
    return product


def _grouped_shape(rows: Tensor, matrices: Tensor, ends: Tensor) -> Tensor:
    torch._check(rows.shape[1] == matrices.shape[1], lambda: "rows as long as the columns of the matrices")
    return rows.new_empty((rows.shape[0], matrices.shape[2]))


grouped_mm = define("grouped_mm", "(Tensor rows, Tensor matrices, Tensor ends) -> Tensor", _run_grouped, _grouped_shape)


def replacements() -> dict[Any, Callable[..., Any]]:
    """`torch._grouped_mm`, which torch.nn.functional.grouped_mm calls."""
    function = getattr(torch, "_grouped_mm", None)
    return {function: _grouped_mm} if function is not None else {}


def _grouped_mm(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    given = {**dict.fromkeys(_NAMES), **kwargs, **dict(zip(_NAMES, args, strict=False))}
    rows, matrices, ends, *others = (given[name] for name in _NAMES)
    is_plain = len(given) == len(_NAMES) and isinstance(ends, Tensor) and others == [None, None]
    if not is_plain or rows.dtype not in _DTYPES or matrices.dtype != rows.dtype:
        return func(*args, **kwargs)
    if (rows.dim(), matrices.dim(), ends.dim()) != (2, 3, 1):
        return func(*args, **kwargs)
    return grouped_mm(rows, matrices, ends)
