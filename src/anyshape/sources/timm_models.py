"""`timm:NAME`: an image model of timm, and which of an image's sides may vary.

Height and width are dims where the model answers at other sizes; a ViT has one size, unless it is built for several.
"""

from __future__ import annotations

import json
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch

import anyshape.sources.source as say
from anyshape.findings import UsageError
from anyshape.sources.source import ModelSource, Part, SourceKind, SourceOptions

INPUT, OUTPUT = "pixel_values", "logits"
_BATCH = 2
_NEAREST = 3
SIDES = ("height", "width")


def load_timm(name: str, options: SourceOptions) -> ModelSource:
    """The model with its trained weights, or random ones. Raises UsageError where timm, the name or the weights are missing."""
    text = f"timm:{name}"
    timm = _import_timm(text)
    if not timm.is_model(name):
        near = get_close_matches(name.partition(".")[0], timm.list_models(), n=_NEAREST)
        raise UsageError(say.model_not_found(text, f"timm {timm.__version__} has no such architecture.", near=near))
    model = _created(timm, text, name, options).eval()
    data = timm.data.resolve_model_data_config(model)
    part = _part(model, tuple(data["input_size"]))
    return ModelSource(name=text, parts=(part,), write_files=lambda folder: _write_config(model, name, data, folder))


def _import_timm(text: str) -> Any:
    try:
        import timm
    except ImportError as error:
        if (error.name or "").partition(".")[0] in ("torchvision", "PIL"):  # Pillow comes with torchvision
            raise UsageError(say.missing_torchvision(text, error)) from error
        raise UsageError(say.missing_package(text, "timm", "timm", error)) from error
    return timm


def _created(timm: Any, text: str, name: str, options: SourceOptions) -> Any:
    import torch

    torch.manual_seed(0)
    try:
        return timm.create_model(name, pretrained=not options.config_only)
    except Exception as error:
        if options.config_only:
            raise UsageError(say.source_raises(text, "building", error)) from error
        why = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        raise UsageError(say.no_weights(text, why)) from error


def _part(model: Any, size: tuple[int, int, int]) -> Part:
    import torch

    channels, high, wide = size
    sides = find_open_axes(model, None, channels, (high, wide))

    def fixed(batch: int = _BATCH) -> Any:
        return torch.randn(batch, channels, high, wide)

    def any_height(batch: int = _BATCH, height: int = high) -> Any:
        return torch.randn(batch, channels, height, wide)

    def any_width(batch: int = _BATCH, width: int = wide) -> Any:
        return torch.randn(batch, channels, high, width)

    def any_size(batch: int = _BATCH, height: int = high, width: int = wide) -> Any:
        return torch.randn(batch, channels, height, width)

    inputs = {(): fixed, ("height",): any_height, ("width",): any_width, ("height", "width"): any_size}[tuple(sides)]
    return Part(model=model, inputs=inputs, input_names=(INPUT,), output_names=(OUTPUT,))


def _write_config(model: Any, name: str, data: dict[str, Any], folder: Path) -> None:
    """The settings that preprocessing needs, in the form of timm's own repositories."""
    facts = {"architecture": name, "num_classes": getattr(model, "num_classes", None), "pretrained_cfg": data}
    (folder / "config.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


TIMM = SourceKind(form="timm:NAME", load=load_timm, prefix="timm", options=("config_only",))


def find_open_axes(model: Any, name: str | None, channels: int, size: tuple[int, int]) -> dict[str, int]:
    """The sides at which the model also answers when each alone is doubled, with their sizes in the example.

    A patch is never cut by doubling. Which other sizes are allowed is found by the export itself. The image is the input
    `name`, or the only one where that is None.
    """
    return {
        side: size[index]
        for index, side in enumerate(SIDES)
        if _answers(model, name, (channels, *(2 * each if at == index else each for at, each in enumerate(size))))
    }


def _answers(model: Any, name: str | None, shape: tuple[int, ...]) -> bool:
    image = torch.zeros(1, *shape)
    try:
        with torch.no_grad():
            model(image) if name is None else model(**{name: image})
    except Exception:
        return False
    return True
