"""A check inside torch.nn that only chooses a kernel -> False.

`nn.Transformer` and its stacks compare a mask with the causal one, value by value, and hand the result on as a hint; with
the hint false the mask itself is used, and the result is the same (torch says so of `is_causal`, to 2.13).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor
from torch.nn.modules import transformer

_ASKING = transformer._detect_is_causal_mask.__code__


def replacements() -> dict[Any, Callable[..., Any]]:
    return {Tensor.__bool__: _bool}


def _bool(func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    return False if _is_asked_for_a_hint() else func(*args, **kwargs)


def _is_asked_for_a_hint() -> bool:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename != _ASKING.co_filename:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in ("anyshape", "torch"):
            return False
        frame = frame.f_back
    return frame.f_code is _ASKING
