"""The guards of a symbolic capture, and the tables that its program reads: candidates for rules under which a module answers.

A guard holds wherever the captured program does, which may be a part of the sizes at which the module answers: a candidate
becomes a rule only if it holds at every answered point and predicts further ones.

4*b*(n//3) == 8*b*(n//6)  ->  n//3 == 2*(n//6), since b >= 1
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from anyshape.capture.symbolic import capture_symbolically
from anyshape.capture.table_limits import find_table_limits
from anyshape.domain import Compare, Condition, Domain, Ref, conjuncts
from anyshape.domain.polynomial import Polynomial
from anyshape.domain.simplify import polynomial_of
from anyshape.inputs import Declared

if TYPE_CHECKING:
    import torch


def find_candidates(module: torch.nn.Module, declared: Declared) -> tuple[Condition, ...]:
    """Conditions on the sizes under which the module's program holds; none where torch.export cannot follow the module."""
    try:
        captured = capture_symbolically(module, declared, declared.example_sizes, lambda program: program)
        limits = [limit for region in captured.regions for limit in find_table_limits(region)]
    except Exception:  # whatever torch raises: a module without a symbolic capture has no guards
        return ()
    conditions = [*(guard.condition for guard in captured.guards if guard.status != "proved"), *limits]
    parts = [part for condition in conditions if condition is not None for part in conjuncts(condition)]
    return tuple(dict.fromkeys(_shortened(part, declared.domain) for part in parts))


def _shortened(condition: Condition, domain: Domain) -> Condition:
    """Numbers on one side, and both sides divided by what they share, where that is positive at all sizes."""
    if not isinstance(condition, Compare):
        return condition
    left, right = polynomial_of(condition.left), polynomial_of(condition.right)
    number = Polynomial.constant(left.coefficient(()))
    left, right = left - number, right - number
    factor, atoms = left.common_factor(right) if left.terms and right.terms else (1, ())
    shared = tuple(_positive(atoms, domain))
    return Compare(condition.op, left.without(shared, factor).to_expr(), right.without(shared, factor).to_expr())


def _positive(atoms: tuple[object, ...], domain: Domain) -> Iterator[Ref]:
    for atom in atoms:
        if isinstance(atom, Ref) and domain.dim(atom.name).smallest >= 1:
            yield atom
