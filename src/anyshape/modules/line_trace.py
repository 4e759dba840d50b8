"""Runs a call and visits each line of the user's code before or after it is executed, with Python's own tracing.

The tracing function that was set before (a debugger's, a coverage tool's) is set again afterwards.
"""

from __future__ import annotations

import gc
import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any, TypeVar

import numpy as np
import torch

from anyshape.findings import Source
from anyshape.modules.same_values import is_same, tensor_bytes
from anyshape.modules.slots import Slot
from anyshape.modules.user_code import make_source, runs_users_code

_MOST_LINES = 20_000
_MOST_ITEMS = 64

T = TypeVar("T")
Visit = Callable[[CodeType, int, FrameType, Any], None]


def trace_lines(call: Callable[[], Any], visit: Visit) -> None:
    """Run the call; `visit(code, line, frame, returned)` after each line, `returned` None unless the function ended there.

    What the call raises is dropped. After many lines the rest runs without visits.
    """
    lines: dict[int, int] = {}
    visited = 0

    def follow(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal visited
        line = lines.get(id(frame))
        if line is not None and event in ("line", "return"):
            visited += 1
            visit(frame.f_code, line, frame, arg if event == "return" else None)
        if event == "line":
            lines[id(frame)] = frame.f_lineno
        elif event == "return":
            lines.pop(id(frame), None)
        return follow if visited < _MOST_LINES else None

    def enter(frame: FrameType, event: str, arg: Any) -> Any:
        is_followed = event == "call" and visited < _MOST_LINES and runs_users_code(frame)
        return follow if is_followed else None

    run_traced(call, enter)


def run_traced(call: Callable[[], Any], enter: Callable[[FrameType, str, Any], Any]) -> None:
    """Run the call under this tracing function, then set the former one again. What the call raises is dropped.

    Python collects no garbage meanwhile: a `__del__` of the user's that it runs would be visited like a line of the call.
    """
    before = sys.gettrace()
    is_collecting = gc.isenabled()
    gc.disable()
    sys.settrace(enter)
    try:
        with suppress(Exception):
            call()
    finally:
        sys.settrace(before)
        if is_collecting:
            gc.enable()


def look_at_lines(
    call: Callable[[], Any],
    items_in: Callable[[CodeType], Mapping[int, Sequence[T]]],
    look: Callable[[T, FrameType], bool],
    returned: Callable[[FrameType, Any], None] = lambda frame, value: None,
) -> frozenset[tuple[str, int]] | None:
    """Run the call; `look(item, frame)` for the items of each line of the user's code, before the line runs.

    `items_in` gives the items of a function's code or of its file, by their lines. Where `look` returns False, it is called
    once more after the line, in which names may get their values. What the call raises is dropped. After many lines the rest
    runs unwatched: the result is None then, and else the files and lines that ran. `returned(frame, value)` gets what the
    user's functions return.
    """
    pending: dict[int, list[T]] = {}
    lines: set[tuple[str, int]] = set()
    watched = 0

    def follow(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal watched
        for item in pending.pop(id(frame), ()):
            look(item, frame)
        if event == "line":
            watched += 1
            lines.add((frame.f_code.co_filename, frame.f_lineno))
            items = items_in(frame.f_code).get(frame.f_lineno, ())
            if left := [item for item in items if not look(item, frame)]:
                pending[id(frame)] = left
        elif event == "return":
            returned(frame, arg)
        return follow if watched < _MOST_LINES else None

    def enter(frame: FrameType, event: str, arg: Any) -> Any:
        is_followed = event == "call" and watched < _MOST_LINES and runs_users_code(frame)
        return follow if is_followed else None

    run_traced(call, enter)
    return frozenset(lines) if watched < _MOST_LINES else None


def find_return(call: Callable[[], Any]) -> Source | None:
    """The last line of the user's outermost function: the one that returns what the call gives."""
    found: list[tuple[CodeType, int]] = []
    outermost: FrameType | None = None

    def follow(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal outermost
        if event == "return":
            found[:] = [(frame.f_code, frame.f_lineno)]
            outermost = None
        return follow

    def enter(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal outermost
        if event != "call" or outermost is not None or not runs_users_code(frame):
            return None
        outermost = frame
        return follow

    run_traced(call, enter)
    return _source(found[0]) if found else None


def find_writer(call: Callable[[], Any], slots: Sequence[Slot]) -> Source | None:
    """The first line after which one of the slots has another value than at the beginning."""
    found: list[tuple[CodeType, int]] = []
    before = [_mark(slot.get()) for slot in slots]

    def visit(code: CodeType, line: int, frame: FrameType, returned: Any) -> None:
        if not found and any(_mark(slot.get()) != mark for slot, mark in zip(slots, before, strict=True)):
            found.append((code, line))

    trace_lines(call, visit)
    return _source(found[0]) if found else None


def find_difference(one: Callable[[], Any], other: Callable[[], Any]) -> Source | None:
    """The first line after which the variables of the user's functions differ between two runs."""
    runs: list[list[tuple[CodeType, int, bytes]]] = []
    for call in (one, other):
        events: list[tuple[CodeType, int, bytes]] = []

        def visit(code: CodeType, line: int, frame: FrameType, returned: Any, events: Any = events) -> None:
            events.append((code, line, _digest((dict(frame.f_locals), returned))))

        trace_lines(call, visit)
        runs.append(events)
    last: tuple[CodeType, int] | None = None
    for first, second in zip(*runs, strict=False):
        if first != second:  # another line: the one before chose it
            return _source(first[:2] if first[:2] == second[:2] or last is None else last)
        last = first[:2]
    return None


def _source(place: tuple[CodeType, int]) -> Source:
    code, line = place
    return make_source(code.co_filename, line, code.co_qualname)


def _mark(value: Any) -> tuple[Any, ...]:
    """What changes when a value is replaced or written in place."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), str(value.dtype), tensor_bytes(value)
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    return (_Compared(value),)


class _Compared:
    """A value that is compared as a slot's are."""

    def __init__(self, value: Any) -> None:
        self._value = value.copy() if isinstance(value, set) else value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Compared) and is_same(self._value, other._value)

    __hash__ = None  # type: ignore[assignment]


def _digest(value: Any) -> bytes:
    found = hashlib.blake2b(digest_size=8)
    _feed(found, value, 0)
    return found.digest()


def _feed(found: Any, value: Any, depth: int) -> None:
    if isinstance(value, torch.Tensor):
        found.update(repr((tuple(value.shape), value.dtype)).encode() + tensor_bytes(value))
    elif isinstance(value, np.ndarray):
        found.update(repr((value.shape, value.dtype)).encode() + value.tobytes())
    elif isinstance(value, (bool, int, float, complex, str, type(None), np.generic)):
        found.update(repr(value).encode())
    elif isinstance(value, dict) and depth < 2:
        for key, item in list(value.items())[:_MOST_ITEMS]:
            found.update(repr(key).encode() if isinstance(key, (str, int)) else b"?")
            _feed(found, item, depth + 1)
    elif isinstance(value, (list, tuple)) and depth < 3:
        for item in value[:_MOST_ITEMS]:
            _feed(found, item, depth + 1)
