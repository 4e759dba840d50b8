"""Uses of values in the code of the user that no arithmetic on sizes follows: in the text of a file, or in a code object.

    f"{n:04d}".startswith("03")     n in table     n & 64     table[n]     n % 97     if flags[n]

What a use works with is compiled as expressions without effect, which are evaluated when its line is reached. What is only
printed, logged or raised is left out.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import NamedTuple

from anyshape.modules.code_expressions import expressions_in, expressions_passed_on, has_source
from anyshape.modules.watched_comparisons import compile_expression, only_computes

_UNEVEN = (ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
_TELLING = frozenset(("critical", "debug", "error", "exception", "info", "log", "print", "warn", "warning", "write"))


class Use(NamedTuple):
    """A place in the user's code, and the function that it is in. `is_rest`: it is the rest of a division of numbers.

    `end` is the line and the column after it: `name(n).upper() in names` begins where `name(n).upper()` does.
    """

    file: str
    line: int
    column: int
    function: str = ""
    is_rest: bool = False
    end: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Watching:
    """One use: what it works with, by expressions that can be evaluated; `function` is what it calls."""

    at: Use
    node: ast.AST
    operands: tuple[CodeType, ...]
    function: CodeType | None = None


def uses_in(code: CodeType) -> Mapping[int, list[Watching]]:
    """The uses, by the lines at which they are reached: of the file, or of the code where there is no text."""
    return _uses_in_file(code.co_filename) if has_source(code) else _uses_in_code(code)


@lru_cache(maxsize=256)
def _uses_in_file(file: str) -> Mapping[int, list[Watching]]:
    with suppress(SyntaxError, ValueError):
        return _by_line(_not_only_told(ast.parse("".join(linecache.getlines(file)))), file)
    return {}


@lru_cache(maxsize=1024)
def _uses_in_code(code: CodeType) -> Mapping[int, list[Watching]]:
    expressions = expressions_in(code)
    told = [node for node in expressions if _is_telling_call(node)]
    parts = {id(part) for each in told for part in ast.walk(each)}
    return _by_line([node for node in expressions if id(node) not in parts], code.co_filename)


def _by_line(nodes: Iterable[ast.AST], file: str) -> dict[int, list[Watching]]:
    found: dict[int, list[Watching]] = {}
    for node in nodes:
        use = _use_of(node, file)
        if use is not None:
            found.setdefault(use.at.line, []).append(use)
    return found


def lines_that_pass_on(code: CodeType) -> frozenset[int]:
    """The lines of statements that give the result of a call a name, or return it: `key = self.key(n)`."""
    return _passing_in_file(code.co_filename) if has_source(code) else _passing_in_code(code)


@lru_cache(maxsize=256)
def _passing_in_file(file: str) -> frozenset[int]:
    with suppress(SyntaxError, ValueError):
        nodes = list(ast.walk(ast.parse("".join(linecache.getlines(file)))))
        passing = [node for node in nodes if isinstance(node, (ast.Assign, ast.Return))]
        named = [all(isinstance(each, ast.Name) for each in getattr(node, "targets", ())) for node in passing]
        values = [node.value for node, is_named in zip(passing, named, strict=True) if is_named]
        return _lines_of_plain(values)
    return frozenset()


@lru_cache(maxsize=1024)
def _passing_in_code(code: CodeType) -> frozenset[int]:
    return _lines_of_plain(expressions_passed_on(code))


def _lines_of_plain(values: Iterable[ast.expr | None]) -> frozenset[int]:
    """The lines of those of the values that are calls of something without effect to find, with such arguments."""
    calls = [value for value in values if isinstance(value, ast.Call)]
    parts = {call: (call.func, *call.args, *(each.value for each in call.keywords)) for call in calls}
    return frozenset(call.lineno for call in calls if only_computes(*parts[call]))


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
    return isinstance(node, ast.Expr) and _is_telling_call(node.value)


def _is_telling_call(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    return name in _TELLING


def _use_of(node: ast.AST, file: str) -> Watching | None:
    parts = _operands(node)
    if not parts:
        return None
    is_comparison = isinstance(node, ast.Compare)
    operands = [code for part in parts for code in _codes(part, file, with_texts=is_comparison)]
    function = node.func if isinstance(node, ast.Call) else None
    called = compile_expression(function, file) if function is not None and only_computes(function) else None
    is_text = isinstance(node, ast.BinOp) and isinstance(node.left, (ast.Constant, ast.JoinedStr))
    is_rest = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and not is_text
    place = {"lineno": 0, "col_offset": 0, "end_lineno": 0, "end_col_offset": 0} | vars(node)
    end = (place["end_lineno"], place["end_col_offset"])
    at = Use(file, place["lineno"], place["col_offset"], is_rest=is_rest, end=end)
    return Watching(at, node, tuple(operands), called) if operands else None


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


def _codes(part: ast.expr, file: str, *, with_texts: bool = False) -> list[CodeType]:
    """The part as code, or the largest expressions in it that can be evaluated without effect; no literals, except texts."""
    if isinstance(part, (ast.Starred, ast.NamedExpr)):
        part = part.value
    if only_computes(part):
        is_literal = isinstance(part, ast.Constant) and not (with_texts and isinstance(part.value, (str, bytes, tuple)))
        return [] if is_literal else [compile_expression(part, file)]
    return [code for child in _parts_here(part) for code in _codes(child, file)]


def _parts_here(part: ast.expr) -> list[ast.expr]:
    """The expressions in this one whose names have values where it stands: what a comprehension and a lambda name has not."""
    if isinstance(part, ast.Lambda):
        return []
    if isinstance(part, (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)):
        return [part.generators[0].iter]
    children = (child.value if isinstance(child, ast.keyword) else child for child in ast.iter_child_nodes(part))
    return [child for child in children if isinstance(child, ast.expr)]
