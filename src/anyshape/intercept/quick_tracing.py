"""While a module is traced, torch leaves out work whose results the trace does not use.

torch keeps the result of every operator on fake tensors, to find it when the same operator comes again on the same sizes. To
keep one takes as long as to compute it, and in a loop over numbers, whose slices grow, none comes again. Here a result is
kept when it was computed twice: repeated layers find theirs from the third on. And torch notes the stack of each operator
with the text of every line of it, most of them torch's own, which are left out afterwards: here a line is read when it is used.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from anyshape.intercept.patching import patched

_FIRST = "computed for the first time"


@contextmanager
def lines_read_late() -> Iterator[None]:
    """Enter around whatever traces a module."""
    from torch.utils import _traceback

    with patched([(vars(_traceback), "_extract_symbolized_tb", _extract_without_lines)]):
        yield


@contextmanager
def results_kept_when_repeated() -> Iterator[None]:
    """Enter around a trace with symbolic sizes."""
    from torch._subclasses import fake_tensor

    seen: set[Any] = set()
    own = fake_tensor.FakeTensorMode._make_cache_entry

    def make_entry(mode: Any, state: Any, key: Any, *args: Any) -> Any:
        if key in seen:
            return own(mode, state, key, *args)
        seen.add(key)
        raise fake_tensor._BypassDispatchCache(_FIRST)

    space = vars(fake_tensor)
    setters = [(space, name, _without_first(space[name])) for name in _SETTERS if name in space]
    with patched([(fake_tensor.FakeTensorMode, "_make_cache_entry", make_entry), *setters] if setters else []):
        yield


_SETTERS = ("_set_cache_key", "_set_cache_key_for_shape_env")


def _without_first(own: Any) -> Any:
    """A function that stores an entry, which stores none for a result that is not kept yet."""

    def store(cache: Any, key: Any, entry: Any) -> None:
        if getattr(entry, "reason", None) != _FIRST:
            own(cache, key, entry)

    return store


def _extract_without_lines(frames: Any, skip: int) -> traceback.StackSummary:
    """Like torch's own function; the text of a line is read when it is shown."""
    stack = traceback.StackSummary()
    for frame in reversed(frames[skip:]):
        stack.append(traceback.FrameSummary(frame["filename"], frame["line"], frame["name"], lookup_line=False))
    return stack
