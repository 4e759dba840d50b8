"""Dims and the domain that they make, with the corners of the box that their ranges span, and all of its points when they are
few.

A Dim holds what concerns it alone (range and multiple), the relations hold the rest; nothing is held twice.
A size is at least 1 unless the user declares 0, or the exporter finds that 0 is meant (docs/decisions/0032).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import product
from math import lcm, prod

from anyshape.domain.bound import Bound, find_bound
from anyshape.domain.condition import Compare, Condition, conjuncts, dims_of, holds
from anyshape.domain.expr import Number, Ref, check_dim_name
from anyshape.findings import DeclarationError, Finding

Sizes = Mapping[str, int]
"""A size for each dim."""
Point = dict[str, int]
"""Sizes in a new dict, which the caller may change."""
FEW = 20_000


def format_sizes(sizes: Sizes, separator: str = ", ") -> str:
    """`batch=3, seq=5`."""
    return separator.join(f"{name}={size}" for name, size in sizes.items())


@dataclass(frozen=True)
class Dim:
    """A named size: from min to max (None: no upper end), in steps of multiple.

    `declared`: the user wrote the range or the multiple, which is then a promise, not a finding of ours.
    """

    name: str
    min: int = 1
    max: int | None = None
    multiple: int = 1
    declared: bool = False

    def __post_init__(self) -> None:
        check_dim_name(self.name)
        if self.min < 0 or self.multiple < 1:
            raise DeclarationError(_not_a_size(self))
        if self.max is not None and self.largest_up_to(self.max) is None:
            raise DeclarationError(_empty_dim(self))

    @property
    def smallest(self) -> int:
        """The smallest size that the range and the multiple allow."""
        return -(-self.min // self.multiple) * self.multiple

    def largest_up_to(self, limit: int) -> int | None:
        """The largest allowed size that is not above the limit, or None if there is none."""
        top = limit if self.max is None else min(limit, self.max)
        largest = top // self.multiple * self.multiple
        return largest if largest >= self.min else None

    def contains(self, size: int) -> bool:
        """Whether the size lies in the range and is a multiple."""
        return self.min <= size and (self.max is None or size <= self.max) and size % self.multiple == 0

    def conditions(self) -> tuple[Condition, ...]:
        """The range and the multiple as conditions; the lower end always, since it is never without meaning."""
        this = Ref(self.name)
        found: list[Condition] = [Compare(">=", this, Number(self.min))]
        if self.max is not None:
            found.append(Compare("<=", this, Number(self.max)))
        if self.multiple != 1:
            found.append(Compare("==", this % self.multiple, Number(0)))
        return tuple(found)


@dataclass(frozen=True)
class Domain:
    """All assignments of sizes to the dims at which every dim's range and every relation hold."""

    dims: tuple[Dim, ...] = ()
    relations: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        opened = tuple(part for relation in self.relations for part in conjuncts(relation))
        object.__setattr__(self, "relations", tuple(dict.fromkeys(opened)))  # one form for one meaning
        names = [dim.name for dim in self.dims]
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if twice:
            raise DeclarationError(_declared_twice(twice[0]))
        unknown = [name for relation in self.relations for name in dims_of(relation) if name not in names]
        if unknown:
            raise DeclarationError(unknown_dim(unknown[0], names))

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(dim.name for dim in self.dims)

    def dim(self, name: str) -> Dim:
        """The dim of this name; an unknown one is a DeclarationError with the nearest name."""
        for dim in self.dims:
            if dim.name == name:
                return dim
        raise DeclarationError(unknown_dim(name, self.names))

    def contains(self, sizes: Mapping[str, int]) -> bool:
        """Whether the domain has these sizes; a dim without a size is an error, sizes of other names are ignored."""
        if any(name not in sizes for name in self.names):
            raise DeclarationError(_no_size_given(self.names, sizes))
        in_ranges = all(dim.contains(sizes[dim.name]) for dim in self.dims)
        return in_ranges and all(holds(relation, sizes) for relation in self.relations)

    def conditions(self) -> tuple[Condition, ...]:
        """Ranges, multiples and relations, all as conditions."""
        return tuple(condition for dim in self.dims for condition in dim.conditions()) + self.relations

    def with_relations(self, *conditions: Condition) -> Domain:
        """The same dims under more relations, as they are; see `narrowed` to put bounds into the dims."""
        return replace(self, relations=self.relations + conditions)

    def with_dim(self, dim: Dim) -> Domain:
        """The domain with this dim in place of the one of the same name."""
        self.dim(dim.name)
        return replace(self, dims=tuple(dim if old.name == dim.name else old for old in self.dims))

    def narrowed(self, *conditions: Condition) -> Domain:
        """Where these conditions hold too. What they imply for one dim goes into the dim, `declared` stays as it was.

        Never raises for a contradiction: what would leave a dim without a size stays a relation (see `is_empty`).
        """
        domain = self
        for part in (part for condition in conditions for part in conjuncts(condition)):
            bound = find_bound(part)
            dim = _narrow_dim(domain.dim(bound.name), bound) if bound else None
            domain = domain.with_dim(dim) if dim else domain.with_relations(part)
        return domain


def _narrow_dim(dim: Dim, bound: Bound) -> Dim | None:
    """The dim within the bound, or None if no size is left."""
    low = max(dim.min, bound.min or 0)
    high = min((end for end in (dim.max, bound.max) if end is not None), default=None)
    multiple = lcm(dim.multiple, bound.multiple or 1)
    if high is not None and high // multiple * multiple < low:
        return None
    return replace(dim, min=low, max=high, multiple=multiple)


def unknown_dim(name: str, defined: tuple[str, ...] | list[str], excerpt: str = "") -> Finding:
    """The finding for a name that is none of the dims, with what was perhaps meant."""
    near = get_close_matches(name, defined, n=1)
    return Finding(
        code="AS001",
        name="unknown-dim",
        what=f"there is no dim {name!r}.",
        excerpt=excerpt,
        why=f"the dims are {', '.join(defined)}." if defined else "no dims are declared.",
        fix=f"did you mean {near[0]!r}?" if near else f"use {name!r} as the name of an axis.",
    )


def describe_dim(dim: Dim) -> str:
    """`batch in 1..64`, `h in 32.. (multiples of 32)`: for messages."""
    steps = f" (multiples of {dim.multiple})" if dim.multiple != 1 else ""
    return f"{dim.name} in {dim.min}..{'' if dim.max is None else dim.max}{steps}"


def empty_domain(what: str, why: str, fix: str = "") -> Finding:
    """The finding for rules that no sizes keep."""
    return Finding(code="AS003", name="empty-domain", what=what, why=why, fix=fix)


def _not_a_size(dim: Dim) -> Finding:
    wrong = f"min = {dim.min}" if dim.min < 0 else f"multiple = {dim.multiple}"
    ends = [str(max(dim.min, 1)), *([] if dim.max is None else [str(dim.max)])]
    arguments = [*ends, f"multiple={dim.multiple}"] if dim.multiple > 1 else ends
    return Finding(
        code="AS006",
        name="dim-range",
        what=f"dim {dim.name!r} has {wrong}.",
        why="a size is 0 or more, and the multiple of something that is 1 or more.",
        fix=f"anyshape.dim({', '.join(arguments)})",
    )


def _empty_dim(dim: Dim) -> Finding:
    return empty_domain(f"no size is left for dim {dim.name!r}.", f"nothing lies in {describe_dim(dim)}.")


def _declared_twice(name: str) -> Finding:
    return Finding(
        code="AS007",
        name="dim-declared-twice",
        what=f"dim {name!r} is declared twice.",
        why="the same name is the same size, so a dim is declared once and used often.",
        fix=f"give the second {name!r} a name of its own, or leave it out.",
    )


def _no_size_given(names: tuple[str, ...], sizes: Mapping[str, int]) -> Finding:
    missing = ", ".join(name for name in names if name not in sizes)
    return Finding(
        code="AS001",
        name="unknown-dim",
        what=f"sizes are missing for {missing}.",
        why=f"sizes are given for {', '.join(sizes)}." if sizes else "no sizes are given.",
    )


def corners(domain: Domain) -> tuple[dict[str, int], ...]:
    """The smallest sizes of all dims together and, where every dim has an end, the largest ones."""
    smallest = {dim.name: dim.smallest for dim in domain.dims}
    largest = {dim.name: dim.largest_up_to(dim.max) for dim in domain.dims if dim.max is not None}
    full = {name: size for name, size in largest.items() if size is not None}
    return (smallest, full) if len(full) == len(domain.dims) else (smallest,)


def fits(domain: Domain, conditions: Sequence[Condition], sizes: dict[str, int]) -> bool:
    """Whether the sizes are in the domain and the conditions hold at them."""
    return domain.contains(sizes) and all(holds(condition, sizes) for condition in conditions)


def filled(domain: Domain) -> tuple[Condition, ...]:
    """No dim is 0, of those that may be: empty tensors are equal whatever a program computes."""
    return tuple(Compare(">=", Ref(dim.name), Number(1)) for dim in domain.dims if dim.smallest == 0)


def is_small(domain: Domain, few: int = FEW) -> bool:
    """Whether trying every point of the box is quick."""
    ends = [(dim.smallest, dim.max, dim.multiple) for dim in domain.dims]
    return prod(few + 1 if high is None else (high - low) // step + 1 for low, high, step in ends) <= few


def all_points(domain: Domain, *conditions: Condition) -> Iterator[dict[str, int]]:
    """Every point of a small box that is in the domain and keeps the conditions."""
    axes = [range(dim.smallest, (dim.max or 0) + 1, dim.multiple) for dim in domain.dims]
    for point in product(*axes):
        sizes = dict(zip(domain.names, point, strict=True))
        if fits(domain, conditions, sizes):
            yield sizes
