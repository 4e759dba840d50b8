"""What the user's code compares sizes with, in one call: `if k - 5 < n:` compares 372 with 7.

Python traces the call line by line. Before a line runs, or else after it, both sides of each comparison in it are evaluated,
as far as this has no effect: names, attributes, arithmetic, and functions of Python that only compute.
"""

from __future__ import annotations

import ast
import linecache
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from numbers import Real
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np
import torch

from anyshape.modules.code_expressions import expressions_in, has_source
from anyshape.modules.line_trace import look_at_lines

_COLLECTIONS = ("len", "list", "max", "min", "range", "str", "sum", "tuple")
_NUMBERS = ("abs", "bool", "float", "hash", "int", "pow", "round", "Decimal", "Fraction")
_FUNCTIONS = frozenset((*_COLLECTIONS, *_NUMBERS, *(name for name in vars(math) if not name.startswith("_"))))
_METHODS = frozenset(("bit_length", "dim", "item", "nelement", "numel", "size"))
_PARTS = (
    ast.Attribute,
    ast.BinOp,
    ast.Constant,
    ast.Dict,
    ast.List,
    ast.Name,
    ast.Set,
    ast.Subscript,
    ast.Tuple,
    ast.UnaryOp,
)
_TEXTS = (ast.JoinedStr, ast.FormattedValue)
_SYNTAX = (ast.operator, ast.unaryop, ast.expr_context, ast.Slice)


class Comparison(NamedTuple):
    """A place in the user's code where two numbers are compared."""

    file: str
    line: int
    column: int


class _Sides(NamedTuple):
    at: Comparison
    left: CodeType
    right: CodeType


def watch_comparisons(call: Callable[[], Any]) -> dict[Comparison, float]:
    """How far apart the two numbers of each comparison are, left minus right: the closest that it had in this call.

    What the call raises is dropped. After many lines the rest runs unwatched.
    """
    found: dict[Comparison, float] = {}

    def note(sides: _Sides, frame: FrameType) -> bool:
        apart = _difference(sides, frame)
        if apart is not None and abs(apart) <= abs(found.get(sides.at, math.inf)):
            found[sides.at] = apart
        return apart is not None

    look_at_lines(call, _comparisons_in, note)
    return found


def _difference(sides: _Sides, frame: FrameType) -> float | None:
    with suppress(Exception):
        left, right = (_as_number(eval(side, frame.f_globals, frame.f_locals)) for side in (sides.left, sides.right))
        if left is not None and right is not None and math.isfinite(left - right):
            return left - right
    return None


def _as_number(value: Any) -> float | None:
    """A number of Python or numpy, or a tensor of one whole number; None for anything else."""
    if isinstance(value, torch.Tensor):
        is_whole = value.numel() == 1 and not (value.is_floating_point() or value.is_complex())
        return float(value.item()) if is_whole else None
    return float(value) if isinstance(value, (Real, Decimal, np.number)) else None


def _comparisons_in(code: CodeType) -> Mapping[int, list[_Sides]]:
    """The comparisons that can be evaluated, by their first lines: of the file, or of the code where there is no text."""
    return _comparisons_in_file(code.co_filename) if has_source(code) else _comparisons_in_code(code)


@lru_cache(maxsize=256)
def _comparisons_in_file(file: str) -> Mapping[int, list[_Sides]]:
    with suppress(SyntaxError, ValueError):
        return _by_line(ast.walk(ast.parse("".join(linecache.getlines(file)))), file)
    return {}


@lru_cache(maxsize=1024)
def _comparisons_in_code(code: CodeType) -> Mapping[int, list[_Sides]]:
    return _by_line(expressions_in(code), code.co_filename)


def _by_line(nodes: Iterable[ast.AST], file: str) -> dict[int, list[_Sides]]:
    found: dict[int, list[_Sides]] = {}
    for node in nodes:
        if isinstance(node, ast.Compare):
            found.setdefault(node.lineno, []).extend(_pairs(node, file))
    return found


def _pairs(node: ast.Compare, file: str) -> Iterator[_Sides]:
    operands = [node.left, *node.comparators]
    for left, right, order in zip(operands, operands[1:], node.ops, strict=False):
        if isinstance(order, (ast.In, ast.NotIn, ast.Is, ast.IsNot)) or not only_computes(left, right):
            continue
        at = Comparison(file, node.lineno, getattr(right, "col_offset", node.col_offset))
        yield _Sides(at, *(compile_expression(side, file) for side in (left, right)))


def compile_expression(expression: ast.expr, file: str) -> CodeType:
    """The expression as code to evaluate."""
    return compile(ast.fix_missing_locations(ast.Expression(expression)), file, "eval")


def only_computes(*expressions: ast.expr) -> bool:
    """Whether evaluating these has no effect, as far as their names say."""
    return all(_is_harmless(node) for expression in expressions for node in ast.walk(expression))


def _is_harmless(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return isinstance(node, (*_PARTS, *_TEXTS, *_SYNTAX))
    function = node.func
    if isinstance(function, ast.Name):
        return function.id in _FUNCTIONS
    if not isinstance(function, ast.Attribute):
        return False
    return function.attr in _METHODS or (isinstance(function.value, ast.Name) and function.value.id == "math")
