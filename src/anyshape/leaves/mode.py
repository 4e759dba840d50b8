"""The torch function mode that calls the functions of leaves in the place of torch's.

Inside `__torch_function__` the mode is off, so what such a function calls is torch's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

__only_passes_on__ = True

Answer = Callable[[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]], Any]


class LeafMode(TorchFunctionMode):
    """One capture's worth of leaves."""

    def __init__(self, answers: Mapping[Any, Answer]) -> None:
        super().__init__()
        self._answers = answers

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        answer = self._answers.get(func)
        if answer is None or torch.compiler.is_dynamo_compiling():
            return func(*args, **(kwargs or {}))
        return answer(func, args, kwargs or {})
