"""What else a number of the file can be: the dim, or a short expression of it, that has the same value at its own sizes."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from anyshape.domain import Expr, Number, Ref, simplify
from anyshape.repair.known_shapes import Contradiction, HasSizes, dims_in, is_open

_FRACTIONS = 5
_SMALLEST = 3  # smaller sizes have the value of every other number


def read_number(sizes: HasSizes, number: int, axis: Expr) -> list[Expr]:
    """The readings of a number that is a position or a length on an axis: itself first."""
    found: dict[Expr, None] = {Number(number): None}
    others = sizes_like(sizes, number) if number >= _SMALLEST else []
    for candidate in (*_near(number, axis, sizes.at(axis)), *others):
        value = simplify(candidate)
        if number > 0 and is_open(value) and sizes.at(value) == number:
            found.setdefault(value)
    return list(found)


def check_counting(sizes: HasSizes, node: ir.Node, start: int, step: int, axis: Expr) -> None:
    """Raise Contradiction for a counted table whose start or step may be a size itself."""
    for number in (abs(start), abs(step)):
        if number > 1 and len(read_number(sizes, number, axis)) > 1:
            why = f"it takes a table that counts from {start} in steps of {step}, which may be sizes."
            raise Contradiction(node, why, dims_in((axis,)))


def sizes_like(sizes: HasSizes, number: int) -> list[Expr]:
    """The sizes met so far that have this value in the file: none that are 1, and of those that are 2 only dims."""
    if number < 2:
        return []
    found = [expr for expr in sizes.seen if sizes.at(expr) == number]
    return found if number >= _SMALLEST else [expr for expr in found if isinstance(expr, Ref)]


def _near(number: int, axis: Expr, size: int) -> Iterable[Expr]:
    """Short expressions of a size, as code has them for positions: so far from its end, simple fractions of it."""
    if not is_open(axis):
        return ()
    from_end = [axis - (size - number)] if size - number <= number else []
    shares = (
        [(axis * part) // whole for whole in range(2, _FRACTIONS + 1) for part in range(1, whole)] if number > 1 else []
    )
    return (axis, *from_end, axis - 1, axis - 2, axis // 2, (axis + 1) // 2, *shares)
