"""`PATH_OR_ID` as a folder: itself, or the files of a repository in the cache, fetched first where there is a network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyshape.sources.unusable_sources as say
from anyshape.findings import UsageError
from anyshape.sources.source import SourceOptions

_SETTINGS = ("*.json", "*.txt", "*.model", "*.jinja")
_SAFETENSORS, _PICKLED = ("*.safetensors",), ("pytorch_model*.bin",)
_CODE = ("*.py",)
_NOT_HERE = ("onnx/*", "openvino/*", "*/*")


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
