"""Models that generate text: decoders in one file, with a cache or without; encoder-decoders in three.

    past_key_values.0.key [batch, heads, past, width]   ->   present.0.key [batch, heads, past + seq, width]

With past = 0 the file is the first step, so that one file is enough.

encoder_model            input_ids                    -> last_hidden_state
decoder_model            input_ids, hidden states     -> logits, present.0.decoder.key, present.0.encoder.key, …
decoder_with_past_model  input_ids, past_key_values.… -> logits, present.0.decoder.key, …
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import anyshape.sources.source as say
from anyshape.findings import UsageError
from anyshape.sources.hugging_face import BATCH, SEQ, plan_single, single_part, tensors_of, try_call
from anyshape.sources.hugging_face import input_plan as facts
from anyshape.sources.hugging_face.input_plan import (
    Axis,
    CachedDecoder,
    FirstStep,
    Input,
    InputPlan,
    NamedCall,
    NextStep,
    with_parameters,
)
from anyshape.sources.hugging_face.loaded_models import LoadedModel
from anyshape.sources.source import Part

PAST = 4
ENCODER, DECODER, DECODER_WITH_PAST = "encoder_model", "decoder_model", "decoder_with_past_model"
HIDDEN = "last_hidden_state"
_TARGET, _PAST = 2, 4


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


def encoder_decoder_parts(loaded: LoadedModel, *, has_cache: bool) -> tuple[Part, ...]:
    """The files: two, or three with a cache."""
    encoder = loaded.model.get_encoder()
    plan = plan_single(loaded.text, encoder, loaded.config, loaded.folder)
    hidden = try_call(loaded.text, encoder, plan.function()())[HIDDEN]
    source: Axis = "source" if hidden.shape[1] == plan.sizes.get("seq") else int(hidden.shape[1])
    shared = _shared_inputs(loaded, plan, source)
    first = _first_plan(loaded, shared, source, hidden)
    parts = [
        _part(ENCODER, NamedCall(encoder, (HIDDEN,)), plan),
        _part(DECODER, FirstStep(loaded.model, ("logits",), is_cached=has_cache), first),
    ]
    if has_cache:
        width = int(hidden.shape[2])
        following = _next_plan(loaded, shared, first, source)
        parts.append(_part(DECODER_WITH_PAST, NextStep(loaded.model, ("logits",), width), following))
    return tuple(parts)


def _part(name: str, call: NamedCall, plan: InputPlan) -> Part:
    module = with_parameters(call, plan.names)
    return Part(name=name, model=module, inputs=plan.function(), where=plan.where, values=plan.values())


def _shared_inputs(loaded: LoadedModel, encoder: InputPlan, source: Axis) -> list[Input]:
    """What both steps of the decoder take: its tokens, and the encoder's mask where texts are encoded."""
    ids = Input("input_ids", ("batch", "seq"), "ids", facts.vocabulary(loaded.config, loaded.model))
    has_mask = "attention_mask" in encoder.names and "input_ids" in encoder.names
    return [Input("encoder_attention_mask", ("batch", source), "mask"), ids] if has_mask else [ids]


def _sizes(source: Axis, **others: int) -> dict[str, int]:
    return {"batch": BATCH, **others, **({"source": 5} if isinstance(source, str) else {})}


def _rules(loaded: LoadedModel, length: str, source: Axis) -> list[str]:
    """The limits of the decoder's own positions, and of the encoder's where its length varies."""
    most = facts.most_positions(loaded.config, loaded.model, "max_target_positions")
    limits = [] if most is None else [f"{length} <= {most}"]
    encoded = facts.most_positions(loaded.config, loaded.model) if isinstance(source, str) else None
    return [*limits, *([] if encoded is None else [f"source <= {encoded}"])]


def _first_plan(loaded: LoadedModel, shared: Sequence[Input], source: Axis, hidden: Any) -> InputPlan:
    states = Input("encoder_hidden_states", ("batch", source, int(hidden.shape[2])), dtype=hidden.dtype)
    return InputPlan((*shared, states), _sizes(source, seq=_TARGET), tuple(_rules(loaded, "seq", source)))


def _next_plan(loaded: LoadedModel, shared: Sequence[Input], first: InputPlan, source: Axis) -> InputPlan:
    """Caches have the shapes that a first step leaves behind."""
    call = first.function()()
    outputs = try_call(
        loaded.text,
        loaded.model,
        {
            "encoder_outputs": (call["encoder_hidden_states"],),
            "attention_mask": call.get("encoder_attention_mask"),
            "decoder_input_ids": call["input_ids"],
            "use_cache": True,
        },
    )
    cache = getattr(outputs, "past_key_values", None)
    own, cross = (getattr(cache, f"{side}_attention_cache", None) for side in ("self", "cross"))
    inputs = [
        *cache_inputs(loaded.text, own, "past_key_values.{}.decoder.{}", "past", first),
        *cache_inputs(loaded.text, cross, "past_key_values.{}.encoder.{}", source, first),
    ]
    inputs.sort(key=lambda each: int(each.path.split(".")[1]))
    rules = ["past >= 1", "seq >= 1", *_rules(loaded, "past + seq", source)]
    return InputPlan((*shared, *inputs), _sizes(source, seq=_TARGET, past=_PAST), tuple(rules))
