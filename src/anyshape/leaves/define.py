"""Define one operator of ours in torch, and the torch function mode that calls leaves in the place of torch's functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

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


class Watch(Protocol):
    """Makes the calls of a capture in its own way, from when `is_met` is true: `call(func, args, kwargs, run)`."""

    @property
    def is_met(self) -> bool: ...

    def call(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], run: Replacement) -> Any: ...


class LeafMode(TorchFunctionMode):
    """One capture's worth of leaves."""

    def __init__(self, replacements: Mapping[Any, Replacement], watch: Watch) -> None:
        super().__init__()
        self._replacements = replacements
        self._watch = watch

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if self._watch.is_met and not torch.compiler.is_dynamo_compiling():
            return self._watch.call(func, args, kwargs or {}, self._run)
        return self._run(func, args, kwargs or {})

    def _run(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        replacement = self._replacements.get(func)
        if replacement is None or torch.compiler.is_dynamo_compiling():
            return func(*args, **kwargs)
        return replacement(func, args, kwargs)
