"""Run Python's garbage collector less often while libraries are loaded and a model is exported.

Loading torch.export, sympy and onnxscript makes half a million objects that stay. With a collection for each 700 new objects,
as is Python's default, looking through them again and again took 0.7 of 3.0 seconds of a first export.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS = 20_000  # few enough that a tensor in a circle of references does not stay for long


@contextmanager
def no_collections() -> Iterator[None]:
    """Within this, nothing is collected: for imports, which leave little behind."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Within this, a collection comes after 20,000 new objects, and looks at none that were there before.

    A collector that the user has switched off or made rarer stays as it is.
    """
    before = gc.get_threshold()
    if before[0] == 0 or before[0] >= _OBJECTS or gc.get_freeze_count():
        yield
        return
    ours = (_OBJECTS, *before[1:])
    gc.freeze()
    gc.set_threshold(*ours)
    try:
        yield
    finally:
        if gc.get_threshold() == ours:  # else the user's code has set it meanwhile
            gc.set_threshold(*before)
        gc.unfreeze()
