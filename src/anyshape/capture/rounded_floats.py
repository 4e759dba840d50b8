"""Sizes at which a rounded float of sizes becomes another whole number: there a last bit decides, and a file is compared.

    math.ceil(math.log(n) / math.log(7))     another number from n = 8, 50, 344 on     ->     6 to 9, 48 to 51, 342 to 345

Quotients and roots of whole numbers have exact forms, and are left out: logarithms, exponentials and powers have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from anyshape.capture.failing_sizes import compiled_term, points_along
from anyshape.capture.sympy_terms import ROUNDINGS, is_root
from anyshape.domain import Domain, Expr, Sizes, Undefined, evaluate
from anyshape.intercept.quick_tracing import term_of

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_SPAN = 4096
_MOST = 8  # steps of each number: the first ones, at which a comparison costs least
_INEXACT = ("OpaqueUnaryFn_", "FloatPow", "Pow")


def sizes_at_steps(program: ExportedProgram, symbols: Mapping[str, Expr], domain: Domain) -> tuple[Sizes, ...]:
    """Two sizes on both sides of each step."""
    found: dict[tuple[int, ...], Sizes] = {}
    for term in _rounded_terms(program):
        exprs = {symbol: symbols[symbol.name] for symbol in term.free_symbols if symbol.name in symbols}
        if len(exprs) == len(term.free_symbols):
            found |= {tuple(sizes.values()): sizes for sizes in _steps_of(term, exprs, domain)}
    return tuple(found.values())


def _rounded_terms(program: ExportedProgram) -> Iterator[Any]:
    """The roundings of inexact floats in the numbers that a program computes, each once."""
    import torch

    seen: set[Any] = set()
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if not isinstance(value, (torch.SymInt, torch.SymFloat)):
            continue
        for part in _parts_of(term_of(value)):
            if type(part).__name__ in ROUNDINGS and part not in seen:
                seen.add(part)
                if not is_root(part.args[0]) and any(map(_is_inexact, _parts_of(part.args[0]))):
                    yield part


def _parts_of(term: Any) -> Iterator[Any]:
    import sympy

    return iter(sympy.preorder_traversal(term))


def _is_inexact(term: Any) -> bool:
    name = type(term).__name__
    return name.startswith(_INEXACT) and not (name == "Pow" and term.exp.is_Integer and int(term.exp) > 0)


def _steps_of(term: Any, exprs: Mapping[Any, Expr], domain: Domain) -> Iterator[Sizes]:
    function = compiled_term(term, exprs)
    if function is None:
        return
    for points in points_along(domain, _SPAN):
        values: list[tuple[Sizes, Any]] = []
        for sizes in points:
            try:
                values.append((sizes, function(*(evaluate(expr, sizes) for expr in exprs.values()))))
            except (ArithmeticError, TypeError, ValueError, Undefined):  # no value there
                continue
        steps = [at for at, ((_, one), (_, other)) in enumerate(pairwise(values)) if one != other]
        for at in steps[:_MOST]:
            yield from (sizes for sizes, _ in values[max(0, at - 1) : at + 3])  # a last bit moves a step by one size
