"""Integer expressions over dims: `2*seq`, `past + seq`, `(t + 1)//2`.

An expression is a value: frozen, hashable and compared by its form. `past + seq` and `seq + past` are different forms;
`simplify` brings both to the same one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from keyword import iskeyword
from math import isqrt

from anyshape.findings import AnyshapeError, DeclarationError, Finding

INFIX_SYMBOLS = ("+", "-", "*", "//", "%")
ROOT = "isqrt"
CALL_SYMBOLS = ("min", "max", ROOT)
_SUM, _PRODUCT, _UNARY, _ATOM = 1, 2, 3, 4
_STRENGTH = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "//": _PRODUCT, "%": _PRODUCT}
_SPACED = ("+", "-", "%")
_LONGEST_NAME = 200


class Undefined(AnyshapeError):
    """An expression has no value at these sizes, because it divides by zero there."""


class Expr:
    """Base of Number, Ref and Op; the operators of Python build bigger expressions."""

    __slots__ = ()

    def __add__(self, other: Expr | int) -> Op:
        return Op("+", (self, as_expr(other)))

    def __radd__(self, other: int) -> Op:
        return Op("+", (as_expr(other), self))

    def __sub__(self, other: Expr | int) -> Op:
        return Op("-", (self, as_expr(other)))

    def __rsub__(self, other: int) -> Op:
        return Op("-", (as_expr(other), self))

    def __mul__(self, other: Expr | int) -> Op:
        return Op("*", (self, as_expr(other)))

    def __rmul__(self, other: int) -> Op:
        return Op("*", (as_expr(other), self))

    def __floordiv__(self, other: Expr | int) -> Op:
        return Op("//", (self, as_expr(other)))

    def __rfloordiv__(self, other: int) -> Op:
        return Op("//", (as_expr(other), self))

    def __mod__(self, other: Expr | int) -> Op:
        return Op("%", (self, as_expr(other)))

    def __rmod__(self, other: int) -> Op:
        return Op("%", (as_expr(other), self))

    def __neg__(self) -> Op:
        return Op("*", (Number(-1), self))

    def __str__(self) -> str:
        return format_expr(self)


@dataclass(frozen=True)
class Number(Expr):
    """An integer that is the same at all sizes."""

    value: int

    def __post_init__(self) -> None:
        if type(self.value) is not int:
            raise TypeError(f"Number takes an int, not {self.value!r}")

    __str__ = Expr.__str__


@dataclass(frozen=True)
class Ref(Expr):
    """The size of the dim of this name."""

    name: str

    def __post_init__(self) -> None:
        check_dim_name(self.name)

    __str__ = Expr.__str__


@dataclass(frozen=True)
class Op(Expr):
    """An operation: `+ - * // %` on two arguments (`//` and `%` as Python has them), `min` and `max` on two or more.

    `isqrt` of one is the square root, rounded down; of a negative number it is 0.
    """

    symbol: str
    args: tuple[Expr, ...]

    def __post_init__(self) -> None:
        if self.symbol not in INFIX_SYMBOLS + CALL_SYMBOLS:
            raise ValueError(f"unknown operation {self.symbol!r}")
        fewest, most = (1, 1) if self.symbol == ROOT else (2, 2 if self.symbol in INFIX_SYMBOLS else len(self.args))
        if not fewest <= len(self.args) <= most:
            raise ValueError(f"{self.symbol!r} does not take {len(self.args)} arguments")

    __str__ = Expr.__str__


def as_expr(value: Expr | int) -> Expr:
    """An int becomes a Number, an expression stays what it is."""
    return value if isinstance(value, Expr) else Number(value)


def check_dim_name(name: str) -> None:
    """Raise unless the name can be written in an expression: an identifier of Python that is no keyword."""
    # Python reads identifiers in NFKC; a name in another form would come back from the parser as a different name.
    readable = name.isidentifier() and not iskeyword(name)
    if readable and (name.isascii() or unicodedata.normalize("NFKC", name) == name):
        return
    raise DeclarationError(
        Finding(
            code="AS004",
            name="dim-name",
            what=f"{name!r} cannot be the name of a dim.",
            why="a dim's name is written in expressions, so it is a Python identifier and no keyword.",
            fix="letters, digits and _ only, and no digit in front: batch, seq_len, x_0.",
        )
    )


def evaluate(expr: Expr, sizes: Mapping[str, int]) -> int:
    """The value at these sizes. Raises Undefined on a division by zero, DeclarationError where a size is missing."""
    if isinstance(expr, Number):
        return expr.value
    if isinstance(expr, Ref):
        if expr.name not in sizes:
            raise DeclarationError(_no_size(expr.name, sizes))
        return sizes[expr.name]
    if not isinstance(expr, Op):
        raise TypeError(f"not an expression: {expr!r}")
    values = [evaluate(arg, sizes) for arg in expr.args]
    if expr.symbol in ("//", "%") and values[1] == 0:
        raise Undefined(_division_by_zero(expr, sizes))
    return apply(expr.symbol, values)


def apply(symbol: str, values: list[int]) -> int:
    """One operation on integers; a division by zero is Python's ZeroDivisionError."""
    if symbol == "min":
        return min(values)
    if symbol == "max":
        return max(values)
    if symbol == ROOT:
        return isqrt(max(values[0], 0))
    left, right = values
    if symbol == "+":
        return left + right
    if symbol == "-":
        return left - right
    if symbol == "*":
        return left * right
    return left // right if symbol == "//" else left % right


def format_expr(expr: Expr) -> str:
    """Compact: `2*seq`, `past + seq`, `(t + 1)//2`, `32 - t`, `min(seq, 512)`."""
    return _text(expr)[0]


def is_readable(expr: Expr) -> bool:
    """Whether a person would read it as the name of an axis."""
    return len(format_expr(expr)) <= _LONGEST_NAME


def _text(expr: Expr) -> tuple[str, int]:
    """The text, and how strongly its outermost operation binds."""
    if isinstance(expr, Number):
        return str(expr.value), _UNARY if expr.value < 0 else _ATOM
    if isinstance(expr, Ref):
        return expr.name, _ATOM
    if not isinstance(expr, Op):
        raise TypeError(f"not an expression: {expr!r}")
    if expr.symbol in CALL_SYMBOLS:
        return f"{expr.symbol}({', '.join(format_expr(arg) for arg in expr.args)})", _ATOM
    left, right = expr.args
    if expr.symbol == "*" and left == Number(-1) and not isinstance(right, Number):
        return f"-{_bound(right, _UNARY)}", _UNARY
    strength = _STRENGTH[expr.symbol]
    space = " " if expr.symbol in _SPACED else ""
    return f"{_bound(left, strength)}{space}{expr.symbol}{space}{_bound(right, strength + 1)}", strength


def _bound(expr: Expr, needed: int) -> str:
    text, strength = _text(expr)
    return text if strength >= needed else f"({text})"


def _no_size(name: str, sizes: Mapping[str, int]) -> Finding:
    return Finding(
        code="AS001",
        name="unknown-dim",
        what=f"there is no size for dim {name!r}.",
        why=f"sizes are given for {', '.join(sizes)}." if sizes else "no sizes are given.",
        fix=f"give a size for {name!r}.",
    )


def _division_by_zero(expr: Op, sizes: Mapping[str, int]) -> Finding:
    return Finding(
        code="AS005",
        name="division-by-zero",
        what=f"{expr} has no value here: {expr.args[1]} is 0.",
        why=", ".join(f"{name} = {size}" for name, size in sizes.items()),
        fix=f"add the rule {f'{expr.args[1]} >= 1'!r}.",
        sizes=dict(sizes),
    )
