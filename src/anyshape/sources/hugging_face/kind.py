"""`hf:PATH_OR_ID`: the story from a name to the files of a model of transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyshape.sources.unusable_sources as say
from anyshape.findings import UsageError
from anyshape.sources.source import ModelSource, Part, SourceKind, SourceOptions

if TYPE_CHECKING:
    from anyshape.sources.hugging_face.loaded_models import LoadedModel


def load_hugging_face(text: str, options: SourceOptions) -> ModelSource:
    """The models of a folder or a repository. Raises UsageError where transformers or the model is missing."""
    try:
        import transformers  # noqa: F401
    except ImportError as error:
        raise UsageError(say.missing_package(f"hf:{text}", "transformers", "hf", error)) from error
    from anyshape.sources.hugging_face.companions import write_companions
    from anyshape.sources.hugging_face.loaded_models import load_model

    loaded = load_model(text, options)
    return ModelSource(
        name=loaded.text, parts=_parts(loaded), write_files=lambda folder: write_companions(loaded, folder)
    )


def _parts(loaded: LoadedModel) -> tuple[Part, ...]:
    from anyshape.sources.hugging_face.decoders import decoder_part
    from anyshape.sources.hugging_face.encoder_decoders import encoder_decoder_parts
    from anyshape.sources.hugging_face.single_models import plan_single, single_part
    from anyshape.sources.hugging_face.tasks import has_cache

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
