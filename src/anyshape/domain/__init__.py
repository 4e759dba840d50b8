"""The domain: named dims, their ranges and multiples, the relations between them, and what follows from all that.

What needs the solver is loaded on first use, so that importing this package loads no z3.

Files, in the order in which data flows:

    expr              integer expressions over dims: `2*seq`, `past + seq`
    polynomial        polynomials over atoms, with which simplify computes
    simplify          the canonical form of an expression
    condition         comparisons of expressions, joined by and, or, not
    parse             text -> expressions, conditions, domains; Domain -> text
    dims              the records Dim and Domain
    bound             what one condition implies for one dim; what z3 found: Truth, Decision, Range, Undecided
    bounded_values    bounds of an input's values: `1 <= lengths <= seq`
    solve             conditions -> z3, the only file that imports it; wished sizes -> points that keep the relations
    solver_questions  is the domain empty, does it imply this, a point, a range, the shortest form of an expression
    intervals         bounds of expressions in 64-bit integers
    sizes             choose the sizes at which a file is compared
    telling_points    which of several points to prefer
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from anyshape.domain.bound import Bound, Decision, Range, Truth, Undecided, find_bound
from anyshape.domain.condition import (
    FALSE,
    TRUE,
    All,
    AnyOf,
    Compare,
    Condition,
    Not,
    all_of,
    any_of,
    conjuncts,
    dims_of,
    format_condition,
    holds,
    is_about,
    is_always,
    negate,
    rewritten,
    substitute,
)
from anyshape.domain.dims import Dim, Domain, Sizes, describe_dim, format_sizes, unknown_dim
from anyshape.domain.expr import ROOT, Expr, Number, Op, Ref, Undefined, as_expr, evaluate, format_expr, is_readable
from anyshape.domain.parse import caret, declare_domain, format_domain, parse_condition, parse_expr
from anyshape.domain.simplify import simplify
from anyshape.domain.telling_points import sizes_near

if TYPE_CHECKING:
    from anyshape.domain.sizes import choose_sizes
    from anyshape.domain.solver_questions import (
        decide,
        find_contradiction,
        find_point,
        is_empty,
        range_of,
        smallest_known_point,
        smallest_point,
    )

_ON_FIRST_USE = {
    "choose_sizes": "anyshape.domain.sizes",
    "decide": "anyshape.domain.solver_questions",
    "find_contradiction": "anyshape.domain.solver_questions",
    "find_point": "anyshape.domain.solver_questions",
    "is_empty": "anyshape.domain.solver_questions",
    "range_of": "anyshape.domain.solver_questions",
    "smallest_known_point": "anyshape.domain.solver_questions",
    "smallest_point": "anyshape.domain.solver_questions",
}

__all__ = [
    "FALSE",
    "ROOT",
    "TRUE",
    "All",
    "AnyOf",
    "Bound",
    "Compare",
    "Condition",
    "Decision",
    "Dim",
    "Domain",
    "Expr",
    "Not",
    "Number",
    "Op",
    "Range",
    "Ref",
    "Sizes",
    "Truth",
    "Undecided",
    "Undefined",
    "all_of",
    "any_of",
    "as_expr",
    "caret",
    "choose_sizes",
    "conjuncts",
    "decide",
    "declare_domain",
    "describe_dim",
    "dims_of",
    "evaluate",
    "find_bound",
    "find_contradiction",
    "find_point",
    "format_condition",
    "format_domain",
    "format_expr",
    "format_sizes",
    "holds",
    "is_about",
    "is_always",
    "is_empty",
    "is_readable",
    "negate",
    "parse_condition",
    "parse_expr",
    "range_of",
    "rewritten",
    "simplify",
    "sizes_near",
    "smallest_known_point",
    "smallest_point",
    "substitute",
    "unknown_dim",
]


def __getattr__(name: str) -> Any:
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ON_FIRST_USE[name]), name)


def __dir__() -> list[str]:
    return __all__
