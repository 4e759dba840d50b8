"""One operator of ours, registered with torch: its schema, the kernel that runs it, the one that knows its shapes. How its
translation is handed to torch.onnx.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload


def define(name: str, schema: str, run: Callable[..., Any], fake: Callable[..., Any]) -> OpOverload:
    """Register `anyshape::name`, which changes none of its arguments."""
    torch.library.custom_op(f"anyshape::{name}", run, mutates_args=(), schema=schema).register_fake(fake)
    operator: OpOverload = getattr(torch.ops.anyshape, name).default
    return operator


def without_types(translation: Callable[..., Any]) -> Callable[..., Any]:
    """The same function without annotations: torch.onnx would read them as ONNX types, and warn that it cannot."""
    return lambda *args, **kwargs: translation(*args, **kwargs)
