"""Models of transformers as modules whose inputs and outputs have the names that clients expect.

The forward of each has one parameter for each input, so that the names are those of the file. Outputs are a dict.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn


class NamedCall(nn.Module):
    """A model, called with named inputs and settings; it returns a dict of the chosen outputs."""

    def __init__(self, model: nn.Module, outputs: Sequence[str], settings: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.model = model
        self.outputs = tuple(outputs)
        self.settings = dict(settings or {})

    def call_model(self, **inputs: Any) -> dict[str, Any]:
        """The outputs by their names."""
        return self.chosen(self.model(**inputs, **self.settings))

    def chosen(self, found: Any) -> dict[str, Any]:
        return {name: found[name] for name in self.outputs}


class CachedDecoder(NamedCall):
    """A decoder with its cache: `past_key_values.0.key` in, and grown by this call out as `present.0.key`."""

    def call_model(self, **inputs: Any) -> dict[str, Any]:
        from transformers import DynamicCache

        cache = DynamicCache([(layer["key"], layer["value"]) for layer in inputs.pop("past_key_values")])
        found = self.model(**inputs, past_key_values=cache, use_cache=True)
        return {**self.chosen(found), "present": [_pair(layer) for layer in found.past_key_values.layers]}


class FirstStep(NamedCall):
    """The decoder of an encoder-decoder without a past; both caches come out where `is_cached`."""

    def __init__(self, model: nn.Module, outputs: Sequence[str], *, is_cached: bool) -> None:
        super().__init__(model, outputs)
        self.is_cached = is_cached

    def call_model(self, **inputs: Any) -> dict[str, Any]:
        found = self.model(
            encoder_outputs=(inputs["encoder_hidden_states"],),
            attention_mask=inputs.get("encoder_attention_mask"),
            decoder_input_ids=inputs["input_ids"],
            use_cache=self.is_cached,
        )
        if not self.is_cached:
            return self.chosen(found)
        cache = found.past_key_values
        layers = zip(cache.self_attention_cache.layers, cache.cross_attention_cache.layers, strict=True)
        present = [{"decoder": _pair(own), "encoder": _pair(cross)} for own, cross in layers]
        return {**self.chosen(found), "present": present}


class NextStep(NamedCall):
    """The decoder of an encoder-decoder with both caches; the one over the encoder's outputs stays as it is."""

    def __init__(self, model: nn.Module, outputs: Sequence[str], width: int) -> None:
        super().__init__(model, outputs)
        self.width = width

    def call_model(self, **inputs: Any) -> dict[str, Any]:
        from transformers import DynamicCache, EncoderDecoderCache

        past = inputs["past_key_values"]
        caches = [
            DynamicCache([(layer[side]["key"], layer[side]["value"]) for layer in past])
            for side in ("decoder", "encoder")
        ]
        known = past[0]["encoder"]["key"]
        # Only its shape is used: keys and values of the encoder's outputs are in the cache.
        hidden = known.new_zeros(known.shape[0], known.shape[2], self.width)
        found = self.model(
            encoder_outputs=(hidden,),
            attention_mask=inputs.get("encoder_attention_mask"),
            decoder_input_ids=inputs["input_ids"],
            past_key_values=EncoderDecoderCache(*caches),
            use_cache=True,
        )
        layers = found.past_key_values.self_attention_cache.layers
        return {**self.chosen(found), "present": [{"decoder": _pair(layer)} for layer in layers]}


def _pair(layer: Any) -> dict[str, torch.Tensor]:
    return {"key": layer.keys, "value": layer.values}


def with_parameters(call: NamedCall, names: Sequence[str]) -> NamedCall:
    """The module with a forward that has these parameters, in this order."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in ("self", *names)]

    def forward(self: NamedCall, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return self.call_model(**dict(zip(names, args, strict=False)), **kwargs)

    forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__class__ = type(type(call).__name__, (type(call),), {"forward": forward})
    return call.eval()
