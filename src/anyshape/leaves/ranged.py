"""`torch.arange` between tensors -> as many numbers as their values give, without a decision in Python.

torch turns such a tensor into a Python number, for which a trace has no value, unless it was made of Python numbers. Here the
count is an open size that is computed from the tensors, as torch's kernel computes it. `out=` is given the result, whatever
size it had before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from anyshape.intercept.small_constants import known_number

Function = Callable[..., Any]


def replacements() -> dict[Any, Callable[..., Any]]:
    return {torch.arange: _arange}


def _arange(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    start, end, step = _bounds(args, kwargs)
    if not any(isinstance(bound, Tensor) for bound in (start, end, step)):
        return func(*args, **kwargs)
    out = kwargs.get("out")
    dtype = kwargs.get("dtype") or (out.dtype if out is not None else _usual_dtype(start, end, step))
    device = kwargs.get("device") or (out.device if out is not None else None)
    known = tuple(map(known_number, (start, end, step)))
    if not any(isinstance(bound, Tensor) for bound in known):
        return func(*known, **{**kwargs, "dtype": dtype, "device": device})
    numbers = _count_up(start, end, step, dtype, device)
    return numbers if out is None else out.set_(numbers)


def _bounds(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    names = ("end",) if len(args) == 1 and "end" not in kwargs else ("start", "end", "step")
    given = {"start": 0, "step": 1, **kwargs, **dict(zip(names, args, strict=False))}
    return given["start"], given["end"], given["step"]


def _usual_dtype(*bounds: Any) -> torch.dtype:
    is_float = any(
        bound.is_floating_point() if isinstance(bound, Tensor) else isinstance(bound, (float, torch.SymFloat))
        for bound in bounds
    )
    return torch.get_default_dtype() if is_float else torch.int64


def _count_up(start: Any, end: Any, step: Any, dtype: torch.dtype, device: Any) -> Tensor:
    """torch counts in doubles, except that bounds of int64 are cut to whole numbers first."""
    working = torch.float64 if dtype.is_floating_point else torch.int64
    counting = torch.int64 if dtype == torch.int64 else torch.float64
    first, last, each = (_number(bound, counting, device) for bound in (start, end, step))
    count = torch.ceil((last - first).to(torch.float64) / each).to(torch.int64).item()
    torch._check(count >= 0)
    numbers = torch.arange(count, dtype=working, device=device)  # type: ignore[call-overload]
    return (_number(start, working, device) + numbers * _number(step, working, device)).to(dtype)


def _number(bound: Any, dtype: torch.dtype, device: Any) -> Tensor:
    """A bound without axes: a tensor, a size or a number."""
    if isinstance(bound, Tensor):
        return bound.reshape(()).to(device=device, dtype=dtype)
    return (torch.zeros((), dtype=torch.float64, device=device) + bound).to(dtype)
