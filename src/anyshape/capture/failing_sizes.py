"""Search for sizes at which a condition of torch's fails that cannot be written in the user's dims.

round(n / 3.7) == 811     the user's code has it: every size of a dim up to 4096, beyond which nothing is promised without proof
                          torch's own code has it: the first 512 sizes of each dim
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from anyshape.domain import Domain, Expr, Sizes, Undefined, evaluate, find_point

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
    "OpaqueUnaryFn_log2": math.log2,
}
"""torch's functions of sympy, as Python computes them."""


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
    """The same as a Python function, a hundred times as fast; None where the two differ at the first sizes."""
    import sympy

    try:
        function = sympy.lambdify(list(exprs), term, modules=[_FUNCTIONS, "math"])
    except Exception:  # sympy prints not every function
        return None

    def fails(sizes: Sizes) -> bool:
        return not function(*(evaluate(expr, sizes) for expr in exprs.values()))

    try:
        first = list(islice(_points(domain, _COMPARED), _COMPARED))
        return fails if all(fails(sizes) == _fails(term, exprs, sizes) for sizes in first) else None
    except Exception:  # a function without a name in Python, or no value at these sizes
        return None


def _points(domain: Domain, span: int) -> Iterator[Sizes]:
    """One dim after the other through its first sizes, all others at rest."""
    rest = find_point(domain)
    if not isinstance(rest, Mapping):
        return
    for dim in domain.dims:
        for size in range(dim.smallest, dim.smallest + span):
            sizes = {**rest, dim.name: size}
            if domain.contains(sizes):
                yield sizes
