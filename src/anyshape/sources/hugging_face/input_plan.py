"""The inputs of a model as a table (name, axes, kind of values), numbers from its config, and modules with the clients'
names.

    Input("attention_mask", ("batch", "past + seq"), "mask")  ->  int64 ones of that shape, values 0 and 1

A plan gives the function of sizes, the rules and the bounds of values that `anyshape.export` takes.

The forward of each has one parameter for each input, so that the names are those of the file. Outputs are a dict.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from anyshape.domain import evaluate
from anyshape.domain.parse import parse_expr
from anyshape.sources.hugging_face.loaded_models import read_settings

Axis = str | int
_PARTS = ("vision_config", "text_config", "audio_config", "encoder", "decoder")


@dataclass(frozen=True)
class Input:
    """A tensor by its path: `input_ids`, `past_key_values.0.key`. Ids and positions are less than `below`."""

    path: str
    axes: tuple[Axis, ...]
    kind: Literal["ids", "mask", "positions", "real"] = "real"
    below: int | None = None
    dtype: torch.dtype = torch.float32

    def make(self, sizes: Mapping[str, int]) -> torch.Tensor:
        """The tensor at these sizes; random where values are ids or real numbers."""
        shape = tuple(axis if isinstance(axis, int) else evaluate(parse_expr(axis), sizes) for axis in self.axes)
        if self.kind == "real":
            return torch.randn(shape).to(self.dtype)
        if self.kind == "mask":
            return torch.ones(shape, dtype=torch.int64)
        if self.kind == "positions":
            return (torch.arange(shape[-1]) + sizes.get("past", 0)).expand(shape).clone()
        return torch.randint(0, self.below or 2, shape)

    def bounds(self) -> str | None:
        """The values that the input has, as a rule; None for real numbers."""
        if self.kind == "mask":
            return f"0 <= {self.path} <= 1"
        return f"0 <= {self.path} < {self.below}" if self.below is not None else None


@dataclass(frozen=True)
class InputPlan:
    """Inputs in their order, the sizes of the example, and rules."""

    inputs: tuple[Input, ...]
    sizes: Mapping[str, int]
    where: tuple[str, ...] = ()
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        heads = dict.fromkeys(each.path.partition(".")[0] for each in self.inputs)
        object.__setattr__(self, "names", tuple(heads))

    def function(self) -> Callable[..., dict[str, Any]]:
        """The function of sizes: `inputs(batch=2, seq=5)`, whose parameters are the dims of this plan."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(dim, kind, default=size) for dim, size in self.sizes.items()]

        def inputs(*given: int, **sizes: int) -> dict[str, Any]:
            at = {**self.sizes, **dict(zip(self.sizes, given, strict=False)), **sizes}
            return nested({each.path: each.make(at) for each in self.inputs})

        inputs.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return inputs

    def values(self) -> dict[str, str]:
        """The bounds of all values that have some."""
        return {each.path: bounds for each in self.inputs if (bounds := each.bounds()) is not None}


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """`{"past.0.key": k}` as containers: `{"past": [{"key": k}]}`. Numbers count from 0 without a gap."""
    found: dict[str, Any] = {}
    for path, value in flat.items():
        *heads, last = path.split(".")
        inner = found
        for head in heads:
            inner = inner.setdefault(head, {})
        inner[last] = value
    return {name: _as_lists(value) for name, value in found.items()}


def _as_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {name: _as_lists(child) for name, child in value.items()}
    return list(inner.values()) if all(name.isdigit() for name in inner) else inner


def find_number(config: Any, *names: str) -> int | None:
    """The first of these settings that is a positive integer, in the config or in one of its parts; None without one."""
    for holder in (config, *(getattr(config, part, None) for part in _PARTS)):
        for name in names:
            value = getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None


def vocabulary(config: Any, model: nn.Module) -> int:
    """How many ids there are; the embedding decides where the config does not say."""
    text = config.get_text_config()
    found = find_number(text, "vocab_size", "n_vocab")
    return found or int(model.get_input_embeddings().num_embeddings)  # type: ignore[operator, union-attr]


def most_positions(config: Any, model: nn.Module, *names: str) -> int | None:
    """How many positions a sequence has at most; None where the architecture has no such limit.

    A table with a padding row begins to count after it: RoBERTa's 514 rows are for 512 positions.
    """
    text = config.get_text_config()
    most = find_number(text, *names, "max_position_embeddings", "n_positions", "n_ctx")
    if most is None:
        return None
    tables = [each for each in model.modules() if isinstance(each, nn.Embedding) and each.num_embeddings == most]
    used = [table.padding_idx + 1 for table in tables if table.padding_idx is not None]
    return most - max(used, default=0)


def image_size(config: Any, folder: Path) -> tuple[int, int]:
    """Height and width of an image: the config's, else what the processor makes, else 224."""
    for holder in (config, getattr(config, "vision_config", None), getattr(config, "encoder", None)):
        size = _sides(getattr(holder, "image_size", None))
        if size is not None:
            return size
    processor = read_settings(folder, "preprocessor_config.json")
    return _sides(processor.get("crop_size")) or _sides(processor.get("size")) or (224, 224)


def _sides(size: Any) -> tuple[int, int] | None:
    if isinstance(size, int):
        return size, size
    if isinstance(size, (tuple, list)) and len(size) == 2:
        return int(size[0]), int(size[1])
    if isinstance(size, Mapping):
        edge = size.get("shortest_edge")
        return _sides(edge) if edge else _sides([size[name] for name in ("height", "width") if name in size])
    return None


def fewest_samples(config: Any) -> int:
    """The shortest waveform that the convolutions of a speech model take."""
    samples = 1
    steps = zip(getattr(config, "conv_kernel", ()), getattr(config, "conv_stride", ()), strict=True)
    for kernel, stride in reversed(list(steps)):
        samples = (samples - 1) * stride + kernel
    return samples


def processor_names(folder: Path) -> tuple[str, ...] | None:
    """The inputs that the tokenizer of the folder makes; None without a tokenizer."""
    if not any((folder / name).is_file() for name in ("tokenizer_config.json", "tokenizer.json", "vocab.txt")):
        return None
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        return tuple(tokenizer.model_input_names)
    except Exception:  # it needs a package that is not there, or its files are not complete: the config decides
        return None


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
        return {**self.chosen(found), "present": [_key_and_value(layer) for layer in found.past_key_values.layers]}


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
        present = [{"decoder": _key_and_value(own), "encoder": _key_and_value(cross)} for own, cross in layers]
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
        return {**self.chosen(found), "present": [{"decoder": _key_and_value(layer)} for layer in layers]}


def _key_and_value(layer: Any) -> dict[str, torch.Tensor]:
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
