"""What the user wrote, made into a domain, and the domain as the user would write it.

A rule about one dim goes into the dim, every other rule stays a relation; `declare_domain` and `format_domain` are
inverses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

from anyshape.domain.bound import Bound, find_bound
from anyshape.domain.condition import All, Compare, Condition, conjuncts, dims_of, format_condition
from anyshape.domain.dims import Dim, Domain, empty_domain, unknown_dim
from anyshape.domain.expr import Number, Ref
from anyshape.domain.parse import caret, parse_condition
from anyshape.domain.solver_results import Truth
from anyshape.findings import DeclarationError, Finding


def declare_domain(names: Sequence[str | Dim], where: Sequence[str | Condition] = ()) -> Domain:
    """The domain of these dims under these rules. Raises if a rule is unreadable or no sizes keep all of them.

    The smallest size of a dim without a declaration is 1, and a rule may lower it: `past >= 0`.
    """
    bare = Domain(tuple(Dim(name) if isinstance(name, str) else name for name in names))
    rules = [part for rule in where for part in _read(rule, bare)]
    bounds = [(find_bound(rule), rule) for rule in rules]
    dims = []
    for dim in bare.dims:
        about = [_Rule(bound, rule) for bound, rule in bounds if bound is not None and bound.name == dim.name]
        dims.append(_declared(dim, about) if about else dim)
    domain = Domain(tuple(dims), tuple(dict.fromkeys(rule for bound, rule in bounds if bound is None)))
    check_not_empty(domain)
    return domain


def format_domain(domain: Domain) -> tuple[str, ...]:
    """The rules of the domain, one text each: ranges and multiples in the order of the dims, then the relations."""
    lines = [format_condition(rule) for dim in domain.dims for rule in _rules_of(dim)]
    return (*lines, *(format_condition(relation) for relation in domain.relations))


def _read(rule: str | Condition, domain: Domain) -> tuple[Condition, ...]:
    condition = parse_condition(rule) if isinstance(rule, str) else rule
    text = " ".join(rule.split()) if isinstance(rule, str) else format_condition(rule)
    for name in dims_of(condition):
        if name not in domain.names:
            place = re.search(rf"\b{re.escape(name)}\b", text)
            excerpt = caret(text, *place.span()) if place else text
            raise DeclarationError(unknown_dim(name, domain.names, excerpt))
    return conjuncts(condition)


@dataclass(frozen=True)
class _Rule:
    """A bound and the condition that it was read from."""

    bound: Bound
    condition: Condition


def _declared(dim: Dim, rules: list[_Rule]) -> Dim:
    """The dim within all of its rules; the default of at least 1 gives way to a written lower end."""
    lows = [(rule.bound.min, str(rule.condition)) for rule in rules if rule.bound.min is not None]
    highs = [(rule.bound.max, str(rule.condition)) for rule in rules if rule.bound.max is not None]
    if dim.declared or not lows:
        lows.append((dim.min, f"{dim.name} >= {dim.min}"))
    if dim.max is not None:
        highs.append((dim.max, f"{dim.name} <= {dim.max}"))
    low, high = max(lows, key=lambda end: end[0]), min(highs, key=lambda end: end[0], default=None)
    multiple = lcm(dim.multiple, *(rule.bound.multiple or 1 for rule in rules))
    if high is not None and high[0] // multiple * multiple < max(low[0], 0):
        written = dim.declared or any(rule.bound.min is not None for rule in rules)
        raise DeclarationError(_no_size_left(dim, low[1], high[1], multiple, written))
    return Dim(dim.name, max(low[0], 0), high[0] if high else None, multiple, declared=True)


def _no_size_left(dim: Dim, low: str, high: str, multiple: int, written: bool) -> Finding:
    rules = list(dict.fromkeys([low, high] + ([f"{dim.name} % {multiple} == 0"] if multiple != 1 else [])))
    why = f"{list_quoted(rules)} cannot hold together."
    if written:
        return empty_domain(f"no size is left for dim {dim.name!r}.", why)
    why += " A size is at least 1 unless a rule says otherwise."
    return empty_domain(f"no size is left for dim {dim.name!r}.", why, f"if 0 is meant, say so: '{dim.name} >= 0'.")


def _rules_of(dim: Dim) -> list[Condition]:
    this = Ref(dim.name)
    rules: list[Condition] = []
    if dim.max is not None and dim.min == dim.max:
        rules.append(Compare("==", this, Number(dim.min)))
    elif dim.max is not None:
        rules.append(All((Compare("<=", Number(dim.min), this), Compare("<=", this, Number(dim.max)))))
    elif dim.min != 1 or (dim.declared and dim.multiple == 1):
        rules.append(Compare(">=", this, Number(dim.min)))
    if dim.multiple != 1:
        rules.append(Compare("==", this % dim.multiple, Number(0)))
    return rules


def check_not_empty(domain: Domain) -> None:
    """Raise if no sizes keep all rules, and name the rules that contradict each other."""
    if not domain.relations or domain.contains({dim.name: dim.smallest for dim in domain.dims}):
        return  # each dim has a size of its own, and no solver is needed
    from anyshape.domain.solver_questions import find_contradiction, is_empty  # only now, since it loads z3

    if is_empty(domain) is not Truth.YES:
        return
    texts = [format_condition(rule) for rule in find_contradiction(domain) or domain.conditions()]
    together = f"{list_quoted(texts)} cannot hold together." if len(texts) > 1 else f"{texts[0]!r} never holds."
    raise DeclarationError(empty_domain("no sizes keep all of the rules.", together, "drop or widen one of them."))


def list_quoted(texts: Sequence[str]) -> str:
    """`'a', 'b' and 'c'`."""
    quoted = [repr(text) for text in texts]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 2 else quoted)
