"""`PATH_OR_ID` -> a folder -> config, class and weights of a model of transformers; and the files that clients need
beside it.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import anyshape.sources.source as say
from anyshape.findings import UsageError
from anyshape.sources.source import SourceOptions

_SETTINGS = ("*.json", "*.txt", "*.model", "*.jinja")
_SAFETENSORS, _PICKLED = ("*.safetensors",), ("pytorch_model*.bin",)
_CODE = ("*.py",)
_NOT_HERE = ("onnx/*", "openvino/*", "*/*")
WITH_PAST = "-with-past"
TASKS: dict[str, tuple[str, ...]] = {
    "feature-extraction": ("AutoModel",),
    "fill-mask": ("AutoModelForMaskedLM",),
    "text-classification": ("AutoModelForSequenceClassification",),
    "token-classification": ("AutoModelForTokenClassification",),
    "question-answering": ("AutoModelForQuestionAnswering",),
    "text-generation": ("AutoModelForCausalLM",),
    "text-generation-with-past": ("AutoModelForCausalLM",),
    "text2text-generation": ("AutoModelForSeq2SeqLM",),
    "text2text-generation-with-past": ("AutoModelForSeq2SeqLM",),
    "automatic-speech-recognition": ("AutoModelForCTC", "AutoModelForSpeechSeq2Seq"),
    "automatic-speech-recognition-with-past": ("AutoModelForSpeechSeq2Seq",),
    "audio-classification": ("AutoModelForAudioClassification",),
    "audio-frame-classification": ("AutoModelForAudioFrameClassification",),
    "audio-xvector": ("AutoModelForAudioXVector",),
    "image-classification": ("AutoModelForImageClassification",),
    "image-segmentation": ("AutoModelForSemanticSegmentation", "AutoModelForImageSegmentation"),
    "object-detection": ("AutoModelForObjectDetection",),
    "depth-estimation": ("AutoModelForDepthEstimation",),
    "zero-shot-image-classification": ("AutoModelForZeroShotImageClassification",),
}
"""Task -> the automatic classes that may do it, in the order in which they are tried."""
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_POOLER = "pooler."
_COPIED = (
    "config.json",
    "generation_config.json",
    "*token*.json",
    "vocab*",
    "merges.txt",
    "normalizer.json",
    "*.model",
    "*.jinja",
    "*processor_config.json",
)


def find_folder(text: str, options: SourceOptions) -> Path:
    """The folder with a config.json. Raises UsageError where there is none."""
    name = f"hf:{text}"
    folder = Path(text).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise UsageError(say.model_not_found(name, "the folder has no config.json.", "name the folder with it."))
        return folder
    is_path = text.startswith((".", "/", "~", "\\")) or text.count("/") > 1 or not text
    if is_path:
        raise UsageError(say.model_not_found(name, f"there is no folder {text!r}.", "check the path."))
    return _fetched(text, options)


def _fetched(name: str, options: SourceOptions) -> Path:
    """The folder of a repository's files in the cache: settings, then weights, safetensors before any other form."""
    wanted = [*_SETTINGS, *(_CODE if options.trust_remote_code else ())]
    folder = _download(name, wanted)
    if not (folder / "config.json").is_file():
        raise UsageError(say.model_not_found(f"hf:{name}", "the repository has no config.json."))
    if options.config_only:
        return folder
    folder = _download(name, [*wanted, *_SAFETENSORS])
    if not any(folder.glob("*.safetensors")):
        folder = _download(name, [*wanted, *_PICKLED])
    return folder


def _download(name: str, patterns: list[str]) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    text = f"hf:{name}"
    try:
        return Path(snapshot_download(name, allow_patterns=patterns, ignore_patterns=list(_NOT_HERE)))
    except LocalEntryNotFoundError as error:
        why = "it is no folder, it is not in the cache, and the hub cannot be reached (or HF_HUB_OFFLINE is set)."
        fix = f"on a machine with a network: hf download {name}"
        raise UsageError(say.model_not_found(text, why, fix)) from error
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        why = f"it is no folder, and the hub says: {str(error).strip().partition(chr(10))[0]}"
        raise UsageError(
            say.model_not_found(text, why, "check the id; for a private or gated one: hf auth login")
        ) from error


def read_settings(folder: Path, name: str) -> dict[str, Any]:
    """A JSON file of the folder; empty where there is none."""
    try:
        found = json.loads((folder / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise UsageError(say.source_raises(f"hf:{folder}", f"reading {name} of", error)) from error
    return found if isinstance(found, dict) else {}


def has_cache(task: str | None) -> bool:
    """Whether a generating model gets its cache: by default, and for tasks `…-with-past`."""
    return task is None or task.endswith(WITH_PAST)


@dataclass(frozen=True)
class LoadedModel:
    """A model in eval mode with the folder that it comes from. `random_outputs` depend on weights that nobody trained."""

    text: str
    folder: Path
    model: Any
    options: SourceOptions
    random_outputs: tuple[str, ...] = ()

    @property
    def config(self) -> Any:
        return self.model.config


def load_model(text: str, options: SourceOptions) -> LoadedModel:
    """The model. Raises UsageError where it is not found, has no weights, or needs code that may not run."""
    import transformers

    name = f"hf:{text}"
    if options.task is not None and options.task not in TASKS:
        raise UsageError(say.unknown_task(name, options.task, tuple(TASKS)))
    folder = find_folder(text, options)
    settings = read_settings(folder, "config.json")
    _check_code(name, settings, options)
    with _without_bars():
        try:
            config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=options.trust_remote_code)
        except Exception as error:
            raise UsageError(say.source_raises(name, "reading the config of", error)) from error
        kind = _class_of(name, config, settings, options)
        if options.config_only:
            return LoadedModel(name, folder, _random(name, kind, config, options).eval(), options)
        model, missing = _trained(name, kind, config, folder, options)
    return LoadedModel(name, folder, model.eval(), options, missing)


def _check_code(name: str, settings: dict[str, Any], options: SourceOptions) -> None:
    """Refuse a model that only its own code defines, unless that code may run."""
    from transformers import CONFIG_MAPPING

    is_known = settings.get("model_type") in CONFIG_MAPPING
    if settings.get("auto_map") and not is_known and not options.trust_remote_code:
        raise UsageError(say.remote_code(name))


def _class_of(name: str, config: Any, settings: dict[str, Any], options: SourceOptions) -> Any:
    """The class of the task, of the config's architecture, or of the code that comes with the model."""
    import transformers

    if options.task is not None:
        return _class_of_task(name, config, options.task)
    if options.trust_remote_code and settings.get("auto_map"):
        automatic = [each for each in settings["auto_map"] if each.startswith("AutoModel")]
        if automatic:
            return getattr(transformers, max(automatic, key=len))  # the one with a head
    architecture = (settings.get("architectures") or [None])[0]
    if architecture is None:
        return transformers.AutoModel
    kind = getattr(transformers, architecture, None)
    if kind is None:
        unknown = ImportError(f"transformers {transformers.__version__} has no class {architecture!r}")
        raise UsageError(say.source_raises(name, "looking up the class of", unknown))
    return kind


def _class_of_task(name: str, config: Any, task: str) -> Any:
    import transformers

    for each in TASKS[task]:
        automatic = getattr(transformers, each)
        if type(config) in automatic._model_mapping or each in (getattr(config, "auto_map", None) or {}):
            return automatic
    why = f"transformers has no {' or '.join(TASKS[task])} for it."
    raise UsageError(say.task_not_for_model(name, task, config.model_type, why))


def _random(name: str, kind: Any, config: Any, options: SourceOptions) -> Any:
    """The model with random weights, the same in every run."""
    torch.manual_seed(0)
    try:
        if hasattr(kind, "from_config"):
            return kind.from_config(config, trust_remote_code=options.trust_remote_code)
        return kind(config)
    except Exception as error:
        raise UsageError(say.source_raises(name, "building the model of", error)) from error


def _trained(name: str, kind: Any, config: Any, folder: Path, options: SourceOptions) -> tuple[Any, tuple[str, ...]]:
    """The model with its weights in float32, and the outputs that depend on weights which the folder lacks."""
    if not any(path for pattern in _WEIGHTS for path in folder.glob(pattern)):
        raise UsageError(say.no_weights(name, "the folder has neither *.safetensors nor pytorch_model*.bin."))
    automatic = {"trust_remote_code": options.trust_remote_code} if hasattr(kind, "from_config") else {}
    try:
        model, info = kind.from_pretrained(
            folder, config=config, dtype=torch.float32, local_files_only=True, output_loading_info=True, **automatic
        )
    except Exception as error:
        raise UsageError(say.source_raises(name, "loading the weights of", error)) from error
    missing = sorted(info["missing_keys"])
    others = [key for key in missing if _POOLER not in key]
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise UsageError(say.no_weights(name, f"there are none for {others[0]}{more}: they would be random."))
    return model, ("pooler_output",) if missing else ()


@contextlib.contextmanager
def _without_bars() -> Iterator[None]:
    """transformers without its progress bars, as long as the block runs."""
    from transformers.utils import logging

    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()


def _check_inside(path: Path, folder: Path) -> None:
    """Raise UsageError for a link that leads out of the folder: its target would be published with the model.

    In the cache of the hub a folder of links has its files beside it, in `blobs` of the same repository.
    """
    inside = folder.resolve()
    allowed = inside.parent.parent if inside.parent.name == "snapshots" else inside
    if allowed not in path.resolve().parents:
        raise UsageError(say.link_outside(str(folder), path.name, str(path.readlink())))


def write_companions(loaded: LoadedModel, folder: Path) -> None:
    """Copy the files of the model's folder that are no weights; make what a generating model lacks of them."""
    patterns = (*_COPIED, *(("*.py",) if loaded.options.trust_remote_code else ()))
    for pattern in patterns:
        for path in sorted(loaded.folder.glob(pattern)):
            if path.is_file():
                _check_inside(path, loaded.folder)
                shutil.copyfile(path, folder / path.name)
    has_none = not (folder / "generation_config.json").exists()
    if has_none and getattr(loaded.model, "generation_config", None) is not None:
        loaded.model.generation_config.save_pretrained(folder)
