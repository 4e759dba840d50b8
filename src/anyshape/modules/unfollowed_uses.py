"""Uses of plain values in the user's code that no arithmetic on sizes follows: `f"{n:04d}".startswith("03")`, `n in table`.

Python traces the call line by line. What each such use works with is evaluated before its line runs, as far as that has no
effect. Calls at other sizes show whether it depends on a size. Texts that are only printed or raised are left out.
"""

from __future__ import annotations

import ast
import linecache
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np
import torch

from anyshape.modules.line_trace import look_at_lines
from anyshape.modules.user_code import is_users
from anyshape.modules.watched_comparisons import LookUp, only_computes, read_look_up

_MOST_ITEMS = 64
_UNEVEN = (ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
_TELLING = frozenset(("critical", "debug", "error", "exception", "info", "log", "print", "warn", "warning", "write"))
_EVEN_BUILTINS = (
    *(abs, bool, enumerate, float, getattr, hasattr, int, isinstance, iter, len, list, max, min, next, pow, range),
    *(reversed, slice, sum, super, tuple, type, zip, map, print, setattr),
)
_TEXTS = (str, repr, format)  # a text is a use only where something is done with it
_EVEN_MATH = ("ceil", "exp", "fabs", "floor", "isqrt", "log", "log10", "log2", "pow", "prod", "sqrt", "trunc")
_EVEN_NUMPY = (
    *("abs", "array", "asarray", "ceil", "exp", "floor", "int32", "int64", "float32", "float64", "log", "log2"),
    *("maximum", "minimum", "prod", "sqrt", "sum"),
)
_EVEN = frozenset(
    (*_EVEN_BUILTINS, *_TEXTS, *(getattr(math, name) for name in _EVEN_MATH), *(getattr(np, n) for n in _EVEN_NUMPY))
)


class Use(NamedTuple):
    """A place in the user's code, and the function that it is in. `is_rest`: it is the rest of a division of numbers."""

    file: str
    line: int
    column: int
    function: str = ""
    is_rest: bool = False


class Seen(NamedTuple):
    """What a use worked with, as a text; `look_up` where it looked for something in a container."""

    text: str
    look_up: LookUp | None = None


@dataclass(frozen=True)
class _Watched:
    """One use: what it works with, by expressions that can be evaluated; `function` is what it calls."""

    at: Use
    node: ast.AST
    operands: tuple[CodeType, ...]
    function: CodeType | None = None


def watch_uses(call: Callable[[], Any]) -> dict[Use, Seen]:
    """What each use worked with when it was first reached in this call. What the call raises is dropped."""
    found: dict[Use, Seen] = {}

    def look(use: _Watched, frame: FrameType) -> bool:
        at = use.at._replace(function=frame.f_code.co_qualname)
        if at in found:
            return True
        try:
            seen = _look(use, frame)
        except Exception:  # a name has no value at this moment
            return False
        found.update({} if seen is None else {at: seen})
        return True

    look_at_lines(call, _uses_in, look)
    return found


def _look(use: _Watched, frame: FrameType) -> Seen | None:
    """What a use works with; None where it is followed elsewhere."""
    values = [eval(each, frame.f_globals, frame.f_locals) for each in use.operands]
    if _is_followed(use, values, frame):
        return None
    texts = [_plain_text(value) for value in values]
    text = " | ".join(text for text in texts if text is not None)
    place = (
        -1 if isinstance(use.node, ast.Compare) else 0
    )  # of the container: `item in container`, `container.get(item)`
    others = values[:-1] if place else values[1:]
    return Seen(text, read_look_up(values[place], others)) if text else None


def _is_followed(use: _Watched, values: Sequence[Any], frame: FrameType) -> bool:
    """Whether the conditions of a capture, or watched comparisons, show what this use does with these values."""
    node = use.node
    if isinstance(node, ast.Call):
        has_text = any(isinstance(value, (str, bytes)) for value in values)
        return _is_even_call(use, frame) and not (has_text and not _makes_text(use, frame))
    if any(map(_is_of_tensor, values)):
        return True
    if isinstance(node, ast.Subscript):
        return _is_plain_item(node, values)
    if isinstance(node, ast.Compare):
        if isinstance(node.ops[0], (ast.In, ast.NotIn)):
            return len(values) > 1 and _holds_no_other(values[1], values[0])
        # With None, `==` and `is` give the same at every size, and `<` does not come to run: `limit is not None and n < limit`.
        return all(value is None or _is_number(value) for value in values)
    return isinstance(node, (ast.If, ast.While, ast.IfExp)) and all(isinstance(each, bool) for each in values)


def _is_of_tensor(value: Any) -> bool:
    """A tensor, or one of its methods: what it gives is followed as a tensor is, or asked of its values."""
    return isinstance(value, torch.Tensor) or isinstance(getattr(value, "__self__", None), torch.Tensor)


def _is_plain_item(node: ast.Subscript, values: Sequence[Any]) -> bool:
    """Whether an item of a tensor is taken, one at a fixed place of a list, or the only one of a dict: its own key."""
    if not values or isinstance(values[0], torch.nn.Module):
        return True
    is_fixed = not any(isinstance(inner, (ast.Name, ast.Attribute, ast.Call)) for inner in ast.walk(node.slice))
    if is_fixed:
        return not isinstance(values[0], (str, bytes))
    return isinstance(values[0], dict) and len(values) > 1 and _holds_no_other(values[0], values[1])


def _holds_no_other(container: Any, item: Any) -> bool:
    """Whether a container is empty, or holds this item alone: a cache that this call has filled."""
    with suppress(Exception):
        return isinstance(container, (dict, set, list, tuple)) and all(bool(each == item) for each in container)
    return False


def _is_even_call(use: _Watched, frame: FrameType) -> bool:
    """Whether a call computes with sizes as arithmetic does, is one of torch's, or runs code of the user that is watched."""
    function = _called(use, frame)
    if function is None:  # the method of something that is computed first
        assert isinstance(use.node, ast.Call)
        return isinstance(use.node.func, ast.Attribute) and hasattr(torch.Tensor, use.node.func.attr)
    function = getattr(function, "__wrapped__", function)
    code = getattr(function, "__code__", None)
    if code is not None and is_users(code.co_filename):
        return True
    if isinstance(function, torch.nn.Module) or _is_torchs(function):
        return True
    if isinstance(function, type):
        is_own = function.__module__ not in ("builtins", "decimal", "fractions")
        return function in _EVEN or (is_own and not issubclass(function, (str, int, float, np.generic)))
    with suppress(TypeError):
        return function in _EVEN
    return False


def _is_torchs(function: Any) -> bool:
    """Whether a function or method is one of torch, or one that only writes messages: of `logging` or `warnings`."""
    owner = getattr(function, "__self__", None)
    places = (getattr(function, "__module__", None), getattr(owner, "__module__", None), type(owner).__module__)
    return any(str(place).split(".")[0] in ("torch", "logging", "warnings") for place in places)


def _makes_text(use: _Watched, frame: FrameType) -> bool:
    """Whether a call makes a text, or is one of the user's or of torch: only there a text may be passed."""
    function = _called(use, frame)
    with suppress(TypeError):
        if function in _TEXTS:
            return True
        return function is not None and function not in _EVEN
    return True


def _called(use: _Watched, frame: FrameType) -> Any:
    if use.function is None:
        return None
    with suppress(Exception):
        return eval(use.function, frame.f_globals, frame.f_locals)
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number))


def _plain_text(value: Any, depth: int = 2) -> str | None:
    """A text of plain data; None for tensors, modules and other objects."""
    if value is None or isinstance(value, (str, bytes, int, float, complex, np.generic)):
        return repr(value)
    if isinstance(value, dict):
        value = list(value.items())
    if isinstance(value, (tuple, list, set, frozenset)) and len(value) <= _MOST_ITEMS and depth:
        return repr([_plain_text(each, depth - 1) for each in value])
    return repr(value.tolist()) if isinstance(value, np.ndarray) and value.size <= _MOST_ITEMS else None


@lru_cache(maxsize=256)
def _uses_in(file: str) -> Mapping[int, list[_Watched]]:
    """The uses in a file, by the lines at which they are reached."""
    found: dict[int, list[_Watched]] = {}
    with suppress(SyntaxError, ValueError):
        for node in _not_only_told(ast.parse("".join(linecache.getlines(file)))):
            use = _use_of(node, file)
            if use is not None:
                found.setdefault(use.at.line, []).append(use)
    return found


def _not_only_told(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below this one, except in `raise`, in the message of an `assert`, and in calls that print or log."""
    for child in ast.iter_child_nodes(node):
        is_message = isinstance(node, ast.Assert) and child is node.msg
        if is_message or isinstance(child, ast.Raise) or _is_telling(child):
            continue
        yield child
        yield from _not_only_told(child)


@lru_cache(maxsize=256)
def is_only_told(file: str, line: int) -> bool:
    """Whether a line belongs to a statement that raises, prints or logs, or to the message of an `assert`."""
    with suppress(SyntaxError, ValueError):
        for node in ast.walk(ast.parse("".join(linecache.getlines(file)))):
            told = node.msg if isinstance(node, ast.Assert) else node
            is_message = told is not node or isinstance(node, ast.Raise) or _is_telling(node)
            if told is not None and is_message and told.lineno <= line <= (told.end_lineno or told.lineno):  # type: ignore[attr-defined]
                return True
    return False


def _is_telling(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return False
    function = node.value.func
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    return name in _TELLING


def _use_of(node: ast.AST, file: str) -> _Watched | None:
    parts = _operands(node)
    if not parts:
        return None
    operands = [code for part in parts for code in _codes(part, file)]
    function = node.func if isinstance(node, ast.Call) else None
    called = _code(function, file) if function is not None and only_computes(function) else None
    is_text = isinstance(node, ast.BinOp) and isinstance(node.left, (ast.Constant, ast.JoinedStr))
    is_rest = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and not is_text
    at = Use(file, getattr(node, "lineno", 0), getattr(node, "col_offset", 0), is_rest=is_rest)
    return _Watched(at, node, tuple(operands), called) if operands else None


def _operands(node: ast.AST) -> list[ast.expr]:
    """What a node works with, if it is a use that may have to be followed; else nothing."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner), args=args, keywords=keywords):
            return [owner, *args, *(each.value for each in keywords)]
        case ast.Call(args=args, keywords=keywords):
            return [*args, *(each.value for each in keywords)]
        case ast.BinOp(left=left, op=operator, right=right) if isinstance(operator, _UNEVEN):
            return [left, right]
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.Subscript(value=value, slice=index, ctx=ast.Load()):
            return [value, index]
        case ast.Match(subject=subject):
            return [subject]
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if isinstance(
            test, (ast.BinOp, ast.Name, ast.Subscript, ast.Attribute)
        ):
            return [test]
    return []


def _codes(part: ast.expr, file: str) -> list[CodeType]:
    """The part as code, or the largest expressions in it that can be evaluated without effect."""
    if isinstance(part, (ast.Starred, ast.NamedExpr)):
        part = part.value
    if only_computes(part):
        return [] if isinstance(part, ast.Constant) else [_code(part, file)]
    inside = [child for child in ast.iter_child_nodes(part) if isinstance(child, ast.expr)]
    return [code for child in inside for code in _codes(child, file)]


def _code(part: ast.expr, file: str) -> CodeType:
    return compile(ast.fix_missing_locations(ast.Expression(part)), file, "eval")
