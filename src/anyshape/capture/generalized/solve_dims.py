"""Where each dim can be read at run time: an axis of an input, or a Python int that is one, solved for the dim."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from anyshape.domain import Expr, Number, Ref, dims_of, simplify, substitute
from anyshape.inputs import Declared


@dataclass(frozen=True)
class Reading:
    """dim = (size - rest) // factor, where size is that of the axis, or the number itself where axis is None."""

    position: int
    axis: int | None
    factor: int
    rest: Expr


def read_dims(declared: Declared) -> dict[str, Reading]:
    """How to read each dim; one that no axis can be solved for is missing."""
    readings: dict[str, Reading] = {}
    places = sorted(_places(declared), key=lambda place: len(dims_of(place[2])))
    for _ in declared.domain.names:
        for position, axis, size in places:
            unknown = [name for name in dims_of(size) if name not in readings]
            if len(unknown) == 1:
                solved = _solve(size, unknown[0])
                if solved is not None:
                    readings[unknown[0]] = Reading(position, axis, *solved)
    return readings


def _places(declared: Declared) -> Iterator[tuple[int, int | None, Expr]]:
    for position, leaf in enumerate(declared.open_leaves):
        if leaf.number is not None:
            yield position, None, leaf.number
        for axis, size in enumerate(leaf.axes):
            yield position, axis, size


def _solve(size: Expr, name: str) -> tuple[int, Expr] | None:
    rest = simplify(substitute(size, {name: Number(0)}))
    factor = simplify(substitute(size, {name: Number(1)}) - rest)
    if not isinstance(factor, Number) or factor.value == 0:
        return None
    if simplify(size - (Ref(name) * factor + rest)) != Number(0):
        return None
    return factor.value, rest
