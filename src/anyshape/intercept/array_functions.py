"""numpy's functions that torch._numpy lacks, or computes in another way, written with torch's operators on open sizes.

    np.linspace(0, n - 1, 5)     torch._numpy: reads n out of a tensor, frozen     ->     here: the same sums as numpy's

Each takes Python numbers, sizes, arrays of torch._numpy and nested lists of them, and computes what numpy computes with
the same roundings: a whole number that `astype(int)` cuts off is the same one.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import SymFloat, SymInt, Tensor

torch_numpy: Any = importlib.import_module("torch._numpy")  # numpy in torch's operators; it has no types of its own
SIZES = (SymInt, SymFloat)


def number_as_array(value: Any) -> Any:
    """A size or a float as an array without axes; a float as float64, since torch._numpy would write it in single precision.

    Anything else is returned as it is.
    """
    if isinstance(value, SIZES):
        dtype = torch.int64 if isinstance(value, SymInt) else torch.float64
        return torch_numpy.asarray(torch.scalar_tensor(value, dtype=dtype))  # type: ignore[arg-type]
    return torch_numpy.asarray(torch.tensor(value, dtype=torch.float64)) if isinstance(value, float) else value


def array(value: Any, dtype: Any = None, **options: Any) -> Any:
    """np.array of nested lists with sizes and arrays among their items."""
    if isinstance(value, (list, tuple)):
        return torch_numpy.stack([array(item, dtype) for item in value])
    return torch_numpy.array(number_as_array(value), dtype=dtype)


def _linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0
) -> Any:
    """np.linspace between two numbers: multiples of the step, and the last number itself."""
    begin, end = _real(start), _real(stop)
    if retstep or begin.ndim or end.ndim:
        raise NotImplementedError("numpy.linspace of sizes with retstep, or between arrays, is not followed")
    count = torch.sym_max(num - 1, 1) if endpoint else num
    place = torch.arange(num)
    values = place * ((end - begin) / count) + begin
    if endpoint:
        values = torch.where(place == count, end, values)
    is_whole = dtype is not None and not torch_numpy.dtype(dtype).torch_dtype.is_floating_point
    return torch_numpy.asarray(torch.floor(values) if is_whole else values)


def _logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: float = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """np.logspace between two numbers: powers of the base."""
    return torch_numpy.asarray(torch.pow(_real(base), _linspace(start, stop, num, endpoint).tensor))


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """np.interp: the value on the line between the two points beside each x, the first and last value outside of them."""
    if period is not None:
        raise NotImplementedError("numpy.interp of sizes with a period is not followed")
    at, points, values = _real(x), _real(xp), _real(fp)
    last = points.shape[0] - 1
    before = torch.searchsorted(points, at, right=True) - 1  # -1: x lies before the first point
    first = before.clamp(min=0)
    second = (first + 1).clamp(max=last)
    slope = (values[second] - values[first]) / (points[second] - points[first])
    between = slope * (at - points[first]) + values[first]
    result = torch.where((points[first] == at) | (before == last), values[first], between)
    result = torch.where(before < 0, values[0] if left is None else _real(left), result)
    result = torch.where(at > points[-1], values[-1] if right is None else _real(right), result)
    return torch_numpy.asarray(result)


def _real(value: Any) -> Tensor:
    """The value as a tensor of float64."""
    return array(value).tensor.to(torch.float64)  # type: ignore[no-any-return]


def _cosines(*factors: float) -> Callable[[Any], Any]:
    """A window that is a sum of cosines, as numpy computes it; torch's own windows need a Python int."""

    def window(points: Any) -> Any:
        if points <= 1:
            return torch_numpy.ones(1 if points == 1 else 0)
        turns = torch.arange(1 - points, points, 2) * _real(math.pi) / (points - 1)
        return torch_numpy.asarray(sum(factor * torch.cos(turns * turn) for turn, factor in enumerate(factors)))

    return window


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "array": array,
    "asarray": array,
    "linspace": _linspace,
    "logspace": _logspace,
    "interp": _interp,
    "hanning": _cosines(0.5, 0.5),
    "hamming": _cosines(0.54, 0.46),
    "blackman": _cosines(0.42, 0.5, 0.08),
}
