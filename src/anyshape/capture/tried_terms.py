"""A condition that no integer arithmetic says (`float(n) / 21 == n // 21`), tried at sizes: where does it not hold?

The solver cannot decide it, and a file may be wrong where it does not hold; torch can still compute it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from anyshape.domain import Domain, Expr, Undefined, evaluate, find_point

Sizes = Mapping[str, int]
_SPAN = 512
_TRIES = 2048
_FIRST, _MOST = 3, 6


def sizes_against(term: Any, symbols: Mapping[str, Expr], domain: Domain) -> tuple[Sizes, ...]:
    """Sizes of the domain at which torch's term is false, the smallest of them and some from further out."""
    import sympy

    free = {symbol: symbols.get(symbol.name) for symbol in term.free_symbols}
    if None in free.values():
        return ()
    found: list[Sizes] = []
    for sizes in islice(_points(domain), _TRIES):
        try:
            values = {symbol: sympy.Integer(evaluate(expr, sizes)) for symbol, expr in free.items() if expr is not None}
            if term.xreplace(values) == sympy.false:
                found.append(sizes)
        except (ArithmeticError, TypeError, ValueError, Undefined):  # no value there: nothing is said
            continue
    rest = found[_FIRST:]
    return (*found[:_FIRST], *rest[:: max(1, len(rest) // (_MOST - _FIRST))][: _MOST - _FIRST])


def _points(domain: Domain) -> Iterator[Sizes]:
    """One dim after the other through its first sizes, all others at rest."""
    rest = find_point(domain)
    if not isinstance(rest, Mapping):
        return
    for dim in domain.dims:
        for size in range(dim.smallest, dim.smallest + _SPAN):
            sizes = {**rest, dim.name: size}
            if domain.contains(sizes):
                yield sizes
