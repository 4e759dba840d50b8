"""Load what an export needs before a process is forked for it: loaded in the child, it would be loaded again in the next one.

Loading torch.export, sympy and onnxscript makes half a million objects that stay. With a collection for each 700 new objects,
as is Python's default, looking through them again and again took 0.7 of 3.0 seconds of a first export.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


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


def load_libraries() -> None:
    """Load what torch.export and the translation load in the course of an export; at once where it is there already."""
    if "torch._dynamo.convert_frame" in sys.modules and "sympy.tensor.tensor" in sys.modules:
        return
    with no_collections():
        import sympy.tensor.tensor  # type: ignore[import-untyped]  # noqa: F401 - sympy's printer loads it
        import torch._dynamo.convert_frame
        import torch._dynamo.polyfills
        import torch.export._trace
        import torch.fx.experimental.validator  # noqa: F401
