"""Conditions on sizes that the user's code hands to functions that take True and False alone are decided where they are made.

    attend(q, k, v, is_causal=n > 1)    torch: TypeError, `must be bool, not SymBool`    ->    here: a guard, as of `if n > 1`

The error shows which they are: those on the lines of the calls that it came through, and where none is there, those of the
functions that made these calls. The module is traced once more, with these conditions as bools.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from types import CodeType
from typing import Any, NamedTuple

from torch import SymBool, SymFloat, SymInt

from anyshape.intercept.patching import Patch, patched
from anyshape.modules.user_code import runs_users_code

__only_passes_on__ = True

_COMPARISONS = ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__")


class Lines(NamedTuple):
    """Lines of a file, the last one included."""

    file: str
    first: int
    last: int


def lines_to_decide(error: TypeError, known: frozenset[Lines]) -> frozenset[Lines]:
    """The known lines, and those whose conditions may be behind the error; the known ones alone where it is another error."""
    if SymBool.__name__ not in str(error):
        return known
    calls: set[Lines] = set()
    functions: set[Lines] = set()
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if runs_users_code(traceback.tb_frame):
            calls.add(_lines_of_call(code, traceback.tb_lasti, traceback.tb_lineno))
            functions.add(Lines(code.co_filename, code.co_firstlineno, _last_line(code)))
        traceback = traceback.tb_next
    return known | calls if calls - known else known | functions


def _lines_of_call(code: CodeType, place: int, line: int) -> Lines:
    first, last, *_ = next(islice(code.co_positions(), place // 2, None), (line, line))
    return Lines(code.co_filename, first or line, last or line)


def _last_line(code: CodeType) -> int:
    return max((line for _, _, line in code.co_lines() if line is not None), default=code.co_firstlineno)


@contextmanager
def decided_conditions(at: frozenset[Lines]) -> Iterator[None]:
    """Within this, comparisons of sizes on these lines are bools, and guards of the capture."""
    with patched([_deciding(kind, name, at) for kind in (SymInt, SymFloat) for name in _COMPARISONS] if at else []):
        yield


def _deciding(kind: type, name: str, at: frozenset[Lines]) -> Patch:
    own: Callable[[Any, Any], Any] = getattr(kind, name)

    def compare(number: Any, other: Any) -> Any:
        found, frame = own(number, other), sys._getframe(1)
        file, line = frame.f_code.co_filename, frame.f_lineno
        is_there = any(each.file == file and each.first <= line <= each.last for each in at)
        return bool(found) if is_there and isinstance(found, SymBool) else found

    return kind, name, compare
