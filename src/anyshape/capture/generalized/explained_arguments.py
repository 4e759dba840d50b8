"""Every argument of every place of a template, explained: tensors by where they come from, numbers by expressions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from anyshape.capture.generalized.asked import writes
from anyshape.capture.generalized.fit_reals import Real
from anyshape.capture.generalized.lists import Listed, resolve_list
from anyshape.capture.generalized.not_learned import edge_without_rule, number_without_rule
from anyshape.capture.generalized.resolver import Resolver, Unresolved
from anyshape.capture.generalized.template import Place, Repeated, Template, first_step, walk
from anyshape.capture.generalized.template_fits import Fits
from anyshape.capture.generalized.trace import TENSOR_KINDS, Tensors
from anyshape.domain import Expr, Number, Op


@dataclass(frozen=True)
class Explained:
    """A template with its arguments: `arguments[place]` has one entry for each leaf of the place's step."""

    template: Template
    resolver: Resolver
    fits: Fits
    arguments: dict[Place, tuple[Any, ...]]
    trips: dict[Repeated, Expr]

    @cached_property
    def is_functional(self) -> bool:
        """Whether no step writes into a tensor."""
        return not any(writes(place.step.target) for place in self.arguments)

    def rules(self) -> dict[tuple[int, int], str]:
        """Every number that is not the same everywhere, as text: what new traces must leave as it is."""
        found: dict[tuple[int, int], str] = {}
        for place, arguments in self.arguments.items():
            for index, argument in enumerate(arguments):
                if isinstance(argument, (Expr, Real)):
                    found[place.number, index] = str(argument)
        for index, trips in enumerate(self.trips.values()):
            found[-1, index] = str(trips)
        return found


def explain(template: Template) -> Explained:
    """All arguments of all places. Raises CaptureRefused with the line of the first that nothing explains."""
    counters = [
        name for item in walk(template.items) if isinstance(item, Repeated) for name in (item.counter, item.power)
    ]
    fits = Fits(counters)
    resolver = Resolver(template, fits)
    arguments: dict[Place, tuple[Any, ...]] = {}
    trips: dict[Repeated, Expr] = {}
    for item in walk(template.items):
        if isinstance(item, Place):
            arguments[item] = tuple(_explain(item, index, resolver) for index in range(len(item.step.leaves)))
        else:
            found = fits.integers([(seen.point, count) for seen, count in item.trips])
            if found is None:
                counts = [(seen.point, count) for seen, count in item.trips]
                raise number_without_rule(first_step(item), counts)
            trips[item] = found
    return Explained(template, resolver, fits, arguments, trips)


def _explain(place: Place, index: int, resolver: Resolver) -> Any:
    sightings = [(occurrence.seen, occurrence.step.leaves[index]) for occurrence in place.occurrences]
    leaf = sightings[0][1]
    try:
        if isinstance(leaf, Tensors):
            return resolve_list(resolver, [(seen, tensors.items) for seen, tensors in sightings], place.loops)
        if isinstance(leaf, TENSOR_KINDS):
            return resolver.resolve(sightings, place.loops)
    except Unresolved:
        raise edge_without_rule(place.step) from None
    if isinstance(leaf, bool) or not isinstance(leaf, (int, float)):
        return leaf
    points = [(seen.point, value) for seen, value in sightings]
    if len({value for _, value in points}) == 1:
        return Number(leaf) if isinstance(leaf, int) else leaf
    near = _sizes_nearby(place, resolver)
    found = resolver.fits.integers(points, near) if isinstance(leaf, int) else resolver.fits.reals(points, near)
    if found is None:
        raise number_without_rule(place.step, points)
    return found


def _sizes_nearby(place: Place, resolver: Resolver) -> tuple[Expr, ...]:
    """The sizes of what a step takes: its numbers are most often made of them."""
    found: dict[Expr, None] = {}
    for index, leaf in enumerate(place.step.leaves):
        if not isinstance(leaf, TENSOR_KINDS):
            continue
        shapes = [
            (each.seen.point, resolver.template.traces[each.seen.trace].shape_of(each.step.leaves[index]) or ())
            for each in place.occurrences
        ]
        for axis in range(min(len(shape) for _, shape in shapes)):
            size = resolver.fits.integers([(point, shape[axis]) for point, shape in shapes])
            if isinstance(size, Op):
                found[size] = None
    return tuple(found)


__all__ = ["Explained", "Listed", "explain"]
