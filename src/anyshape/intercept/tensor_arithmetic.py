"""What torch functions compute, element by element, on tensors of a few numbers that may be symbolic sizes.

    torch.tensor([h, w]) // 2                 ->  [h // 2, w // 2]
    torch.tensor(n).float().sqrt()            ->  float32(sqrt(float32(n)))

Sums, products and quotients of float32 are computed in float64 and rounded once, which gives the same bits as float32. torch's
own kernels of roots and logarithms differ from the nearest float32 by one unit in the last place (seen with MKL, torch 2.13):
such results are `rough`. Functions without an entry here are not followed.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import SymFloat, SymInt

from anyshape.intercept.real_numbers import OPEN_EXP, OPEN_FLOAT32, OPEN_LOG, OPEN_LOG2, OPEN_LOG10

MOST_ELEMENTS = 64
_FLOATS = (torch.float32, torch.float64)
_WRAPPED = 2**32
_CONVERSIONS = {"to", "type", "type_as", "float", "double", "int", "long"}
_SAME = {"clone", "detach", "contiguous", "cpu"}
_COMPARISONS = {
    **{name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")},
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "not_equal": operator.ne,
}
_DIVIDED_BY = {"rdiv", "rtruediv"}
_REFLECTED = {"rsub": "sub", "rfloordiv": "floordiv", "rmod": "mod", "rpow": "pow"}
_REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": operator.add,
    "prod": operator.mul,
    **dict.fromkeys(("max", "amax"), torch.sym_max),
    **dict.fromkeys(("min", "amin"), torch.sym_min),
    "any": operator.or_,
    "all": operator.and_,
}


@dataclass(frozen=True)
class Elements:
    """The elements of a tensor, as an array of Python numbers and symbolic ones.

    `rough`: the kernels of torch need not give these numbers to the last bit. `of_root`: they are roots of whole numbers, as
    torch gives them, of which the rounded ones are right where the numbers are small.
    """

    values: np.ndarray[Any, Any]
    dtype: torch.dtype
    rough: bool = False
    of_root: bool = False


def array_of(values: Any) -> np.ndarray[Any, Any]:
    """Nested lists of numbers as an array of objects. ValueError: they have no common shape."""
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values, (list, tuple)):
        if not values:
            raise ValueError("no elements")
        return np.stack([array_of(value) for value in values])
    array = np.empty((), object)
    array[()] = values
    return array


def compute(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], dtype: torch.dtype) -> Elements | None:
    """The elements of a result of this dtype; None where the function is not followed. Tensors are given as Elements."""
    given = [arg for arg in args if isinstance(arg, Elements)]
    # numpy's word is axis, and torch's numpy passes what was not given: sum(dtype=None)
    kwargs = {"dim" if key == "axis" else key: value for key, value in kwargs.items() if value is not None}
    rough = any(arg.rough for arg in given)
    if name in _CONVERSIONS and (dtype != torch.bool or given[0].dtype == dtype):
        return _converted(given[0], dtype)
    if name in _SAME:
        return given[0]
    if name in _STRUCTURE:
        found = _STRUCTURE[name](*args, **kwargs)
        return None if found is None else Elements(found, dtype, rough, all(arg.of_root for arg in given))
    if name in _REDUCTIONS and len(given) == len(args[:1]):
        return _reduced(name, args, kwargs, dtype)
    if name in _ROUNDINGS and len(args) == 1 and not kwargs:
        return Elements(_each(_ROUNDINGS[name], given[0].values), dtype, rough=False)
    if name in _ROUGH and len(args) == 1 and dtype in _FLOATS and not kwargs:
        return _rough(name, given[0], dtype)
    return _elementwise(name, args, kwargs, dtype, rough)


def _elementwise(
    name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], dtype: torch.dtype, rough: bool
) -> Elements | None:
    if name in ("div", "true_divide", "divide") and kwargs == {"rounding_mode": "floor"} and dtype == torch.int64:
        name, kwargs = "floordiv", {}
    if name == "clamp":
        return _clamped(args, kwargs, dtype, rough)
    if name in _DIVIDED_BY and dtype in _FLOATS and len(args) == 2:  # torch multiplies by the reciprocal, rounded
        share = compute("div", (1, args[0]), kwargs, dtype)
        return None if share is None else compute("mul", (share, args[1]), kwargs, dtype)
    if name in _REFLECTED:
        name, args = _REFLECTED[name], args[::-1]
    if kwargs or any(isinstance(arg, torch.Tensor) for arg in args):
        return None
    if name == "pow" and dtype in _FLOATS and len(args) == 2 and args[1] in (0.5, 2):
        return _rough("sqrt", args[0], dtype) if args[1] == 0.5 else compute("mul", (args[0], args[0]), {}, dtype)
    table = _OF_WHOLE if dtype == torch.int64 else _OF_FLOATS if dtype in _FLOATS else {}
    if name in _COMPARISONS and dtype == torch.bool and all(map(_is_comparable, args)):
        return Elements(_each(_COMPARISONS[name], *map(_plain, args)), dtype, rough)
    if name not in table or (name == "pow" and not (isinstance(args[1], int) and args[1] >= 0)):
        return None
    operands = [_each(lambda value: as_dtype(value, dtype), _plain(arg)) for arg in args]
    return Elements(_each(lambda *each: as_dtype(table[name](*each), dtype), *operands), dtype, rough)


def _is_comparable(value: Any) -> bool:
    """Whether a comparison needs no other rounding of this operand."""
    return isinstance(value, (int, SymInt)) or (isinstance(value, Elements) and value.dtype == torch.int64)


def _plain(value: Any) -> np.ndarray[Any, Any]:
    return value.values if isinstance(value, Elements) else array_of(value)


def _each(function: Callable[..., Any], *arrays: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array_of(np.frompyfunc(function, len(arrays), 1)(*arrays))


def as_dtype(value: Any, dtype: torch.dtype) -> Any:
    """A number as an element of this dtype: float32 is rounded, int64 is unchanged."""
    if dtype == torch.float32:
        return OPEN_FLOAT32(value)
    return torch.sym_float(value) if dtype == torch.float64 else value


def _converted(source: Elements, dtype: torch.dtype) -> Elements | None:
    if source.dtype == dtype:
        return source
    if dtype in _FLOATS:
        values = _each(lambda value: as_dtype(value, dtype), source.values)
        return Elements(values, dtype, source.rough, source.of_root)
    if dtype not in (torch.int64, torch.int32):
        return None
    whole = _each(truncated, source.values)
    return Elements(_each(_wrapped, whole) if dtype == torch.int32 else whole, dtype)


def truncated(value: Any) -> Any:
    """int(value), which may be symbolic."""
    return torch.sym_int(value) if isinstance(value, SymFloat) else value if isinstance(value, SymInt) else int(value)


def _wrapped(value: Any) -> Any:
    """The value in 32 bits."""
    if isinstance(value, SymInt) and value.node.shape_env is not None:
        bounds = value.node.shape_env.bound_sympy(value.node.expr)
        if bounds.lower >= -_WRAPPED // 2 and bounds.upper < _WRAPPED // 2:
            return value
    return (value + _WRAPPED // 2) % _WRAPPED - _WRAPPED // 2


def _rough(name: str, source: Elements, dtype: torch.dtype) -> Elements:
    values = _each(lambda value: as_dtype(_ROUGH[name](as_dtype(value, dtype)), dtype), source.values)
    is_whole = source.dtype in (torch.int64, torch.int32) or all(map(_is_whole, source.values.flat))
    of_root = name == "sqrt" and is_whole and not source.rough
    if name == "rsqrt":
        values = _each(lambda value: as_dtype(1 / value, dtype), values)
    return Elements(values, dtype, rough=dtype == torch.float32, of_root=of_root)


def _is_whole(value: Any) -> bool:
    """Whether the value is a whole number, or the float of one."""
    if not isinstance(value, SymFloat):
        return isinstance(value, SymInt) or value == int(value)
    term = value.node.expr
    while type(term).__name__ in ("ToFloat", OPEN_FLOAT32.term_name):
        term = term.args[0]
    return bool(term.is_integer)


def _reduced(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], dtype: torch.dtype) -> Elements | None:
    """One result for all elements; of floats only where the order of the steps does not matter."""
    source = args[0]
    few = source.values.size <= 2 or name not in ("sum", "prod")
    if kwargs or source.values.size == 0 or source.dtype != dtype or (not few and dtype != torch.int64):
        return None
    found = reduce(lambda one, two: as_dtype(_REDUCTIONS[name](one, two), dtype), source.values.flat)
    return Elements(array_of(found), dtype, source.rough)


def _clamped(args: tuple[Any, ...], kwargs: Mapping[str, Any], dtype: torch.dtype, rough: bool) -> Elements | None:
    source, least, most = (*args, None, None)[:3]
    least, most = kwargs.get("min", least), kwargs.get("max", most)
    if (
        source.dtype != dtype
        or dtype != torch.int64
        or not all(isinstance(end, (int, SymInt, type(None))) for end in (least, most))
    ):
        return None
    values = source.values if least is None else _each(lambda value: torch.sym_max(value, least), source.values)
    return Elements(values if most is None else _each(lambda value: torch.sym_min(value, most), values), dtype, rough)


def _item_at(source: Elements, index: Any) -> np.ndarray[Any, Any] | None:
    parts = index if isinstance(index, tuple) else (index,)
    plain = all(isinstance(part, (int, slice, type(None), type(...))) and not isinstance(part, bool) for part in parts)
    ends = [end for part in parts if isinstance(part, slice) for end in (part.start, part.stop, part.step)]
    if not plain or not all(end is None or type(end) is int for end in ends):
        return None
    return array_of(source.values[index])


def _stacked(parts: Any, dim: int = 0) -> np.ndarray[Any, Any] | None:
    return np.stack([part.values for part in parts], dim) if _are_alike(parts) else None


def _joined(parts: Any, dim: int = 0) -> np.ndarray[Any, Any] | None:
    return np.concatenate([part.values for part in parts], dim) if _are_alike(parts) else None


def _are_alike(parts: Any) -> bool:
    return all(isinstance(part, Elements) for part in parts) and len({part.dtype for part in parts}) == 1


def _reshaped(source: Elements, *shape: Any) -> np.ndarray[Any, Any] | None:
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape
    return source.values.reshape(sizes) if all(type(size) is int for size in sizes) else None


def _rounding(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: function(value) if isinstance(value, (float, SymFloat)) else value


_STRUCTURE: dict[str, Callable[..., np.ndarray[Any, Any] | None]] = {
    "getitem": _item_at,
    "stack": _stacked,
    "cat": _joined,
    "concat": _joined,
    "reshape": _reshaped,
    "view": _reshaped,
    "flatten": lambda source: source.values.reshape(-1),
    "squeeze": lambda source: source.values.squeeze(),
    "unsqueeze": lambda source, dim: np.expand_dims(source.values, dim),
}
_ROUNDINGS = {
    "floor": _rounding(math.floor),
    "ceil": _rounding(math.ceil),
    "trunc": _rounding(truncated),
    "round": _rounding(round),
}
_ROUGH: dict[str, Callable[[Any], Any]] = {
    "sqrt": lambda value: torch._sym_sqrt(value),  # type: ignore[attr-defined]
    "rsqrt": lambda value: torch._sym_sqrt(value),  # type: ignore[attr-defined]
    "log": OPEN_LOG,
    "log2": OPEN_LOG2,
    "log10": OPEN_LOG10,
    "exp": OPEN_EXP,
}
_OF_BOTH: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("add", "radd"), operator.add),
    **dict.fromkeys(("sub", "subtract"), operator.sub),
    **dict.fromkeys(("mul", "multiply", "rmul"), operator.mul),
    **dict.fromkeys(("neg", "negative"), operator.neg),
    "abs": abs,
    "square": lambda value: value * value,
    **dict.fromkeys(("maximum", "max"), torch.sym_max),
    **dict.fromkeys(("minimum", "min"), torch.sym_min),
}
_OF_WHOLE: dict[str, Callable[..., Any]] = {
    **_OF_BOTH,
    **dict.fromkeys(("floordiv", "floor_divide"), operator.floordiv),
    **dict.fromkeys(("mod", "remainder"), operator.mod),
    "pow": operator.pow,
}
_OF_FLOATS: dict[str, Callable[..., Any]] = {
    **_OF_BOTH,
    **dict.fromkeys(("div", "divide", "true_divide", "truediv"), operator.truediv),
    "reciprocal": lambda value: 1 / value,
}
