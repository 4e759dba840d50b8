"""Stand-ins for torchvision and Pillow, for the length of a block: timm imports both, and its models use neither."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent
_LOADED = ("timm", "torchvision", "PIL")


@contextlib.contextmanager
def stand_ins_on_path() -> Iterator[None]:
    """`import timm` works in the block; afterwards nothing of it is left. A torchvision that is installed is used as it is."""
    if importlib.util.find_spec("torchvision") is not None:
        yield
        return
    sys.path.append(str(FOLDER))
    try:
        yield
    finally:
        sys.path.remove(str(FOLDER))
        for name in [each for each in sys.modules if each.partition(".")[0] in _LOADED]:
            del sys.modules[name]
