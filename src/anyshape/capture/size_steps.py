"""Every step of a captured program that computes with sizes: what it computes, of what, and on which line.

Python's integers have no end; those of a file have 64 bits. `Step.interval` bounds each value over the domain, and
`Step.allowed` is what the file computes exactly.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from anyshape.capture.sympy_terms import expression_of
from anyshape.domain import Expr, Number, Op, dims_of, format_expr, is_readable
from anyshape.domain.intervals import INT64, Limits
from anyshape.domain.polynomial import Polynomial
from anyshape.domain.simplify import polynomial_of
from anyshape.findings import Source
from anyshape.intercept.quick_tracing import term_of
from anyshape.leaves.own_operators import FUNCTIONS, number, whole
from anyshape.modules.user_code import source_of_stack_text

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_MOST_TERMS = 256
_MOST_WRITTEN = 200
_EXACT_IN_DOUBLE = (-(2**53), 2**53)
_EXACT_IN_SINGLE = (-(2**24), 2**24)
_ROOTS_IN_SINGLE = (0, 2**10)  # up to it a root of a whole number, off by one bit, rounds to the same whole number
_SQUARES = (0, 2**52)  # below it the root of a double truncates to the whole root
_IN_SINGLE = " in float32"
_MOST_SHIFT = 62
_SHIFTED = (-(2**62), 2**62 - 1)  # what is shifted right by any count
_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%"}
_FILLED = ("scalar_tensor.default", "full.default")
_INTEGERS = {"torch.int32": 32, "torch.int16": 16, "torch.int8": 8}
_GIVE_FLOATS = ("div", "float", "float32", "sqrt", "log", "log2", "log10", "exp")
_KEEP_KIND = ("add", "sub", "mul", "floordiv", "mod", "neg", "pow", "max", "min", "abs")
_ROUNDINGS = ("ceil", "floor", "trunc", "round")
_KEEP_WHOLE = ("float", "float32", "add", "sub", "mul", "neg", "max", "min", "abs")
_MORE: dict[str, Callable[..., Any]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
    "abs": operator.abs,
}


@dataclass(frozen=True, eq=False)
class Step:
    """One number of a program: `kind` is `size`, `number`, `any`, or the name of an operation on other steps.

    `expr` and `terms` are there where integer arithmetic over the dims gives the value. `allowed` are the ends of what the
    file computes exactly.
    """

    kind: str
    args: tuple[Step, ...] = ()
    value: float = 0
    expr: Expr | None = None
    terms: Polynomial | None = None
    is_float: bool = False
    allowed: tuple[int, int] = INT64
    source: Source | None = None

    @cached_property
    def weight(self) -> int:
        """How many operations lead to it, those that are used twice counted twice."""
        return 1 + sum(arg.weight for arg in self.args)

    @cached_property
    def dims(self) -> frozenset[str]:
        """The dims on which the value depends, as far as they are known."""
        own = frozenset(dims_of(self.expr)) if self.expr is not None else frozenset()
        return own.union(*(arg.dims for arg in self.args))

    @property
    def text(self) -> str:
        """The value as a person would write it."""
        if self.expr is not None and is_readable(self.expr):
            return format_expr(self.expr)
        if self.weight > _MOST_WRITTEN:
            return f"{self.kind}(...)"
        if self.kind == "same":
            return self.args[0].text
        if self.kind in ("float", "float32"):
            inner = self.args[0].text.removesuffix(_IN_SINGLE)
            return f"{inner}{_IN_SINGLE}" if self.kind == "float32" else inner
        inside = [arg.text.removesuffix(_IN_SINGLE) for arg in self.args] or [f"{self.value:g}"]
        if self.kind != "pow":
            return f"{self.kind}({', '.join(inside)})"
        return "**".join(text if text.isidentifier() or text.isdigit() else f"({text})" for text in inside)


def steps_of(program: ExportedProgram, symbols: Mapping[str, Expr]) -> tuple[Step, ...]:
    """The steps of a program in their order; those that only read a size are left out."""
    reader = _Reader(symbols)
    for node in program.graph.nodes:
        reader.read(node)
    return tuple(reader.found)


def element_counts(program: ExportedProgram, symbols: Mapping[str, Expr]) -> Iterator[Expr]:
    """How many elements each tensor has that the program makes; a view that repeats elements has no memory of its own."""
    import torch

    seen: set[Any] = set()
    for node in program.graph.nodes:
        if "expand" in str(node.target):
            continue
        values = node.meta.get("val")
        for value in values if isinstance(values, (tuple, list)) else (values,):
            if not isinstance(value, torch.Tensor) or not any(isinstance(size, torch.SymInt) for size in value.shape):
                continue
            sizes = tuple(term_of(size) if isinstance(size, torch.SymInt) else size for size in value.shape)
            if sizes not in seen:
                seen.add(sizes)
                yield from _count(sizes, symbols)


def _count(sizes: Sequence[Any], symbols: Mapping[str, Expr]) -> Iterator[Expr]:
    product: Expr = Number(1)
    for size in sizes:
        term = Number(size) if isinstance(size, int) else expression_of(size, symbols)
        if term is None:
            return
        product = product * term
    yield product


class _Reader:
    """Reads nodes of a program one after the other."""

    def __init__(self, symbols: Mapping[str, Expr]) -> None:
        self._symbols = symbols
        self._steps: dict[Any, Step] = {}
        self.found: list[Step] = []

    def read(self, node: Any) -> None:
        import torch

        value = node.meta.get("val")
        if str(node.target).removeprefix("aten.") in _FILLED:
            self._read_filled(node)
        if not isinstance(value, (int, float, torch.SymInt, torch.SymFloat)) or isinstance(value, bool):
            return
        step = self._step_of(node, value)
        self._steps[node] = step
        if step.kind not in ("size", "number", "any"):
            self.found.append(step)

    def _step_of(self, node: Any, value: Any) -> Step:
        source = source_of_stack_text(node.meta.get("stack_trace"))
        if node.op == "call_function" and node.target in (whole, number):
            formula, *rest = node.args
            return self._formula(json.loads(formula), rest[1:] if node.target is number else rest, source)
        kind = _kind_of(node.target) if node.op == "call_function" else None
        if kind is None or node.kwargs:
            return _leaf(value, self._symbols)
        return self._operation(kind, [self._argument(arg) for arg in node.args], source)

    def _argument(self, argument: Any) -> Step:
        if isinstance(argument, (int, float)):
            return _number(argument)
        return self._steps.get(argument) or Step("any")

    def _operation(self, kind: str, args: list[Step], source: Source | None) -> Step:
        terms = _terms(kind, args)
        expr = _expr(kind, args)
        is_float = kind in _GIVE_FLOATS or (kind in _KEEP_KIND and any(arg.is_float for arg in args))
        step = Step(kind, tuple(args), 0, expr, terms, is_float, INT64, source)
        self.found.extend(_exact_operands(kind, args, source))
        return step

    def _formula(self, formula: Any, sizes: Sequence[Any], source: Source | None) -> Step:
        if not isinstance(formula, list):
            return _number(formula)
        name, *parts = formula
        if name == "size":
            return self._argument(sizes[parts[0]])
        step = self._operation(name, [self._formula(part, sizes, source) for part in parts], source)
        self.found.append(step)
        return step

    def _read_filled(self, node: Any) -> None:
        """A tensor of a narrow integer dtype, filled with a number: eager refuses what does not fit, a file wraps it."""
        bits = _INTEGERS.get(str(node.kwargs.get("dtype")))
        given = self._steps.get(node.args[-1]) if node.args and not isinstance(node.args[-1], (list, int)) else None
        if bits is not None and given is not None and not given.is_float:
            ends = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            source = source_of_stack_text(node.meta.get("stack_trace"))
            self.found.append(_only(given, ends, source))


def _leaf(value: Any, symbols: Mapping[str, Expr]) -> Step:
    if isinstance(value, (int, float)):
        return _number(value)
    expr = expression_of(term_of(value), symbols)
    if expr is None:
        return Step("any", is_float=type(value).__name__ == "SymFloat")
    return Step("size", expr=expr, terms=polynomial_of(expr))


def _number(value: float) -> Step:
    if isinstance(value, float):
        return Step("number", value=value, is_float=True)
    return Step("number", value=value, expr=Number(int(value)), terms=Polynomial.constant(int(value)))


def _only(step: Step, allowed: tuple[int, int], source: Source | None) -> Step:
    """The step, with the ends within which its value must stay here."""
    return Step("same", (step,), 0, step.expr, step.terms, step.is_float, allowed, source)


def _exact_operands(kind: str, args: Sequence[Step], source: Source | None) -> Iterator[Step]:
    """Python divides integers of any size and rounds once; a file makes doubles of them first."""
    whole_args = [arg for arg in args if not arg.is_float and arg.kind != "number"]
    if kind == "div" and all(not arg.is_float for arg in args):
        yield from (_only(arg, _EXACT_IN_DOUBLE, source) for arg in whole_args)
    if kind == "rshift" and not (args[1].kind == "number" and args[1].value <= _MOST_SHIFT):
        yield from (_only(arg, _SHIFTED, source) for arg in whole_args[:1])
    if kind == "float32" and _is_whole(args[0]):
        yield Step("same", (Step(kind, tuple(args)),), allowed=_EXACT_IN_SINGLE, source=source)
    if kind in _ROUNDINGS and args[0].kind == "float32" and args[0].args[0].kind == "sqrt":
        yield Step("same", tuple(args), allowed=_ROOTS_IN_SINGLE, source=source)
    if kind == "sqrt":
        yield from (_only(arg, _SQUARES, source) for arg in whole_args)
    if kind == "pow" and args[1].kind != "number" and not any(arg.is_float for arg in args):
        yield Step("pow", tuple(args), allowed=_EXACT_IN_DOUBLE, source=source)


def _is_whole(step: Step) -> bool:
    """Whether a number is whole by the way it is computed."""
    if step.kind == "number" or not step.is_float:
        return step.value == int(step.value)
    return step.kind in _KEEP_WHOLE and all(map(_is_whole, step.args))


def _terms(kind: str, args: Sequence[Step]) -> Polynomial | None:
    """The value as a polynomial, unless it has too many terms."""
    parts = [arg.terms for arg in args if arg.terms is not None]
    if len(parts) != len(args) or not parts:
        return None
    if kind in ("add", "sub", "mul"):
        left, right = parts
        if kind == "mul" and len(left.terms) * len(right.terms) > _MOST_TERMS:
            return None
        return left + right if kind == "add" else left - right if kind == "sub" else left * right
    if kind == "neg":
        return Polynomial.constant(0) - parts[0]
    last = parts[-1].as_constant()
    if kind == "floordiv" and last and sum(arg.weight for arg in args) <= _MOST_WRITTEN:
        return polynomial_of(parts[0].to_expr() // Number(last))  # (4*h)//4 is h, and ends where h does
    if kind == "pow" and last is not None and 0 <= last <= 64 and len(parts[0].terms) ** last < _MOST_TERMS:
        power = Polynomial.constant(1)
        for _ in range(last):
            power = power * parts[0]
        return power
    return None


def _expr(kind: str, args: Sequence[Step]) -> Expr | None:
    """The value as it was written, for messages; powers have no form of their own."""
    exprs = [arg.expr for arg in args if arg.expr is not None]
    if len(exprs) != len(args) or len(exprs) != 2 or sum(arg.weight for arg in args) > _MOST_WRITTEN:
        return None
    if kind in ("min", "max"):
        return Op(kind, tuple(exprs))
    return Op(_SYMBOLS[kind], tuple(exprs)) if kind in _SYMBOLS else None


def _kind_of(target: Any) -> str | None:
    import torch

    if target is torch.sym_int:
        return "trunc"
    named = {**FUNCTIONS, **_MORE}
    return next((name for name, function in named.items() if function is target), None)


def fits(steps: Sequence[Step], limits: Limits) -> bool:
    """Whether no step leaves what the file computes exactly."""
    return first_overflow(steps, limits) is None


def first_overflow(steps: Sequence[Step], limits: Limits) -> Step | None:
    """The first step, in the program's order, that can leave what the file computes exactly."""
    from anyshape.capture.overflow import Intervals

    intervals = Intervals(limits)
    for step in steps:
        low, high = intervals.of(step)
        if not step.is_float and not (step.allowed[0] <= low and high <= step.allowed[1]):
            return step
    return None
