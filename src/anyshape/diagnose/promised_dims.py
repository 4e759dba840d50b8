"""The dims that the user's own bounds and relations mention, and whether a rule cuts their sizes."""

from __future__ import annotations

from anyshape.domain import Compare, Dim, Domain, Number, Ref, Undecided, dims_of, smallest_point
from anyshape.inputs import Declared

_LOOKED_AT = 16


def declared_dims(domain: Domain) -> set[str]:
    """The dims that a bound or a relation of the user's mentions."""
    related = {name for relation in domain.relations for name in dims_of(relation)}
    return related | {dim.name for dim in domain.dims if dim.declared}


def may_stay(declared: Declared, name: str) -> bool:
    """Whether a dim may have one size: the user gave its axes no name, no range and no relation."""
    return name in declared.unnamed and name not in declared_dims(declared.domain)


def is_cut(name: str, kept: Domain, dim: Dim) -> bool:
    """Whether a declared dim has a size that no sizes of the other dims go with: its ends, and some sizes between."""
    high = None if dim.max is None else dim.largest_up_to(dim.max)
    last = dim.smallest + _LOOKED_AT * dim.multiple if high is None else high
    sizes = range(dim.smallest, last + 1, dim.multiple)[:_LOOKED_AT]
    return any(_is_empty_at(kept, name, size) for size in dict.fromkeys([*sizes, last]))


def _is_empty_at(domain: Domain, name: str, size: int) -> bool:
    try:
        return smallest_point(domain, Compare("==", Ref(name), Number(size))) is None
    except Undecided:
        return False
