"""Define one operator of ours in torch, and the torch function mode that calls leaves in the place of torch's functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch.overrides import TorchFunctionMode

__only_passes_on__ = True

Replacement = Callable[[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]], Any]


def define(name: str, schema: str, run: Callable[..., Any], fake: Callable[..., Any]) -> OpOverload:
    """Register `anyshape::name`, which changes none of its arguments."""
    torch.library.custom_op(f"anyshape::{name}", run, mutates_args=(), schema=schema).register_fake(fake)
    operator: OpOverload = getattr(torch.ops.anyshape, name).default
    return operator


def without_types(translation: Callable[..., Any]) -> Callable[..., Any]:
    """The same function without annotations: torch.onnx would read them as ONNX types, and warn that it cannot."""
    return lambda *args, **kwargs: translation(*args, **kwargs)


class LeafMode(TorchFunctionMode):
    """One capture's worth of leaves."""

    def __init__(self, replacements: Mapping[Any, Replacement]) -> None:
        super().__init__()
        self._replacements = replacements

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        replacement = self._replacements.get(func)
        if replacement is None or torch.compiler.is_dynamo_compiling():
            return func(*args, **(kwargs or {}))
        return replacement(func, args, kwargs or {})
