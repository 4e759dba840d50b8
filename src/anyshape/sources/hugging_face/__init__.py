"""`hf:PATH_OR_ID`: a model of transformers, from a folder or from the cache.

This file: `hf:PATH_OR_ID`: the story from a name to the files of a model of transformers; models that are one file without
a cache.

Which inputs a model has is in its forward signature; a function for each name, in MAKERS, gives the axes and values.

Files, in the order in which data flows:

    loaded_models  PATH_OR_ID -> a folder -> config, class, weights; files beside the model
    input_plan     inputs as a table, numbers from the config, modules with the clients' names
    decoders       decoders with a cache; encoder, first step, next steps
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

import anyshape.sources.hugging_face.input_plan as facts
import anyshape.sources.source as say
from anyshape.findings import UsageError
from anyshape.modules.user_code import source_of_error
from anyshape.sources.hugging_face.input_plan import Input, InputPlan, NamedCall, with_parameters
from anyshape.sources.hugging_face.loaded_models import read_settings
from anyshape.sources.source import ModelSource, Part, SourceKind, SourceOptions
from anyshape.sources.timm_models import find_open_axes

if TYPE_CHECKING:
    from anyshape.sources.hugging_face.loaded_models import LoadedModel

BATCH, SEQ, IMAGES = 2, 5, 3
_MANY_SAMPLES = 3
_CLASSIFIERS = ("Classification", "QuestionAnswering")


def load_hugging_face(text: str, options: SourceOptions) -> ModelSource:
    """The models of a folder or a repository. Raises UsageError where transformers or the model is missing."""
    try:
        import transformers  # noqa: F401
    except ImportError as error:
        raise UsageError(say.missing_package(f"hf:{text}", "transformers", "hf", error)) from error
    from anyshape.sources.hugging_face.loaded_models import load_model, write_companions

    loaded = load_model(text, options)
    return ModelSource(
        name=loaded.text, parts=_parts(loaded), write_files=lambda folder: write_companions(loaded, folder)
    )


def _parts(loaded: LoadedModel) -> tuple[Part, ...]:
    from anyshape.sources.hugging_face.decoders import decoder_part, encoder_decoder_parts
    from anyshape.sources.hugging_face.loaded_models import has_cache

    model, options = loaded.model, loaded.options
    is_generating = model.can_generate()
    is_pair = bool(getattr(loaded.config, "is_encoder_decoder", False))
    if is_generating and is_pair and not options.one_file:
        return encoder_decoder_parts(loaded, has_cache=has_cache(options.task))
    if is_generating and not is_pair:
        return (decoder_part(loaded, has_cache=has_cache(options.task)),)
    plan = plan_single(loaded.text, model, loaded.config, loaded.folder)
    return (single_part(loaded.text, model, plan, leave_out=loaded.random_outputs),)


HUGGING_FACE = SourceKind(
    form="hf:PATH_OR_ID",
    load=load_hugging_face,
    prefix="hf",
    options=("task", "config_only", "one_file", "trust_remote_code"),
)


@dataclass
class Call:
    """The call of a model while it is planned: sizes and rules are collected as inputs are added."""

    text: str
    model: nn.Module
    config: Any
    folder: Path
    parameters: Mapping[str, inspect.Parameter]
    sizes: dict[str, int] = field(default_factory=dict)
    where: list[str] = field(default_factory=list)

    def dim(self, name: str, size: int) -> str:
        self.sizes.setdefault(name, size)
        return name

    @property
    def is_contrastive(self) -> bool:
        """Whether texts and images are two batches, each compared with each (CLIP)."""
        return all(hasattr(self.model, f"get_{side}_features") for side in ("text", "image"))


def plan_single(text: str, model: nn.Module, config: Any, folder: Path) -> InputPlan:
    """The inputs of a model by its forward. Raises UsageError where it needs one that has no maker."""
    parameters = inspect.signature(model.forward).parameters
    call = Call(text, model, config, folder, parameters)
    inputs = [made for name in parameters if name in MAKERS and (made := MAKERS[name](call)) is not None]
    rest = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [name for name, each in parameters.items() if each.default is each.empty and each.kind not in rest]
    unknown = [name for name in needed if name not in {each.path for each in inputs}]
    main = getattr(model, "main_input_name", None)
    if unknown or not inputs or (main in parameters and main not in {each.path for each in inputs}):
        name = unknown[0] if unknown else main
        what = f"{text!r} takes an input {name!r} that is not known here."
        raise UsageError(say.unknown_inputs(text, what, f"known are {', '.join(MAKERS)}."))
    return InputPlan(tuple(inputs), call.sizes, tuple(call.where))


def single_part(text: str, model: Any, plan: InputPlan, name: str = "model", leave_out: tuple[str, ...] = ()) -> Part:
    """The file of a model that has this plan; its outputs are the tensors that it returns at the example's sizes."""
    settings = {"use_cache": False} if "use_cache" in inspect.signature(model.forward).parameters else {}
    outputs = [each for each in tensors_of(text, model, plan, settings) if each not in leave_out]
    call = with_parameters(NamedCall(model, outputs, settings), plan.names)
    return Part(name=name, model=call, inputs=plan.function(), where=plan.where, values=plan.values())


def tensors_of(text: str, model: Any, plan: InputPlan, settings: Mapping[str, Any]) -> list[str]:
    """The names of the tensors that the model returns. Raises UsageError where it refuses the example."""
    outputs = try_call(text, model, {**plan.function()(), **settings})
    if not isinstance(outputs, Mapping):
        what = f"{text!r} answers with a {type(outputs).__name__}, whose outputs have no names."
        raise UsageError(say.unknown_inputs(text, what, "a model of transformers answers with a ModelOutput."))
    return [name for name, value in outputs.items() if isinstance(value, torch.Tensor)]


def try_call(text: str, model: Any, inputs: Mapping[str, Any]) -> Any:
    """The model's outputs. Raises UsageError where it refuses inputs that were made for it."""
    try:
        with torch.no_grad():
            return model(**inputs)
    except Exception as error:
        what = f"{text!r} refuses the inputs that were made from its config."
        why = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        finding = say.unknown_inputs(text, what, why)
        raise UsageError(say.at_line(finding, source_of_error(error))) from error


def make_ids(call: Call) -> Input:
    batch = call.dim("text_batch" if call.is_contrastive else "batch", BATCH)
    most = facts.most_positions(call.config, call.model)
    call.dim("seq", SEQ if most is None else min(SEQ, most))
    if most is not None:
        call.where.append(f"seq <= {most}")
    return Input("input_ids", (batch, "seq"), "ids", facts.vocabulary(call.config, call.model))


def make_mask(call: Call) -> Input | None:
    """A mask of tokens; of audio only where the feature extractor makes one."""
    if "input_ids" in call.parameters:
        names = facts.processor_names(call.folder)
        axes = ("text_batch" if call.is_contrastive else "batch", "seq")
        return Input("attention_mask", axes, "mask") if names is None or "attention_mask" in names else None
    settings = read_settings(call.folder, "preprocessor_config.json")
    if not settings.get("return_attention_mask"):
        return None
    length = "samples" if "input_values" in call.parameters else "frames"
    return Input("attention_mask", ("batch", length), "mask") if length in call.sizes else None


def make_types(call: Call) -> Input | None:
    """Segments, where the model has several and the tokenizer makes them."""
    count = facts.find_number(call.config.get_text_config(), "type_vocab_size") or 0
    names = facts.processor_names(call.folder)
    if count < 2 or (names is not None and "token_type_ids" not in names):
        return None
    return Input("token_type_ids", ("batch", "seq"), "ids", count)


def make_image(call: Call) -> Input:
    batch = call.dim("image_batch", IMAGES) if call.is_contrastive else call.dim("batch", BATCH)
    height, width = facts.image_size(call.config, call.folder)
    channels = facts.find_number(call.config, "num_channels", "in_channels", "num_input_channels") or 3
    open_axes: dict[str, int] = {}
    if not call.is_contrastive and "input_ids" not in call.parameters:
        open_axes = find_open_axes(call.model, "pixel_values", channels, (height, width))
    axes = [
        call.dim(name, size) if name in open_axes else size for name, size in (("height", height), ("width", width))
    ]
    return Input("pixel_values", (batch, channels, *axes))


def make_waveform(call: Call) -> Input:
    batch = call.dim("batch", BATCH)
    frames, bins = (facts.find_number(call.config, name) for name in ("max_length", "num_mel_bins"))
    if frames and bins and not hasattr(call.config, "conv_kernel"):  # a spectrogram of one size (AST)
        return Input("input_values", (batch, frames, bins))
    fewest = facts.fewest_samples(call.config)
    call.dim("samples", _MANY_SAMPLES * fewest)
    call.where.append(f"samples >= {fewest}")
    return Input("input_values", (batch, "samples"))


def make_features(call: Call) -> Input:
    batch = call.dim("batch", BATCH)
    bins = (
        facts.find_number(call.config, "num_mel_bins", "input_feat_per_channel", "feature_projection_input_dim") or 80
    )
    most = facts.find_number(call.config, "max_source_positions")
    if most is not None and hasattr(
        call.config, "num_mel_bins"
    ):  # Whisper's encoder takes 30 seconds, no more, no less
        return Input("input_features", (batch, bins, 2 * most))
    return Input("input_features", (batch, call.dim("frames", 16), bins))


def make_decoder_ids(call: Call) -> Input | None:
    """The first tokens of the generated text, for an encoder-decoder in one file; a classifier makes them from the text."""
    if type(call.model).__name__.endswith(_CLASSIFIERS):
        return None
    batch = call.dim("batch", BATCH)
    most = facts.most_positions(call.config, call.model, "max_target_positions")
    call.dim("target", 3)
    if most is not None:
        call.where.append(f"target <= {most}")
    return Input("decoder_input_ids", (batch, "target"), "ids", facts.vocabulary(call.config, call.model))


MAKERS: dict[str, Callable[[Call], Input | None]] = {
    "input_ids": make_ids,
    "attention_mask": make_mask,
    "token_type_ids": make_types,
    "pixel_values": make_image,
    "input_values": make_waveform,
    "input_features": make_features,
    "decoder_input_ids": make_decoder_ids,
}
"""Name of an input -> the function that plans it. A name is one function and one line."""
