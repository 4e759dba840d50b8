"""What a signal handler of the user raises ends the export, whatever code it happens to interrupt.

A TimeoutError from `signal.alarm` would look like a refusal of the model if it hit the model's forward. While this is
entered, such an error travels as `HandlerRaised`, which nothing catches, and leaves as itself.
"""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]


class HandlerRaised(BaseException):
    """Carries what a handler raised."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


@contextmanager
def handlers_go_through() -> Iterator[None]:
    """Within this, an exception that a signal handler raises passes every `except Exception`, and leaves unchanged.

    Python runs handlers in the main thread only; in any other thread this does nothing.
    """
    raised: HandlerRaised | None = None
    changed = _wrap_handlers() if threading.current_thread() is threading.main_thread() else {}
    try:
        yield
    except HandlerRaised as error:
        raised = error
    finally:
        for number, (wrapper, own) in changed.items():
            if signal.getsignal(number) is wrapper:  # else the user's code has set another meanwhile
                signal.signal(number, own)
    if raised is not None:
        raise raised.error


def _wrap_handlers() -> dict[int, tuple[Handler, Handler]]:
    changed: dict[int, tuple[Handler, Handler]] = {}
    for number in signal.valid_signals():
        own = signal.getsignal(number)
        if callable(own) and own is not signal.default_int_handler:
            wrapper = _carrying(own)
            signal.signal(number, wrapper)
            changed[number] = (wrapper, own)
    return changed


def _carrying(own: Handler) -> Handler:
    @functools.wraps(own, updated=())
    def handle(number: int, frame: FrameType | None) -> Any:
        try:
            return own(number, frame)
        except Exception as error:
            carried = HandlerRaised(error)
        raise carried

    return handle
