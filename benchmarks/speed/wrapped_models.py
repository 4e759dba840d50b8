"""Models of transformers behind a signature of tensors, so that all exporters are given the same module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class OneOutput(nn.Module):
    """Tensors by position -> the model's parameters of these names -> one of its outputs."""

    def __init__(self, model: nn.Module, output: str, parameters: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.output, self.parameters_in_order = model, output, parameters

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        return self._answer(first, second)

    def _answer(self, *tensors: torch.Tensor) -> torch.Tensor:
        answer = self.model(**dict(zip(self.parameters_in_order, tensors, strict=True)))
        return getattr(answer, self.output)


class OfOne(OneOutput):
    def forward(self, first: torch.Tensor) -> torch.Tensor:
        return self._answer(first)


class OfThree(OneOutput):
    def forward(self, first: torch.Tensor, second: torch.Tensor, third: torch.Tensor) -> torch.Tensor:
        return self._answer(first, second, third)


def one_output(output: str, *parameters: str) -> Callable[[nn.Module], nn.Module]:
    """model -> a module that takes these parameters by position and gives this output."""
    kind = {1: OfOne, 2: OneOutput, 3: OfThree}[len(parameters)]
    return lambda model: kind(model, output, parameters)


class Logits(nn.Module):
    """A decoder without its cache."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits


class Cached(nn.Module):
    """A decoder with its cache as pairs of tensors: in, and grown by this step out."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, past: Any) -> tuple[Any, ...]:
        from transformers import DynamicCache

        cache = DynamicCache([(key, value) for key, value in past])
        answer = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True)
        return answer.logits, [(layer.keys, layer.values) for layer in answer.past_key_values.layers]
