"""Decoders that generate text: one file, with the cache as inputs and outputs or without it.

    past_key_values.0.key [batch, heads, past, width]   ->   present.0.key [batch, heads, past + seq, width]

With past = 0 the file is the first step, so that one file is enough.
"""

from __future__ import annotations

import inspect
from typing import Any

import anyshape.sources.unusable_sources as say
from anyshape.findings import UsageError
from anyshape.sources.hugging_face import config_facts as facts
from anyshape.sources.hugging_face.input_plan import Input, InputPlan
from anyshape.sources.hugging_face.loaded_models import LoadedModel
from anyshape.sources.hugging_face.named_calls import CachedDecoder, with_parameters
from anyshape.sources.hugging_face.single_models import BATCH, SEQ, single_part, tensors_of, try_call
from anyshape.sources.source import Part

PAST = 4


def decoder_part(loaded: LoadedModel, *, has_cache: bool) -> Part:
    """The file of a decoder. Raises UsageError where its cache has a form that is not known."""
    if "pixel_values" in inspect.signature(loaded.model.forward).parameters:
        what = f"{loaded.text!r} generates text from images, which is not known here."
        raise UsageError(say.unknown_inputs(loaded.text, what, "how many tokens an image has is in its processor."))
    plan = plan_decoder(loaded)
    if not has_cache:
        return single_part(loaded.text, loaded.model, plan)
    inputs = plan_cached(loaded, plan)
    outputs = tensors_of(loaded.text, loaded.model, plan, {"use_cache": False})
    call = with_parameters(CachedDecoder(loaded.model, outputs), inputs.names)
    return Part(model=call, inputs=inputs.function(), where=inputs.where, values=inputs.values())


def plan_decoder(loaded: LoadedModel) -> InputPlan:
    """The inputs without a cache."""
    model, config = loaded.model, loaded.config
    most = facts.most_positions(config, model)
    inputs = [
        Input("input_ids", ("batch", "seq"), "ids", facts.vocabulary(config, model)),
        Input("attention_mask", ("batch", "seq"), "mask"),
    ]
    if "position_ids" in inspect.signature(model.forward).parameters:
        inputs.append(Input("position_ids", ("batch", "seq"), "positions", most))
    where = () if most is None else (f"seq <= {most}",)
    return InputPlan(tuple(inputs), {"batch": BATCH, "seq": SEQ if most is None else min(SEQ, most)}, where)


def plan_cached(loaded: LoadedModel, plan: InputPlan) -> InputPlan:
    """The plan with a cache: the mask is over past and new tokens, and every layer has a key and a value."""
    most = facts.most_positions(loaded.config, loaded.model)
    wide = [
        Input(each.path, ("batch", "past + seq"), each.kind) if each.kind == "mask" else each for each in plan.inputs
    ]
    outputs = try_call(loaded.text, loaded.model, {**plan.function()(), "use_cache": True})
    layers = cache_inputs(loaded.text, getattr(outputs, "past_key_values", None), "past_key_values.{}.{}", "past", plan)
    rules = ["seq >= 1", "past >= 0", *([] if most is None else [f"past + seq <= {most}"])]
    sizes = dict(plan.sizes) if most is None else {"batch": BATCH, "seq": min(2, most)}
    past = PAST if most is None else max(min(PAST, most - 2), 0)
    return InputPlan((*wide, *layers), {**sizes, "past": past}, tuple(rules))


def cache_inputs(text: str, cache: Any, path: str, length: str | int, plan: InputPlan) -> list[Input]:
    """An input for the key and the value of every layer of a cache that a call of the plan left behind."""
    batch = plan.sizes["batch"]
    found = []
    for index, layer in enumerate(getattr(cache, "layers", ())):
        for side in ("key", "value"):
            tensor = getattr(layer, f"{side}s", None)
            if tensor is None or tensor.dim() != 4 or tensor.shape[0] != batch:
                raise UsageError(_unknown_cache(text, type(layer).__name__))
            axes = ("batch", tensor.shape[1], length, tensor.shape[3])
            found.append(Input(path.format(index, side), axes, dtype=tensor.dtype))
    if not found:
        raise UsageError(_unknown_cache(text, type(cache).__name__))
    return found


def _unknown_cache(text: str, kind: str) -> Any:
    what = f"{text!r} has a cache of a form that is not known: {kind}."
    why = "known are caches with a key and a value of four axes in every layer."
    return say.unknown_inputs(text, what, why, "without a cache: --task text-generation")
