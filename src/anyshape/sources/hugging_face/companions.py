"""The files beside an ONNX file by which clients load it: config, generation config, tokenizer, processor."""

from __future__ import annotations

import shutil
from pathlib import Path

from anyshape.sources.hugging_face.loaded_models import LoadedModel

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


def write_companions(loaded: LoadedModel, folder: Path) -> None:
    """Copy the files of the model's folder that are no weights; make what a generating model lacks of them."""
    patterns = (*_COPIED, *(("*.py",) if loaded.options.trust_remote_code else ()))
    for pattern in patterns:
        for path in sorted(loaded.folder.glob(pattern)):
            if path.is_file():
                shutil.copyfile(path, folder / path.name)
    has_none = not (folder / "generation_config.json").exists()
    if has_none and getattr(loaded.model, "generation_config", None) is not None:
        loaded.model.generation_config.save_pretrained(folder)
