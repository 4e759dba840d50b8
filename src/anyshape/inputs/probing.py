"""A function of sizes, asked at several sizes: which axis of which input is which expression of its parameters.

An answer is an axis of a tensor or the value of a Python int. The second probe shares no size with the first, and an
expression must give both, the example's, and every other answer that was ever had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from anyshape.domain import Domain, Expr
from anyshape.findings import DeclarationError
from anyshape.inputs.axis_messages import unfit_axis
from anyshape.inputs.call_messages import structure_changes
from anyshape.inputs.calls import BoundCall
from anyshape.inputs.declared import dtype_of
from anyshape.inputs.fit import Axis, fit_axis
from anyshape.inputs.probe_sizes import base_points, other_points, step_points
from anyshape.inputs.random_state import seeded
from anyshape.inputs.sizes_function import FunctionError, SizesFunction

Key = tuple[int, int | None]  # (leaf, axis), or (leaf, None) for the value of an int
Point = Mapping[str, int]


@dataclass(frozen=True)
class Probed:
    """What probing found: the build of the inputs at the first probe, and an expression for every axis and int."""

    bound: BoundCall
    found: Mapping[Key, Expr]


@dataclass
class _Prober:
    """The function under question and every answer that it gave; the one mutable thing here is this memory."""

    function: SizesFunction
    domain: Domain
    values: Mapping[str, Any]
    memory: dict[tuple[int, ...], Mapping[Key, int]] = field(default_factory=dict)
    first: BoundCall | None = None

    def call(self, point: Point) -> Mapping[Key, int]:
        """All answers at a point; of the inputs themselves only the first are kept, since they may be large."""
        key = tuple(point[name] for name in self.domain.names)
        if key not in self.memory:
            with seeded("probe", key):
                bound = self.function.call({**self.values, **point})
            self.first = self.first or bound
            check_alike(self.first, bound, f"at {_spoken(point)}")
            self.memory[key] = measure(bound)
        return self.memory[key]

    def first_answer(self, points: Iterable[Point]) -> dict[str, int] | None:
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

    def ask(self, point: Point, key: Key) -> int | None:
        """The answer, or None where the domain has no such point or the function has no inputs there."""
        if not self.domain.contains(point):
            return None
        try:
            return self.call(point)[key]
        except FunctionError:
            return None

    def answers(self, key: Key) -> list[tuple[Point, int]]:
        names = self.domain.names
        return [(dict(zip(names, sizes, strict=True)), measured[key]) for sizes, measured in self.memory.items()]


def probe(function: SizesFunction, domain: Domain, values: Mapping[str, Any], example: Point) -> Probed:
    """Expressions for all axes. Raises DeclarationError where the function refuses or an axis follows nothing."""
    prober = _Prober(function, domain, values)
    base = prober.first_answer(base_points(domain, dict(example)))
    if base is None:
        base = dict(example)
    keys = list(prober.call(base))
    prober.first_answer(other_points(domain, base))
    if domain.contains(example):
        prober.call(example)
    steps = {name: prober.first_answer(step_points(domain, base, name)) for name in domain.names}
    found = {key: _fit(prober, key, base, steps) for key in keys}
    assert prober.first is not None  # call has set it
    return Probed(prober.first, found)


def _fit(prober: _Prober, key: Key, base: Point, steps: Mapping[str, Point | None]) -> Expr:
    at_base = prober.call(base)[key]
    alone = {name: step for name, step in steps.items() if step is not None and _moved(base, step) == [name]}
    moving = {name: step[name] for name, step in alone.items() if prober.call(step)[key] != at_base}
    expr = fit_axis(Axis(lambda point: prober.ask(point, key), lambda: prober.answers(key), base, moving))
    if expr is not None:
        return expr
    leaf, number = key
    path = prober.first.paths[leaf] if prober.first is not None else ""
    raise DeclarationError(unfit_axis(path, number if number is not None else "value", prober.answers(key)[:3]))


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


def check_alike(first: BoundCall, second: BoundCall, where: str) -> None:
    """Raise DeclarationError unless both have the same leaves, of the same dtypes and ranks."""
    for one, two in zip(describe(first), describe(second), strict=False):
        if one != two:
            raise DeclarationError(structure_changes(one, two, where))
    if len(first.leaves) != len(second.leaves):
        longer, shorter = sorted((describe(first), describe(second)), key=len, reverse=True)
        extra = longer[len(shorter)]
        counts = (f"{len(bound.leaves)} inputs" for bound in (first, second))
        one, two = (f"{count}, {extra} among them" if count == f"{len(longer)} inputs" else count for count in counts)
        raise DeclarationError(structure_changes(one, two, where))


def describe(bound: BoundCall) -> list[str]:
    """`x: float32 with 3 axes`, for comparing and for showing."""
    return [
        f"{path}: {dtype_of(value)}{f' with {value.ndim} axes' if isinstance(value, torch.Tensor) else ''}"
        for path, value in bound.leaves
    ]


def _spoken(point: Point) -> str:
    return ", ".join(f"{name} = {size}" for name, size in point.items()) or "every call"
