"""Where a program's computation with sizes stays exact in a file: its integers have 64 bits, Python's have no end.

    n**7 % 11      right in Python at every n; in a file where n**7 < 2**63    ->    the rule n <= 511

The interval of every step, integers and floats, is computed over the limits of a domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from anyshape.capture.size_steps import Step, element_counts, first_overflow, fits, steps_of
from anyshape.domain import All, AnyOf, Compare, Condition, Domain, Expr, Not, Number, Op, Ref, all_of
from anyshape.domain.intervals import (
    INT64,
    Limits,
    combine,
    interval_of,
    largest_that,
    limits_of,
    meet,
    polynomial_interval,
)
from anyshape.domain.simplify import polynomial_of
from anyshape.findings import Source
from anyshape.records.captured import Captured, Region

Ends = tuple[float, float]

_ASSUMED = (-(2**31), 2**31)  # of a number that is read from a tensor
_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "min": "min", "max": "max"}
_ROUNDED: dict[str, Callable[[float], float]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "trunc": math.trunc,
    "round": round,
    "float": float,
    "sqrt": lambda number: math.sqrt(max(number, 0)),
    "log": lambda number: math.log(number),
    "log2": lambda number: math.log2(number),
    "log10": lambda number: math.log10(number),
    "exp": math.exp,
    "float32": float,
}
"""Functions that never fall where their argument rises."""
_MOST_SHIFTED = 200
_MOST_RULES = 64


class Intervals:
    """Intervals of steps under one set of limits, each computed once."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: dict[int, Ends] = {}

    def of(self, step: Step) -> Ends:
        key = id(step)
        if key not in self._known:
            self._known[key] = self._find(step)
        return self._known[key]

    def _find(self, step: Step) -> Ends:
        if step.kind == "number":
            return step.value, step.value
        if step.kind == "any":
            return _ASSUMED
        if step.kind == "size":
            assert step.expr is not None
            return interval_of(step.expr, self._limits)
        args = [self.of(arg) for arg in step.args]
        found = args[0] if step.kind == "same" else _of_operation(step, args)
        if step.terms is not None and not step.is_float:
            low, high = found
            exact = polynomial_interval(step.terms, self._limits)
            return meet((int(low), int(high)), exact) if math.isfinite(low) and math.isfinite(high) else exact
        return found


def _of_operation(step: Step, args: list[Ends]) -> Ends:
    kind = step.kind
    if kind in _ROUNDED:
        low, high = (_applied(_ROUNDED[kind], end) for end in args[0])
        return low, high
    if kind == "neg":
        return -args[0][1], -args[0][0]
    if kind == "abs":
        low, high = args[0]
        return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
    if kind in ("lshift", "rshift"):
        return _shifted(kind, args)
    if kind == "pow":
        return _power(*args)
    if kind == "div":
        return _quotient(*args)
    if kind in _SYMBOLS and all(isinstance(end, int) for ends in args for end in ends):
        return combine(_SYMBOLS[kind], [(int(low), int(high)) for low, high in args])
    return _of_floats(kind, args)


def _of_floats(kind: str, args: list[Ends]) -> Ends:
    if kind == "floordiv":
        low, high = _quotient(*args)
        return _applied(math.floor, low), _applied(math.floor, high)
    if kind == "mod":
        most = max(abs(end) for end in args[1])
        return (-most if args[1][0] < 0 else 0), most
    (low, high), (other_low, other_high) = args
    if kind == "add":
        return low + other_low, high + other_high
    if kind == "sub":
        return low - other_high, high - other_low
    if kind in ("min", "max"):
        choose = min if kind == "min" else max
        return choose(low, other_low), choose(high, other_high)
    return _corners(lambda one, two: one * two, args)


def _quotient(numerator: Ends, divisor: Ends) -> Ends:
    low, high = divisor
    if low <= 0 <= high:  # integers do not come closer to 0 than 1, floats do
        is_whole = isinstance(low, int) and isinstance(high, int)
        if not is_whole or low < 0 < high:
            return -math.inf, math.inf
        low, high = (1, max(high, 1)) if low == 0 else (min(low, -1), -1)
    return _corners(lambda one, two: one / two, [numerator, (low, high)])


def _power(base: Ends, exponent: Ends) -> Ends:
    """x ** y of numbers that are not negative, or to whole powers: a negative one has either sign where the power varies."""
    low, high = base
    if exponent[0] < 0:
        return -math.inf, math.inf
    if low < 0 and exponent[0] != exponent[1]:
        _, most = _power((0, max(abs(low), abs(high))), exponent)
        return -most, most
    if max(abs(low), abs(high)) > 1 and exponent[1] * math.log2(max(abs(low), abs(high))) > _MOST_SHIFTED:
        return (0 if low >= 0 else -math.inf), math.inf
    ends = [end**power for end in (low, high) for power in exponent]
    return (min(0, *ends) if low < 0 < high else min(ends)), max(ends)


def _shifted(kind: str, args: list[Ends]) -> Ends:
    """a << n and a >> n; a negative n raises in Python, so it is no value."""
    (low, high), count = args
    least, most = (int(min(max(end, 0), _MOST_SHIFTED)) for end in count)
    if kind == "lshift":
        ends = [int(end) << shift for end in (low, high) for shift in (least, most)]
    else:
        ends = [int(end) >> shift for end in (low, high) for shift in (least, most)]
    return min(ends), max(ends)


def _corners(function: Callable[[float, float], float], args: list[Ends]) -> Ends:
    found = [_applied(partial(function, one), two) for one in args[0] for two in args[1]]
    known = [end for end in found if not math.isnan(end)]
    return (min(known), max(known)) if known else (-math.inf, math.inf)


def _applied(function: Callable[[float], float], end: float) -> float:
    """The function at one end; an end without a value, or with one beyond all floats, is infinite."""
    if math.isnan(end):
        return end
    try:
        return function(end) if math.isfinite(end) else end
    except OverflowError:
        return math.copysign(math.inf, end)
    except (ValueError, ZeroDivisionError):
        return -math.inf


@dataclass(frozen=True)
class Overflow:
    """A value that a file cannot compute exactly on all of the domain.

    `condition` is where it can, None where no bound of the dims gives that; `cuts_promise`: the condition takes
    away sizes that the user declared.
    """

    text: str
    source: Source | None
    condition: Condition | None
    cuts_promise: bool


def find_overflows(captured: Captured, domain: Domain, promised: Collection[str]) -> tuple[Overflow, ...]:
    """The values of all regions that can leave what a file computes exactly, each with the rule that keeps it inside.

    `promised` are the dims whose upper end the user has declared: the others are cut first.
    """
    found: list[Overflow] = []
    for region in captured.regions:
        inside = domain.narrowed(*(each.condition for each in found if each.condition is not None))
        found.extend(_of_region(region, inside.narrowed(region.condition), promised))
    return tuple(found)


def _of_region(region: Region, domain: Domain, promised: Collection[str]) -> Iterator[Overflow]:
    steps = (*steps_of(region.program, region.symbols), *_written(region.condition))
    if not steps:
        return
    limits = limits_of(domain, element_counts(region.program, region.symbols))
    cuts: dict[tuple[str, ...], Overflow] = {}
    for _ in range(_MOST_RULES):
        step = first_overflow(steps, limits)
        if step is None:
            break
        names = [name for name in domain.names if name in step.dims]
        free = [name for name in names if name not in promised]
        cut = _cut(step, free, limits) or _cut(step, names, limits)
        if cut is None:
            yield Overflow(step.text, step.source, None, cuts_promise=False)
            return
        limits, key, condition = cut
        cuts[key] = Overflow(step.text, step.source, condition, any(name in promised for name in key))
    yield from cuts.values()


def _cut(step: Step, names: Sequence[str], limits: Limits) -> tuple[Limits, tuple[str, ...], Condition] | None:
    """The limits at which the step stays exact, the dims that are cut, and the rule: an end of one dim, of the product of
    several, or the same end for each of them."""
    if not names:
        return None
    key = tuple(names)
    if len(names) > 1:
        least, most = (prod(limits.ends[name][end] for name in names) for end in (0, 1))
        most = min(most, INT64[1])  # the file computes the product, too
        high = largest_that(lambda end: fits([step], limits.with_product(key, end)), least, most)
        if high is not None and high > least:
            product = _product(names)
            return limits.with_product(key, high), key, Compare("<=", product, Number(high))
    low, most = max(limits.ends[name][0] for name in names), max(limits.ends[name][1] for name in names)
    high = largest_that(lambda end: fits([step], limits.with_end(names, end)), low, most)
    if high is None:
        return None
    return limits.with_end(names, high), key, all_of(Compare("<=", Ref(name), Number(high)) for name in names)


def _product(names: Sequence[str]) -> Expr:
    product: Expr = Ref(names[0])
    for name in names[1:]:
        product = product * Ref(name)
    return product


def _written(condition: Condition) -> Iterator[Step]:
    """The steps by which a file finds out whether a condition holds."""
    if isinstance(condition, (All, AnyOf)):
        for part in condition.parts:
            yield from _written(part)
    elif isinstance(condition, Not):
        yield from _written(condition.part)
    elif isinstance(condition, Compare):
        for side in (condition.left, condition.right):
            yield from _written_expr(side)


def _written_expr(expr: Expr) -> Iterator[Step]:
    if isinstance(expr, Op):
        for arg in expr.args:
            yield from _written_expr(arg)
        yield Step("same", (Step("size", expr=expr, terms=polynomial_of(expr)),), expr=expr)
