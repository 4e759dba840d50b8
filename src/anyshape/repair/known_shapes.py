"""What is known of each value of a graph while its sizes are followed: its axes, its integers, its constant.

Every axis is an expression of the dims whose value at the file's own sizes is the size in the file. A number in the file can
be any dim, or short expression of one, that has its value at these sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Protocol

import numpy as np
import onnx_ir as ir

from anyshape.domain import Expr, Number, Ref, dims_of, evaluate, simplify, substitute
from anyshape.domain.simplify import polynomial_of

Axes = tuple[Expr, ...]
_MOST_INTS = 256
_LARGEST_MULTIPLE = 64
_FRACTIONS = 5
_SMALLEST = 3  # smaller sizes have the value of every other number


@dataclass(frozen=True, eq=False)
class Known:
    """`ints` has an expression for each element of a small integer tensor; `load` gives the array of a constant."""

    axes: Axes
    ints: Any = None
    load: Callable[[], np.ndarray[Any, Any]] | None = None

    @property
    def is_constant(self) -> bool:
        return self.load is not None

    def array(self) -> np.ndarray[Any, Any]:
        assert self.load is not None
        return self.load()


@dataclass(frozen=True)
class Choice:
    """A node whose numbers have several readings; `taken` is the index of the one that was followed.

    `acts`: the node cuts, fills or picks along the axis that the numbers are about, so that nothing which holds row by row
    confirms a reading. `is_asked`: another reading than the first is asked about, and never what makes the rest fit.
    """

    key: str
    node: ir.Node
    readings: tuple[Axes, ...]
    taken: int
    acts: bool = False
    is_asked: bool = False

    @property
    def dims(self) -> frozenset[str]:
        """The dims on which the readings differ."""
        return frozenset(name for reading in self.readings for name in self.dims_to(reading))

    def dims_to(self, other: Axes) -> frozenset[str]:
        """The dims on which another reading differs from the one that was taken."""
        pairs = zip(self.readings[self.taken], other, strict=True)
        return frozenset(name for pair in pairs if pair[0] != pair[1] for expr in pair for name in dims_of(expr))

    def is_settled(self, other: Axes, sizes: Mapping[str, int]) -> bool:
        """Whether another reading is the same one where these dims have these sizes."""
        fixed: dict[str, Expr] = {name: Number(size) for name, size in sizes.items()}
        pairs = zip(self.readings[self.taken], other, strict=True)
        return all(is_same(substitute(one, fixed), substitute(two, fixed)) for one, two in pairs)


@dataclass(frozen=True)
class IntsEdit:
    """An integer input of a node is replaced by these expressions; -1 and 0 have the meaning that the operator gives them."""

    node: ir.Node
    index: int
    exprs: Axes
    is_scalar: bool = False


@dataclass(frozen=True)
class TableEdit:
    """A constant input of a node is made anew: `axes` are the sizes that follow dims, by axis.

    In a table of positions, `counted` has the axis along which an element of the last axis counts.
    """

    node: ir.Node
    index: int
    array: np.ndarray[Any, Any] = field(compare=False)
    axes: Mapping[int, Expr] = field(default_factory=dict)
    may_broadcast: bool = True
    counted: Mapping[int, int] = field(default_factory=dict)


Edit = IntsEdit | TableEdit


class HasSizes(Protocol):
    """The sizes that were met so far, and their values in the file."""

    seen: dict[Expr, None]

    def at(self, expr: Expr) -> int: ...


class Contradiction(Exception):
    """No reading of this node is consistent; `dims` are those that it fixes, `progress` counts the values before it."""

    def __init__(self, node: ir.Node, why: str, dims: Iterable[str] = ()) -> None:
        super().__init__(why)
        self.node = node
        self.why = why
        self.dims = frozenset(dims)
        self.choices: tuple[Choice, ...] = ()
        self.progress = 0


def constant_known(array: np.ndarray[Any, Any]) -> Known:
    """A constant of which the values are at hand."""
    return Known(numbers(array.shape), _ints_of(array), lambda: array)


def tensor_known(tensor: ir.TensorProtocol) -> Known:
    """A constant of the file, read when it is needed."""
    shape = tuple(int(size) for size in tensor.shape.numpy())
    is_small = prod(shape) <= _MOST_INTS and tensor.dtype in (ir.DataType.INT64, ir.DataType.INT32)
    return Known(numbers(shape), _ints_of(tensor.numpy()) if is_small else None, tensor.numpy)


def _ints_of(array: np.ndarray[Any, Any]) -> Any:
    if array.dtype not in (np.int64, np.int32) or array.size > _MOST_INTS:
        return None
    found = np.empty(array.shape, dtype=object)
    for index, value in np.ndenumerate(array):
        found[index] = Number(int(value))
    return found


def numbers(shape: Sequence[int]) -> Axes:
    return tuple(Number(int(size)) for size in shape)


def product(exprs: Iterable[Expr]) -> Expr:
    """The simplified product; 1 of nothing."""
    found: Expr = Number(1)
    for expr in exprs:
        found = simplify(found * expr)
    return found


def is_open(expr: Expr) -> bool:
    """Whether the size follows a dim."""
    return not isinstance(expr, Number)


def is_same(one: Expr, other: Expr) -> bool:
    """Whether both are equal at all sizes."""
    return one == other or simplify(one - other) == Number(0)


def is_same_on(one: Expr, other: Expr, multiples: Mapping[str, int]) -> bool:
    """Whether both are equal where these dims are multiples of these numbers."""
    scaled: dict[str, Expr] = {name: Ref(name) * number for name, number in multiples.items()}
    return is_same(simplify(substitute(one, scaled)), simplify(substitute(other, scaled)))


def find_multiples(one: Expr, other: Expr, sizes: Mapping[str, int]) -> dict[str, int] | None:
    """The smallest number of which all dims have to be multiples so that both are equal; None where none helps."""
    names = dims_in((one, other))
    for number in range(2, _LARGEST_MULTIPLE + 1):
        multiples = {name: number for name in names if sizes[name] % number == 0}
        if multiples and is_same_on(one, other, multiples):
            return multiples
    return None


def dims_in(exprs: Iterable[Expr]) -> frozenset[str]:
    return frozenset(name for expr in exprs for name in dims_of(expr))


def size_at(expr: Expr, sizes: Mapping[str, int]) -> int:
    return evaluate(expr, sizes)


def axes_text(axes: Iterable[Expr]) -> str:
    """`[batch, 64]`."""
    return f"[{', '.join(map(str, axes))}]"


def node_text(node: ir.Node) -> str:
    """`'conv1' (Conv)`; a node without a name is called after its first output."""
    return f"{name_of(node)!r} ({node.op_type})"


def name_of(node: ir.Node) -> str:
    return node.name or next((str(value.name) for value in node.outputs if value.name), node.op_type)


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


def places_of_group(group: int, rows: int, count: int, width: int) -> list[int]:
    """Where the rows of one group lie on an axis with `width` places for each of `count` rows.

    The last group is filled with copies of its first row.
    """
    first = group * rows
    taken = [row if row < count else first for row in range(first, first + rows)]
    return [row * width + inner for row in taken for inner in range(width)]


def multiple_of(expr: Expr, dim: str, sizes: Mapping[str, int]) -> int | None:
    """c of `c*dim` at these sizes, None for any other expression."""
    terms = polynomial_of(expr).terms
    if len(terms) != 1:
        return None
    ((monomial, factor),) = terms.items()
    others = [atom for atom in monomial if atom != Ref(dim)]
    if len(others) != len(monomial) - 1 or any(dim in dims_of(atom) for atom in others):
        return None
    return factor * prod(evaluate(atom, sizes) for atom in others)
