"""Files with weights: named by their content, and removed when no model beside them mentions them.

`m.onnx.0123456789ab.data` has a digest in its name, so that a new one never replaces the one that a model in force uses.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from anyshape.saving.outputs import is_data_name, is_model, mentions


def data_files_of(model: Path) -> list[Path]:
    """The files with weights beside a model that it mentions, of those that `save_model` names."""
    if not is_model(model):
        return []
    return [each for each in _siblings(model) if is_data_name(each.name) and mentions(model, each.name)]


def discard_unmentioned(data: Iterable[Path]) -> None:
    """Remove each of these files unless a model beside it mentions it, one that is still being written included."""
    for each in dict.fromkeys(data):
        if each.is_file() and not any(mentions(other, each.name) for other in _siblings(each) if is_model(other)):
            with contextlib.suppress(OSError):
                each.unlink()


def _siblings(path: Path) -> list[Path]:
    try:
        return [each for each in path.parent.iterdir() if each != path and each.is_file()]
    except OSError:
        return []
