"""While a module is traced, torch leaves out work whose results a trace does not use.

torch keeps the result of every operator on fake tensors, to find it when the same operator comes again. To keep one takes
longer than to compute it again, and with symbolic sizes of a loop none comes again. And torch notes the stack of each operator with the
text of every line of it, most of them torch's own, which are left out afterwards: here a line is read when it is used.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from anyshape.intercept.patching import patched


@contextmanager
def lines_read_late() -> Iterator[None]:
    """Enter around whatever traces a module."""
    from torch.utils import _traceback

    with patched([(vars(_traceback), "_extract_symbolized_tb", _extract_without_lines)]):
        yield


@contextmanager
def no_fake_results_kept() -> Iterator[None]:
    """Enter around a trace with symbolic sizes."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with patched([(FakeTensorMode, "_cached_dispatch_impl", FakeTensorMode._dispatch_impl)]):
        yield


def _extract_without_lines(frames: Any, skip: int) -> traceback.StackSummary:
    """Like torch's own function; the text of a line is read when it is shown."""
    stack = traceback.StackSummary()
    for frame in reversed(frames[skip:]):
        stack.append(traceback.FrameSummary(frame["filename"], frame["line"], frame["name"], lookup_line=False))
    return stack
