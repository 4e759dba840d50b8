"""`squeeze` where the size of the axis is open: the axis goes where it is 1, and stays elsewhere.

torch's own operator takes an open size for other than 1, silently. Here the size is compared, as the user would
have to write it, and the comparison is the user's own condition (see `guards`): both sides are captured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import SymInt, Tensor

__only_passes_on__ = True

Function = Callable[..., Any]


def replacements() -> dict[Any, Callable[..., Any]]:
    return {torch.squeeze: _squeeze, Tensor.squeeze: _squeeze}


def _squeeze(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    named = {"input": None, "dim": None, **kwargs, **dict(zip(("input", "dim"), args, strict=False))}
    x, dim = named["input"], named["dim"]
    if len(args) > 2 or set(named) != {"input", "dim"} or not isinstance(x, Tensor):
        return func(*args, **kwargs)
    asked: Sequence[Any] = range(x.dim()) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    if not all(isinstance(axis, int) and -x.dim() <= axis < x.dim() for axis in asked):
        return func(*args, **kwargs)
    axes = sorted({axis % x.dim() for axis in asked})
    kept = [axis for axis in axes if x.shape[axis] != 1]
    is_traced_at_sizes = not any(isinstance(size, SymInt) for size in x.shape)
    if not kept and not is_traced_at_sizes and not any(isinstance(x.shape[axis], SymInt) for axis in axes):
        return func(*args, **kwargs)
    for axis in reversed([axis for axis in axes if axis not in kept]):
        x = x.select(axis, 0)
    return x
