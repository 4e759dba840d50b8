"""torch.cond, while_loop, scan, associative_scan and map, run in eager mode under a dispatch mode.

    torch.cond(pred, f, g, (x,))  ->  f(x) if pred else g(x)        with every operator inside passing through the mode

Without a mode, torch compiles these operators with dynamo before it runs them. Under a dispatch mode (ours count operators, or
look at values) dynamo refuses, and marks its function as one never to be compiled: the next call without a mode raises as
well, although the user's own call answers. So dynamo must not run at all under a mode.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch._C import DispatchKey
from torch._ops import HigherOrderOperator

from anyshape.modules.stands_for import Standing, standing

_CHECKED = ("cond", "scan", "strict_mode")
"""Modules of torch._higher_order_ops whose eager kernels assert that no mode is active."""


@contextmanager
def eager_under_modes() -> Iterator[None]:
    """Within this, higher-order operators run in plain Python if a dispatch mode is active; torch is unchanged if none is."""
    if not torch._C._len_torch_dispatch_stack():
        yield
        return
    with standing(_replacements()):
        yield


def _replacements() -> Iterator[Standing]:
    yield vars(torch), "compile", _uncompiled
    yield HigherOrderOperator, "dispatch", _by_eager_kernel(HigherOrderOperator.dispatch)
    for name in _CHECKED:
        yield vars(importlib.import_module(f"torch._higher_order_ops.{name}")), "_get_current_dispatch_mode", _no_mode


def _uncompiled(model: Any = None, **options: Any) -> Any:
    """What replaces torch.compile: the function as it is; without one, a decorator that changes nothing."""
    return (lambda function: function) if model is None else model


def _by_eager_kernel(dispatch: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(dispatch)
    def run(operator: HigherOrderOperator, /, key: Any, *args: Any, **kwargs: Any) -> Any:
        kernel = operator.py_kernels.get(DispatchKey.CompositeExplicitAutograd)
        return dispatch(operator, key, *args, **kwargs) if kernel is None else kernel(*args, **kwargs)

    return run


def _no_mode() -> None:
    return None
