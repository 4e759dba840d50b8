"""The contract as rules on the axes of inputs, each with the message that it is broken with.

Dims do not exist in a graph, so every rule mentions axes only: `past + seq <= 4096` is a rule on two axes of two
inputs. Where no axis gives the value of a dim, `anyshape.load` checks the rules on it; the graph checks the range of its axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from anyshape.domain import All, Compare, Condition, Dim, Expr, Number, Ref, dims_of, simplify, substitute
from anyshape.graphs.size_places import Place, Reading, places_of, readings_of
from anyshape.records.contract import Contract


@dataclass(frozen=True)
class GraphRule:
    """A condition on axes, which are named by the keys of their places; `message` is its requirement in words."""

    message: str
    condition: Condition


def graph_rules(contract: Contract) -> tuple[tuple[Place, ...], tuple[GraphRule, ...]]:
    """The places that rules mention, and all rules, in the order in which they are best tested."""
    places = places_of(contract.input_axes)
    readings = {reading.dim: reading for reading in readings_of(contract.domain, places)}
    axes = {dim: reading.value for dim, reading in readings.items()}
    rules = [
        *_agreement(places, readings, axes),
        *_open_places(contract, places, readings),
        *(rule for dim in contract.domain.dims if dim.name in readings for rule in _dim(dim, readings[dim.name])),
        *_relations(contract, axes),
    ]
    return places, tuple(rules)


def _agreement(
    places: tuple[Place, ...], readings: Mapping[str, Reading], axes: Mapping[str, Expr]
) -> Iterator[GraphRule]:
    """Every axis is what its dims give."""
    for place in places:
        if any(dim not in readings for dim in dims_of(place.expr)):
            continue
        expected, actual = substitute(place.expr, axes), Ref(place.key)
        if simplify(expected) == actual:
            continue  # the dim is read from this very axis
        yield GraphRule(_agreement_message(place, readings), Compare("==", actual, expected))


def _agreement_message(place: Place, readings: Mapping[str, Reading]) -> str:
    reading = readings[place.expr.name] if isinstance(place.expr, Ref) else None
    if reading is None or not reading.is_direct:
        return f"AS404: {place} must be {place.expr}"
    other = reading.places[0]
    if other.input == place.input:
        return f"AS401: axis {place.axis} of {place.input!r} must equal axis {other.axis} ({reading.dim})"
    return f"AS401: {reading.dim} of {place.input!r} must equal {reading.dim} of {other.input!r}"


def _open_places(contract: Contract, places: tuple[Place, ...], readings: Mapping[str, Reading]) -> Iterator[GraphRule]:
    """An axis whose dims cannot be read still has a smallest and a largest size."""
    for place in places:
        if all(dim in readings for dim in dims_of(place.expr)):
            continue
        from anyshape.domain import range_of

        found = range_of(contract.domain, place.expr)
        low, high = (end if isinstance(end, int) else None for end in (found or (None, None)))
        limits = _limits(Ref(place.key), max(low or 0, 0), high)
        if limits is not None:
            yield GraphRule(f"AS402: {place} ({place.expr}) must be {_spoken_range(low or 0, high)}", limits)


def _dim(dim: Dim, reading: Reading) -> Iterator[GraphRule]:
    spoken = _spoken_dim(reading)
    # No axis is shorter than 0, but what is computed from axes can be.
    limits = _limits(reading.value, dim.min, dim.max, is_axis=reading.is_direct)
    if limits is not None:
        yield GraphRule(f"AS402: {spoken} must be {_spoken_range(dim.min, dim.max)}", limits)
    if dim.multiple != 1:
        rest = reading.value % dim.multiple
        yield GraphRule(f"AS403: {spoken} must be a multiple of {dim.multiple}", Compare("==", rest, Number(0)))


def _limits(value: Expr, low: int, high: int | None, is_axis: bool = True) -> Condition | None:
    ends: list[Condition] = []
    if low > 0 or not is_axis:
        ends.append(Compare(">=", value, Number(low)))
    if high is not None:
        ends.append(Compare("<=", value, Number(high)))
    return None if not ends else ends[0] if len(ends) == 1 else All(tuple(ends))


def _spoken_dim(reading: Reading) -> str:
    if reading.is_direct:
        return f"{reading.dim} of {reading.places[0].input!r}"
    return f"{reading.dim} (from {' and '.join(map(str, reading.places))})"


def _spoken_range(low: int, high: int | None) -> str:
    if high is None:
        return f"at least {low}"
    return f"at most {high}" if low == 0 else f"{low} to {high}" if low != high else str(low)


def _relations(contract: Contract, axes: Mapping[str, Expr]) -> Iterator[GraphRule]:
    for relation in contract.domain.relations:
        if all(dim in axes for dim in dims_of(relation)):
            yield GraphRule(f"AS405: the sizes must keep {relation}", substitute(relation, axes))
