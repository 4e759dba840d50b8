"""Encoder-decoders: the encoder, the decoder's first step, and its next steps with both caches, each a file.

encoder_model            input_ids                    -> last_hidden_state
decoder_model            input_ids, hidden states     -> logits, present.0.decoder.key, present.0.encoder.key, …
decoder_with_past_model  input_ids, past_key_values.… -> logits, present.0.decoder.key, …
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anyshape.sources.hugging_face import config_facts as facts
from anyshape.sources.hugging_face.decoders import cache_inputs
from anyshape.sources.hugging_face.input_plan import Axis, Input, InputPlan
from anyshape.sources.hugging_face.loaded_models import LoadedModel
from anyshape.sources.hugging_face.named_calls import FirstStep, NamedCall, NextStep, with_parameters
from anyshape.sources.hugging_face.single_models import BATCH, plan_single, try_call
from anyshape.sources.source import Part

ENCODER, DECODER, DECODER_WITH_PAST = "encoder_model", "decoder_model", "decoder_with_past_model"
HIDDEN = "last_hidden_state"
_TARGET, _PAST = 2, 4


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
