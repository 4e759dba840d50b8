"""Whole numbers that stand in the user's code: what a size may be compared with, where no guard tells.

    if int(x.shape[1]) == 97: ...     self.window = 512     ->     97, 512

A trace at other sizes does not show such a line, so the numbers themselves say at which sizes to look. The code is read, not
run: the methods of every module, and the functions that they name.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

import torch

from anyshape.modules.frames import is_users

_SMALLEST = 6  # smaller sizes are tried anyway
_LARGEST = 1 << 16
_MOST = 16


def numbers_in_code(module: torch.nn.Module) -> tuple[int, ...]:
    """Numbers in the code of a module and its parts, in what that names, and in their attributes; the first few."""
    parts = [
        part for part in module.modules() if is_users(_file_of(inspect.getattr_static(type(part), "forward", None)))
    ]
    reader = _Reader()
    for kind in dict.fromkeys(type(part) for part in parts):
        for above in kind.__mro__:
            for member in vars(above).values():
                reader.read(member)
    attributes = [number for part in parts for number in _whole(vars(part).values())]
    found = dict.fromkeys((*reader.numbers, *attributes))
    return tuple(number for number in found if _SMALLEST <= number <= _LARGEST)[:_MOST]


class _Reader:
    """Functions of the user's, each read once."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self._seen: set[CodeType] = set()

    def read(self, member: Any) -> None:
        """A function, whatever it is wrapped in, and those that it names."""
        function = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
        function = getattr(function, "__wrapped__", function)
        if isinstance(function, FunctionType) and is_users(_file_of(function)):
            self._read_code(function.__code__, function.__globals__)

    def _read_code(self, code: CodeType, names: dict[str, Any]) -> None:
        if code in self._seen:
            return
        self._seen.add(code)
        self.numbers += _whole(code.co_consts)
        named = [names.get(name) for name in code.co_names]
        self.numbers += _whole(named)
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                self._read_code(inner, names)
        for other in named:
            self.read(other)


def _file_of(function: Any) -> str:
    return getattr(getattr(function, "__code__", None), "co_filename", "<unknown>")


def _whole(values: Iterable[Any]) -> Iterator[int]:
    for value in values:
        if type(value) is int:
            yield abs(value)
        elif isinstance(value, (tuple, frozenset)):
            yield from _whole(value)
