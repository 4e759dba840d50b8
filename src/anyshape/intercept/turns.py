"""What holds around an export that has no process of its own: one at a time, on a copy of the module.

That is so with `isolate=False`, on systems without fork, and for a module on an accelerator, which a forked process cannot use.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, ParamSpec, TypeVar

from anyshape.processes import is_own_process
from anyshape.processes.quiet import quiet_libraries

P = ParamSpec("P")
T = TypeVar("T")

_TURN = threading.RLock()
WAITING = "waiting for another export"


@contextmanager
def exporting(module: Any, progress: Callable[[str, int, int], None] | None = None) -> Iterator[Any]:
    """The module to work on: in a process of our own the module itself, else a copy, once no other thread exports.

    A thread that has to wait reports the stage `WAITING` first.
    """
    if is_own_process():
        with quiet_libraries():  # torch was loaded after the fork
            yield module
        return

    import torch

    from anyshape.intercept.accelerators import devices_mean_cpu
    from anyshape.modules.structural_copy import is_on_accelerator, working_copy

    if not _TURN.acquire(blocking=False):
        if progress is not None:
            progress(WAITING, 0, 0)
        _TURN.acquire()
    is_grad_enabled = torch.is_grad_enabled()
    try:
        with quiet_libraries():
            working = working_copy(module)
            with devices_mean_cpu(working) if is_on_accelerator(module) else nullcontext():
                yield working
    finally:
        torch.set_grad_enabled(is_grad_enabled)  # the model may switch it
        _TURN.release()


def taking_turns(*, model_at: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Run a function inside `exporting`; its argument `model`, at that position, becomes what that gives."""

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
                return function(*positional, **given)

        return run

    return decorate
