"""The torch function mode that hears torch.nn's calls and answers some of them with our own operators.

Inside `__torch_function__` the mode is off, so what an answer calls is not heard again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from anyshape.capture.leaves import checked, hinted, open_splits, pooled, ranged, sized, spectra_capture, squeezed
from anyshape.capture.leaves.packed_capture import PackedSequences
from anyshape.capture.leaves.recurrent_capture import RecurrentNetworks

__only_passes_on__ = True

Answer = Callable[[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]], Any]


class LeafMode(TorchFunctionMode):
    """One capture's worth of leaves."""

    def __init__(self) -> None:
        super().__init__()
        sequences = PackedSequences()
        self._answers: dict[Any, Answer] = {
            **open_splits.answers(),
            **sized.answers(),
            **squeezed.answers(),
            **checked.answers(),
            **hinted.answers(),
            **pooled.answers(),
            **ranged.answers(),
            **spectra_capture.answers(),
            **sequences.answers(),
            **RecurrentNetworks(sequences).answers(),
        }

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
