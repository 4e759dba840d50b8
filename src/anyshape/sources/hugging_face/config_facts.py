"""Numbers that inputs need, read from a config, whatever the architecture calls them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from anyshape.sources.hugging_face.snapshots import read_settings

_PARTS = ("vision_config", "text_config", "audio_config", "encoder", "decoder")


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
        size = _pair(getattr(holder, "image_size", None))
        if size is not None:
            return size
    processor = read_settings(folder, "preprocessor_config.json")
    return _pair(processor.get("crop_size")) or _pair(processor.get("size")) or (224, 224)


def _pair(size: Any) -> tuple[int, int] | None:
    if isinstance(size, int):
        return size, size
    if isinstance(size, (tuple, list)) and len(size) == 2:
        return int(size[0]), int(size[1])
    if isinstance(size, Mapping):
        edge = size.get("shortest_edge")
        return _pair(edge) if edge else _pair([size[name] for name in ("height", "width") if name in size])
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
