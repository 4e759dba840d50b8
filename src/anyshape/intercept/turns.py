"""Let one export run at a time, on a copy of the user's module: other threads may run the module meanwhile.

What an export changes in the process (names, warnings, log lines) it changes for its own thread, and puts back at the end.
docs/explanation/threads.md lists it.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_TURN = threading.RLock()
WAITING = "waiting for another export"


@contextmanager
def exporting(module: Any, progress: Callable[[str, int, int], None] | None = None) -> Iterator[Any]:
    """The module to work on, once no other thread exports. A thread that has to wait reports the stage `WAITING` first."""
    from anyshape.intercept.collector import fewer_collections, no_collections
    from anyshape.intercept.patching import thread_builtins
    from anyshape.intercept.quiet import quiet_libraries, thread_warnings
    from anyshape.modules.structural_copy import working_copy

    with no_collections():
        import torch.export._trace  # noqa: F401   most of what an export loads, in one go

    if not _TURN.acquire(blocking=False):
        if progress is not None:
            progress(WAITING, 0, 0)
        _TURN.acquire()
    try:
        with fewer_collections(), thread_warnings(), quiet_libraries(), thread_builtins():
            yield working_copy(module)
    finally:
        _TURN.release()


def taking_turns(*, model_at: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Run a function inside `exporting`; its argument `model`, at that position, becomes the working copy."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> T:
            positional: list[Any] = list(args)
            given: dict[str, Any] = dict(kwargs)
            place, key = (given, "model") if "model" in given else (positional, model_at)
            if isinstance(key, int) and key >= len(positional):
                return function(*args, **kwargs)  # raises: there is no model
            with exporting(place[key], given.get("progress")) as working:  # type: ignore[index]
                place[key] = working  # type: ignore[index]
                return function(*positional, **given)  # type: ignore[arg-type]

        return run

    return decorate


def _forget_turn() -> None:
    """A forked child has no thread that exports, whatever the state of the parent's lock."""
    global _TURN
    _TURN = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_turn)
