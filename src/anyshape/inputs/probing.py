"""Call a function of sizes at several sizes to find which axis of which input is which expression of its
parameters.

An observation is the size of a tensor's axis, or the value of a Python int. Where that can be, the second probe shares no size
with the first, and an expression must give both, the example's, and every other observation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from anyshape.domain import Domain, Expr
from anyshape.findings import DeclarationError, Finding, counted
from anyshape.inputs.axis_messages import unfit_axis, value_varies
from anyshape.inputs.call_messages import structure_changes
from anyshape.inputs.calls import BoundCall
from anyshape.inputs.declared import dtype_of
from anyshape.inputs.fit import Axis, fit_axis
from anyshape.inputs.making import seeded
from anyshape.inputs.probe_sizes import (
    Ties,
    base_points,
    find_ties,
    other_points,
    points_around,
    start_points,
    step_points,
)
from anyshape.inputs.sizes_function import FunctionError, SizesFunction

Key = tuple[int, int | None]  # (leaf, axis), or (leaf, None) for the value of an int
Point = Mapping[str, int]


@dataclass(frozen=True)
class Probed:
    """What probing found: an expression for every axis and int, and which leaves are floats that follow the sizes."""

    found: Mapping[Key, Expr]
    floats: frozenset[int]


@dataclass
class _Prober:
    """The function under question and all observations; the one mutable thing here is this memory."""

    function: SizesFunction
    domain: Domain
    values: Mapping[str, Any]
    memory: dict[tuple[int, ...], Mapping[Key, int]] = field(default_factory=dict)
    first: BoundCall | None = None
    floats: set[int] = field(default_factory=set)

    def call(self, point: Point) -> Mapping[Key, int]:
        """All observations at a point; of the inputs themselves only the first are kept, since they may be large."""
        key = tuple(point[name] for name in self.domain.names)
        if key not in self.memory:
            with seeded("probe", key):
                bound = self.function.call({**self.values, **point})
            self.first = self.first or bound
            check_alike(self.first, bound, f"at {_spoken(point)}")
            self.floats |= changed_floats(self.first, bound)
            self.memory[key] = measure(bound)
        return self.memory[key]

    def first_observed(self, points: Iterable[Point]) -> dict[str, int] | None:
        """The first point at which the function gives inputs. A range that the user wrote admits no refusal."""
        refusal: FunctionError | None = None
        for point in points:
            try:
                self.call(point)
            except FunctionError as error:
                if all(dim.declared for dim in self.domain.dims):
                    raise
                refusal = refusal or error
                continue
            return dict(point)
        if refusal is not None:
            raise refusal
        return None

    def has_inputs(self, point: Point) -> bool:
        """Whether the function gives inputs here."""
        try:
            self.call(point)
        except FunctionError:
            return False
        return True

    def ask(self, point: Point, key: Key) -> int | None:
        """The observation, or None where the domain has no such point or the function has no inputs there."""
        if not self.domain.contains(point):
            return None
        try:
            return self.call(point)[key]
        except FunctionError:
            return None

    def observations(self, key: Key) -> list[tuple[Point, int]]:
        names = self.domain.names
        return [(dict(zip(names, sizes, strict=True)), measured[key]) for sizes, measured in self.memory.items()]


def probe(function: SizesFunction, domain: Domain, values: Mapping[str, Any], example: Point) -> Probed:
    """Expressions for all axes. Raises DeclarationError where the function refuses or an axis follows nothing."""
    prober = _Prober(function, domain, values)
    base = prober.first_observed(base_points(domain, dict(example)))
    if base is None:
        base = dict(example)
    keys = list(prober.call(base))
    prober.first_observed(other_points(domain, base))
    if domain.contains(example):
        prober.call(example)
    found: dict[Key, Expr] = {}
    ties = find_ties(domain)
    _move_together(prober, base, ties)
    for start in start_points(domain, base):
        if not prober.has_inputs(start):
            continue
        steps = {name: prober.first_observed(step_points(domain, start, name)) for name in domain.names}
        fits = {key: _fit(prober, key, start, steps) for key in keys if key not in found}
        if ties.follows:
            fits.update({key: _fit_tied(prober, key, start, ties) for key, expr in fits.items() if expr is None})
        found.update({key: expr for key, expr in fits.items() if expr is not None})
        if len(found) == len(keys):
            break
    for key in keys:
        if key not in found:
            raise DeclarationError(_unfit(prober, key))
    return Probed(found, frozenset(prober.floats))


def _move_together(prober: _Prober, base: Point, ties: Ties) -> None:
    """Make more observations where dims are tied: few of them cannot show which dims a product has."""
    for moved in points_around(base) if ties.follows else ():
        point = ties.complete(moved)
        if prober.domain.contains(point):
            prober.has_inputs(point)


def _fit(prober: _Prober, key: Key, base: Point, steps: Mapping[str, Point | None]) -> Expr | None:
    at_base = prober.call(base)[key]
    alone = {name: step for name, step in steps.items() if step is not None and _moved(base, step) == [name]}
    moving = {name: step[name] for name, step in alone.items() if prober.call(step)[key] != at_base}
    return fit_axis(Axis(lambda point: prober.ask(point, key), lambda: prober.observations(key), base, moving))


def _fit_tied(prober: _Prober, key: Key, base: Point, ties: Ties) -> Expr | None:
    """The axis as a function of the free dims alone, where equalities of the domain move the others with them."""
    free = [name for name in base if name not in ties.follows]
    at_base = prober.call(base)[key]
    moving: dict[str, int] = {}
    for name in free:
        step = prober.first_observed(step_points(prober.domain, dict(base), name, ties.complete))
        alone = step is not None and [other for other in _moved(base, step) if other in free] == [name]
        if step is not None and alone and prober.call(step)[key] != at_base:
            moving[name] = step[name]
    start = {name: base[name] for name in free}
    ask = lambda point: prober.ask(ties.complete(point), key)  # noqa: E731
    expr = fit_axis(Axis(ask, lambda: prober.observations(key), start, moving))
    return None if expr is None else ties.name_both(expr)


def _unfit(prober: _Prober, key: Key) -> Finding:
    leaf, axis = key
    path = prober.first.paths[leaf] if prober.first is not None else ""
    return unfit_axis(path, "value" if axis is None else axis, prober.observations(key)[:3])


def _moved(base: Point, step: Point) -> list[str]:
    return [name for name in base if base[name] != step[name]]


def measure(bound: BoundCall) -> dict[Key, int]:
    """Everything in the inputs that can follow a size: the sizes of axes, and the values of ints."""
    found: dict[Key, int] = {}
    for index, value in enumerate(bound.values):
        if isinstance(value, torch.Tensor):
            found.update({(index, axis): int(size) for axis, size in enumerate(value.shape)})
        elif type(value) is int:
            found[index, None] = value
    return found


def changed_floats(first: BoundCall, second: BoundCall) -> set[int]:
    """Which leaves are floats that differ. A string or a bool that differs is a DeclarationError."""
    changed: set[int] = set()
    for index, ((path, old), new) in enumerate(zip(first.leaves, second.values, strict=True)):
        if isinstance(old, torch.Tensor) or type(old) is int or old == new:
            continue
        if type(old) is not float:
            raise DeclarationError(value_varies(path, old, new))
        changed.add(index)
    return changed


def check_alike(first: BoundCall, second: BoundCall, where: str) -> None:
    """Raise DeclarationError unless both have the same leaves, of the same dtypes and ranks."""
    for one, two in zip(describe(first), describe(second), strict=False):
        if one != two:
            raise DeclarationError(structure_changes(one, two, where))
    if len(first.leaves) != len(second.leaves):
        longer, shorter = sorted((describe(first), describe(second)), key=len, reverse=True)
        extra = longer[len(shorter)]
        counts = [counted(len(bound.leaves), "input") for bound in (first, second)]
        one, two = (f"{count} with {extra}" if count.startswith(f"{len(longer)} ") else count for count in counts)
        raise DeclarationError(structure_changes(one, two, where))


def describe(bound: BoundCall) -> list[str]:
    """`x: float32 of 3 axes`, for comparing and for showing."""
    return [
        f"{path}: {dtype_of(value)}"
        + (f" of {counted(value.ndim, 'axis', 'axes')}" if isinstance(value, torch.Tensor) else "")
        for path, value in bound.leaves
    ]


def _spoken(point: Point) -> str:
    return ", ".join(f"{name} = {size}" for name, size in point.items()) or "every call"
