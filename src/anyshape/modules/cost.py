"""What a call of the module would cost, without making it: the elements of all tensors that it makes on the way.

Attention over 4096 positions takes few elements in and a thousand times as many in between; only the module knows. It is
run on fake tensors, which have shapes and no memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from anyshape.modules.fused import without_fused_layers
from anyshape.modules.quiet import quiet_libraries

_LEAST = 10_000  # what calling an operator costs, however small its answer: a loop in Python is not free


class _Counting(TorchDispatchMode):
    """Adds up the elements of every tensor that an operator gives."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.elements = 0
        self._limit = limit

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = func(*args, **(kwargs or {}))
        made = sum(item.numel() for item in tree_iter(given) if isinstance(item, torch.Tensor))
        self.elements += max(made, _LEAST)
        if self.elements > self._limit:
            raise _TooMuch
        return given


class _TooMuch(Exception):
    """The count is over its limit: how far does not matter."""


def count_elements(call: Callable[[list[Any]], Any], values: list[Any], limit: int) -> int | None:
    """The elements that `call(values)` makes, found on fake tensors; None where the call cannot be run on them.

    Counting stops beyond the limit: what is given back is then only known to be more.
    """
    from torch._subclasses import FakeTensorMode

    with (
        quiet_libraries(),
        without_fused_layers(),
        FakeTensorMode(allow_non_fake_inputs=True) as fake,
        torch.no_grad(),
    ):
        faked = [fake.from_tensor(value) if isinstance(value, torch.Tensor) else value for value in values]
        counting = _Counting(limit)
        try:
            with counting:
                call(faked)
        except _TooMuch:
            return counting.elements
        except Exception:  # values that decide, operators without a fake kernel: nothing can be said
            return None
    return counting.elements
