"""Where conditions of a capture fail: at few sizes only, so few that comparing the file there shows what they hide?

    n >= 3                          fails where a dim is 1 or 2
    (w - 1)//32 + 1 >= 2            fails at one value of an expression: it is never below 1, so this is `(w - 1)//32 + 1 != 1`
    w >= 33                         fails only where the condition before fails
    a == b                          fails only where `b == 1`, if the module answers where `a == b or b == 1`

torch writes one question about a size in several such forms: as a guard, and as the range of the symbol behind it. For a
condition that cannot be written in the user's dims, sizes at which it fails are searched by evaluating it:

    round(n / 3.7) == 811     the user's code has it: every size of a dim up to 4096, where a promise without proof ends
                              torch's own code has it: the first 512 sizes of each dim
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np

from anyshape.domain import (
    AnyOf,
    Compare,
    Condition,
    Domain,
    Expr,
    Number,
    Ref,
    Sizes,
    Undefined,
    decide,
    dims_of,
    evaluate,
    find_point,
    negate,
)
from anyshape.intercept.real_numbers import OPEN_FLOAT32
from anyshape.records.captured import Guard, fails_at_few, hides_no_branch

_NOT_SMALL = 3  # torch treats sizes of 0 and 1, and the first that are not, in ways of their own
_LEAST = {">=": 1, ">": 0}  # how far below the number of a comparison the first value is at which it fails
_OF_ITS_OWN = (0, 1)
_SPAN, _LONG_SPAN = 512, 4096
_MOST_DIMS = 4
_FIRST, _MOST = 3, 6
_COMPARED = 16
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ToFloat": float,
    "RoundToInt": round,
    "CeilToInt": math.ceil,
    "FloorToInt": math.floor,
    "TruncToInt": math.trunc,
    "IntTrueDiv": operator.truediv,
    "FloatTrueDiv": operator.truediv,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "Max": max,
    "Min": min,
    "OpaqueUnaryFn_sqrt": math.sqrt,
    "OpaqueUnaryFn_log": math.log,
    "OpaqueUnaryFn_log2": math.log2,
    "OpaqueUnaryFn_log10": math.log10,
    "OpaqueUnaryFn_exp": math.exp,
    "FloatPow": math.pow,
    OPEN_FLOAT32.term_name: lambda number: float(np.float32(number)),
}
"""torch's functions of sympy, as Python computes them."""


def note_few_failures(guards: Sequence[Guard], domain: Domain) -> tuple[Guard, ...]:
    """The guards, with those noted that fail at few sizes only, as far as that decides anything.

    A capture is promised on its whole domain only if all that is not proved fails at few sizes. So the solver is asked no
    further where one of the guards fails at others. Guards that it could not decide take longest, and come last; bounds of a
    dim and equalities come after the comparisons together with which they may fail.
    """
    unproved = [guard for guard in guards if guard.status != "proved"]
    known = [guard.condition for guard in unproved if guard.condition is not None and fails_at_few(guard)]
    known += _set_apart(domain)
    noted: dict[int, Guard] = {}
    for guard in sorted((guard for guard in unproved if not hides_no_branch(guard)), key=_order):
        if guard.condition is None or not _fails_at_few(guard.condition, known, domain):
            break
        known.append(guard.condition)
        noted[id(guard)] = replace(guard, has_few_failures=True)
    return tuple(noted.get(id(guard), guard) for guard in guards)


def _set_apart(domain: Domain) -> list[Condition]:
    """`b != 1` for a rule `a == b or b == 1`: sizes that broadcast are one value, at which the file is compared."""
    alternatives = [part for rule in domain.relations if isinstance(rule, AnyOf) for part in rule.parts]
    return [
        negate(part)
        for part in alternatives
        if isinstance(part, Compare) and part.op == "==" and part.right in [Number(size) for size in _OF_ITS_OWN]
    ]


def _order(guard: Guard) -> tuple[bool, bool, int]:
    condition = guard.condition
    is_equality = isinstance(condition, Compare) and condition.op == "=="
    is_bound = isinstance(condition, Compare) and isinstance(condition.left, Ref)
    return condition is not None, guard.status == "unknown", 2 * is_equality + is_bound


def _fails_at_few(condition: Condition, known: Sequence[Condition], domain: Domain) -> bool:
    """`known` are conditions that fail at few sizes."""
    is_few = _fails_small(condition, domain) or _fails_at_one_value(condition, domain)
    return is_few or (bool(known) and _is_proved(condition, domain.with_relations(*known)))


def _fails_small(condition: Condition, domain: Domain) -> bool:
    """Whether a condition holds wherever none of its dims is small, among those that can be larger."""
    dims = [domain.dim(name) for name in dims_of(condition) if name in domain.names]
    large = [
        Compare(">=", Ref(dim.name), Number(_NOT_SMALL)) for dim in dims if dim.max is None or dim.max >= _NOT_SMALL
    ]
    return _is_proved(condition, domain.with_relations(*large))


def _is_proved(condition: Condition, domain: Domain) -> bool:
    """Whether a condition holds on a domain that has sizes at all."""
    return isinstance(find_point(domain), Mapping) and decide(domain, condition).proved


def _fails_at_one_value(condition: Condition, domain: Domain) -> bool:
    """Whether a comparison is `!= 0` or `!= 1` on the domain, since the expression is never smaller than that."""
    if not isinstance(condition, Compare) or not isinstance(condition.right, Number) or condition.op not in _LEAST:
        return False
    least = condition.right.value - _LEAST[condition.op]
    return least in _OF_ITS_OWN and decide(domain, Compare(">=", condition.left, Number(least))).proved


def sizes_against(term: Any, symbols: Mapping[str, Expr], domain: Domain, *, by_user: bool) -> tuple[Sizes, ...]:
    """Sizes of the domain at which torch's term is false, the smallest of them and some from further out."""
    free = {symbol: symbols.get(symbol.name) for symbol in term.free_symbols}
    if None in free.values():
        return ()
    exprs = {symbol: expr for symbol, expr in free.items() if expr is not None}
    compiled = _compiled(term, exprs, domain) if by_user else None
    fails = compiled or (lambda sizes: _fails(term, exprs, sizes))
    points = _points(domain, _SPAN if compiled is None else _LONG_SPAN)
    found: list[Sizes] = []
    for sizes in islice(points, _MOST_DIMS * (_SPAN if compiled is None else _LONG_SPAN)):
        try:
            if fails(sizes):
                found.append(sizes)
        except (ArithmeticError, TypeError, ValueError, Undefined):  # no value there: nothing is said
            continue
    rest = found[_FIRST:]
    return (*found[:_FIRST], *rest[:: max(1, len(rest) // (_MOST - _FIRST))][: _MOST - _FIRST])


def _fails(term: Any, exprs: Mapping[Any, Expr], sizes: Sizes) -> bool:
    import sympy

    values = {symbol: sympy.Integer(evaluate(expr, sizes)) for symbol, expr in exprs.items()}
    return bool(term.xreplace(values) == sympy.false)


def _compiled(term: Any, exprs: Mapping[Any, Expr], domain: Domain) -> Callable[[Sizes], bool] | None:
    """`_fails` as a compiled Python function, a hundred times as fast; None where the two differ at the first sizes."""
    function = compiled_term(term, exprs)
    if function is None:
        return None

    def fails(sizes: Sizes) -> bool:
        return not function(*(evaluate(expr, sizes) for expr in exprs.values()))

    try:
        first = list(islice(_points(domain, _COMPARED), _COMPARED))
        return fails if all(fails(sizes) == _fails(term, exprs, sizes) for sizes in first) else None
    except Exception:  # a function without a name in Python, or no value at these sizes
        return None


def compiled_term(term: Any, exprs: Mapping[Any, Expr]) -> Callable[..., Any] | None:
    """A Python function of the values of these symbols; None where sympy does not print a function of the term.

    sympy prints 15 digits of a float, so the floats are arguments.
    """
    import sympy

    floats = {number: sympy.Dummy() for number in term.atoms(sympy.Float)}
    numbers = list(map(float, floats))
    try:
        function = sympy.lambdify([*exprs, *floats.values()], term.xreplace(floats), modules=[_FUNCTIONS, "math"])
    except Exception:
        return None
    return lambda *values: function(*values, *numbers)


def _points(domain: Domain, span: int) -> Iterator[Sizes]:
    """One dim after the other through its first sizes, all others at rest."""
    return chain.from_iterable(points_along(domain, span))


def points_along(domain: Domain, span: int) -> Iterator[Iterator[Sizes]]:
    """For each dim its first sizes, all others at rest."""
    rest = find_point(domain)
    if isinstance(rest, Mapping):
        for dim in domain.dims:
            sizes = range(dim.smallest, dim.smallest + span)
            yield filter(domain.contains, [{**rest, dim.name: size} for size in sizes])
