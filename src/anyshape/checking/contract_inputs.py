"""Inputs made from a contract alone: at sizes inside it, and at sizes outside it, which a runtime has to refuse.

    each rule of the graph  ->  shapes that break it and, where they can, keep all others  ->  run: it raises, or it answers

The nodes of the defence rely on an index out of range raising. ONNX says so of Gather; runtimes differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from anyshape.contract.graph_rules import GraphRule, graph_rules
from anyshape.domain import Dim, Domain, Sizes, dims_of, evaluate, holds, negate, smallest_known_point, smallest_point
from anyshape.findings import Finding, Severity
from anyshape.graphs import Place
from anyshape.records.contract import Contract, TensorPromise
from anyshape.runtime import ChildRunner, RunError, RuntimeRejected
from anyshape.runtime.child_messages import Array, dtype_called

Kinds = Mapping[str, int]
"""By input: the number of rows of the smallest table that its integers pick from."""
_MOST_ELEMENTS = 1 << 24
_MOST_RULES = 24
_RUN_LIMIT_S = 20.0


def shapes_at(contract: Contract, sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """The shape of each input at these sizes; an axis that follows no dim is 1."""
    return {
        name: tuple(1 if axis is None else evaluate(axis, sizes) for axis in axes)
        for name, axes in contract.input_axes.items()
    }


def bytes_at(contract: Contract, sizes: Sizes) -> int:
    """How many bytes the inputs have together at these sizes."""
    shapes = shapes_at(contract, sizes)
    return sum(math.prod(shapes[tensor.name]) * _dtype(tensor).itemsize for tensor in contract.inputs)


def make_inputs(
    contract: Contract,
    sizes: Sizes,
    seed: int = 0,
    shapes: Mapping[str, Sequence[int]] | None = None,
    rows: Kinds | None = None,
) -> dict[str, Array]:
    """Random inputs at these sizes; with `shapes`, of these shapes. `rows` limits integers that have no bounds."""
    random = np.random.default_rng(seed)
    own = shapes or shapes_at(contract, sizes)
    return {
        tensor.name: _draw(tensor, own[tensor.name], value_range(contract, tensor, sizes, rows), random)
        if tensor.number is None
        else np.asarray(evaluate(tensor.number, sizes), _dtype(tensor))
        for tensor in contract.inputs
    }


def value_range(
    contract: Contract, tensor: TensorPromise, sizes: Sizes, rows: Kinds | None = None
) -> tuple[float, float]:
    """The lowest and the highest value of an input: its bounds, and for integers without an upper one a small range."""
    bounds = contract.value_bounds.get(tensor.name)
    low, high = (-math.inf, math.inf) if bounds is None else bounds.range_at(sizes, tensor.dtype)
    if _dtype(tensor).kind in "iu":
        low = low if math.isfinite(low) else min(0.0, high)
        high = high if math.isfinite(high) else low + (rows or {}).get(tensor.name, 2) - 1
    return low, high


def _draw(tensor: TensorPromise, shape: Sequence[int], ends: tuple[float, float], random: np.random.Generator) -> Array:
    dtype, (low, high) = _dtype(tensor), ends
    if dtype.kind == "O":
        return np.full(shape, "text", dtype=object)
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    if dtype.kind in "iu":
        return random.integers(int(low), int(high) + 1, shape).astype(dtype)
    values = random.standard_normal(shape)
    if math.isfinite(low) and math.isfinite(high):
        values = low + (high - low) * random.random(shape)
    elif math.isfinite(low) or math.isfinite(high):
        values = low + np.abs(values) if math.isfinite(low) else high - np.abs(values)
    if dtype.kind == "c":
        return (values + 1j * random.standard_normal(shape)).astype(dtype)
    return np.clip(values, low, high).astype(dtype)


def _dtype(tensor: TensorPromise) -> np.dtype[Any]:
    return dtype_called("object" if tensor.dtype == "string" else tensor.dtype)


Shapes = dict[str, tuple[int, ...]]


class AnswersOutside(UserWarning):
    """A runtime answers to sizes outside the contract of a file."""


@dataclass(frozen=True)
class OutsideRun:
    """Shapes that break a rule, and whether the runtime answered to them."""

    rule: str
    shapes: Shapes
    answered: bool


def run_outside(path: Path, contract: Contract, runtime: str) -> list[OutsideRun]:
    """A run for each rule that shapes can break without being too large. A runtime that does not load the file has none."""
    inside = smallest_point(contract.domain)
    broken = shapes_outside(contract)
    if inside is None or not broken:
        return []
    found = []
    with ChildRunner(path, runtime=runtime, time_limit_s=_RUN_LIMIT_S) as runner:
        for rule, shapes in broken:
            try:
                runner.run(make_inputs(contract, inside, shapes=shapes))
                found.append(OutsideRun(rule, shapes, answered=True))
            except RuntimeRejected:
                return []
            except RunError:
                found.append(OutsideRun(rule, shapes, answered=False))
    return found


def diagnose_outside(path: Path, contract: Contract, runtime: str) -> tuple[Finding, ...]:
    """AS557 where the runtime answers outside the contract."""
    return tuple(not_refused(runtime, found) for found in [run_outside(path, contract, runtime)] if any_answered(found))


def any_answered(found: Sequence[OutsideRun]) -> bool:
    return any(run.answered for run in found)


def not_refused(runtime: str, found: Sequence[OutsideRun]) -> Finding:
    """AS557, a warning: the graph's own checks do not hold in this runtime."""
    answered = [run for run in found if run.answered]
    shapes = ", ".join(f"{name}{list(shape)}" for name, shape in answered[0].shapes.items())
    return Finding(
        code="AS557",
        name="sizes-not-refused",
        severity=Severity.WARNING,
        what=f"{runtime} answers outside the contract: {answered[0].rule}.",
        why=f"it answers {shapes}, and {len(answered)} of {len(found)} calls that break a rule; such answers mean nothing.",
        fix="check the sizes before each call: the rules are in the contract (anyshape inspect).",
    )


def shapes_outside(contract: Contract) -> list[tuple[str, Shapes]]:
    """For each rule that the graph checks: small shapes that break it, and as few other rules as can be."""
    places, rules = graph_rules(contract)
    inside = smallest_point(contract.domain)
    if inside is None:
        return []
    base = shapes_at(contract, inside)
    found = []
    numbers = {place.key for place in places if place.is_value}  # which no shape breaks
    for rule in [rule for rule in rules if numbers.isdisjoint(dims_of(rule.condition))][:_MOST_RULES]:
        sizes = _break(rule, rules, places)
        if sizes is None:
            continue
        shapes = {name: list(shape) for name, shape in base.items()}
        for place in places:
            if not place.is_value:
                shapes[place.input][place.axis] = sizes[place.key]
        if all(prod(shape) <= _MOST_ELEMENTS for shape in shapes.values()):
            found.append((_spoken(rule), {name: tuple(shape) for name, shape in shapes.items()}))
    return found


def _break(rule: GraphRule, rules: Sequence[GraphRule], places: Sequence[Place]) -> dict[str, int] | None:
    """Sizes of the axes at which this rule is broken; the others hold, if that is possible."""
    others = [other.condition for other in rules if other is not rule]
    for kept, least in ((others, 1), (others, 0), ([], 0)):  # runtimes skip work on empty tensors
        axes = Domain(tuple(Dim(place.key, least) for place in places))
        point = smallest_known_point(axes, negate(rule.condition), *kept)
        if point is not None and not holds(rule.condition, point):
            return point
    return None


def _spoken(rule: GraphRule) -> str:
    """The rule without the code of the finding."""
    return rule.message.partition(": ")[2]
