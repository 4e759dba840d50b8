"""Whole numbers that stand in the user's code: what a size may be compared with, where no guard tells.

    if int(x.shape[1]) == 97: ...     self.window = 512     ->     97, 512

A trace at other sizes does not show such a line, so the numbers themselves say at which sizes to look.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

import torch

from anyshape.modules.frames import is_users

_SMALLEST = 6  # smaller sizes are tried anyway
_LARGEST = 1 << 16
_MOST = 16


def numbers_in_code(module: torch.nn.Module, call: Callable[[], Any]) -> tuple[int, ...]:
    """Numbers in the code that a call of the module runs, and in the module's own attributes; the first few."""
    found = dict.fromkeys((*_in_frames(call), *_in_attributes(module)))
    return tuple(number for number in found if _SMALLEST <= number <= _LARGEST)[:_MOST]


def _in_frames(call: Callable[[], Any]) -> list[int]:
    codes: dict[CodeType, dict[str, Any]] = {}

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code not in codes and is_users(frame.f_code.co_filename):
            codes[frame.f_code] = frame.f_globals

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        call()
    except Exception:  # a refusal is for others to report; what ran until then was seen
        pass
    finally:
        sys.setprofile(before)
    return [number for code, names in codes.items() for number in _in_code(code, names)]


def _in_code(code: CodeType, names: dict[str, Any]) -> Iterator[int]:
    yield from _whole(code.co_consts)
    yield from _whole(names.get(name) for name in code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _in_code(inner, names)


def _in_attributes(module: torch.nn.Module) -> Iterator[int]:
    for part in module.modules():
        if is_users(_file_of(part)):
            yield from _whole(vars(part).values())


def _file_of(part: torch.nn.Module) -> str:
    return getattr(getattr(type(part).forward, "__code__", None), "co_filename", "<unknown>")


def _whole(values: Iterable[Any]) -> Iterator[int]:
    for value in values:
        if type(value) is int:
            yield abs(value)
        elif isinstance(value, (tuple, frozenset)):
            yield from _whole(value)
