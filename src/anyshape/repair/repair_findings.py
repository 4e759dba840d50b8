"""Findings about repaired files: sizes that stay fixed, numbers with several readings, numbers that may be sizes.

A number that equals a size, its root, its logarithm or the inverse of one of these may have been computed from it, as in
`x.sum(1) / 10` of ten steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isclose, log, pi, sqrt

import numpy as np
import onnx_ir as ir

from anyshape.domain import Expr, Number
from anyshape.domain.parse import list_quoted
from anyshape.findings import Finding
from anyshape.repair.followed_graph import Follower
from anyshape.repair.known_constants import varying_axes
from anyshape.repair.known_shapes import (
    Axes,
    Choice,
    Contradiction,
    TableEdit,
    axes_text,
    dims_in,
    name_of,
    node_text,
    product,
)

_OPERATORS = (
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Pow",
    "Less",
    "LessOrEqual",
    "Greater",
    "GreaterOrEqual",
    "Equal",
    "Clip",
    "Min",
    "Max",
    "Mod",
)
_EVERYWHERE = (0.0, 0.5, 1.0, 2.0)  # numbers of any formula
_SMALLEST = 3
_SMALLEST_PRODUCT = 32  # smaller products have the value of other numbers by chance
_MOST_SIZES = 40
_MOST_VALUES = 8


@dataclass(frozen=True)
class Suspect:
    """A number at a node, and what it may be."""

    node: ir.Node
    number: float
    formula: str


def find_suspects(follower: Follower, dims: Iterable[str], independent: Iterable[str] = ()) -> list[Suspect]:
    """The numbers that these dims explain as well; for independent ones, those that no fixed size explains."""
    alone = frozenset(independent)
    strict = list(_formulas(follower, _sizes(follower, frozenset(dims) - alone)))
    loose = list(_formulas(follower, _sizes(follower, alone))) if alone else []
    fixed = list(_formulas(follower, _fixed_sizes(follower))) if alone else []
    found = []
    for node, number in (*_numbers(follower), *_of_tables(follower)):
        text = _explained(number, strict)
        if text is None and _explained(number, fixed) is None:
            text = _explained(number, loose)
        if text is not None:
            found.append(Suspect(node, number, text))
    return found


def _explained(number: float, formulas: Iterable[tuple[float, str]]) -> str | None:
    return next((text for value, text in formulas if isclose(abs(number), value, rel_tol=2e-7)), None)


def _fixed_sizes(follower: Follower) -> list[Expr]:
    """Sizes that follow no dim, of all values but the tables that are made at other sizes."""
    tables = {edit.node.inputs[edit.index] for edit in follower.edits if isinstance(edit, TableEdit)}
    known = [each for value, each in follower.known.items() if value not in tables]
    return list(dict.fromkeys(axis for each in known for axis in each.axes if isinstance(axis, Number)))


def _numbers(follower: Follower) -> Iterator[tuple[ir.Node, float]]:
    """Single numbers beside values that are no constants."""
    nodes = dict.fromkeys(node for value in follower.known if (node := value.producer()) is not None)
    for node in nodes:
        if (
            node.op_type not in _OPERATORS
            or follower.known[node.outputs[0]].is_constant
            or _is_arithmetic(follower, node)
        ):
            continue
        for value in node.inputs:
            known = follower.known.get(value) if value is not None else None
            if known is not None and known.is_constant and all(axis == Number(1) for axis in known.axes):
                array = known.array()
                if array.dtype.kind in "iuf" and abs(float(array.reshape(-1)[0])) not in _EVERYWHERE:
                    yield node, float(array.reshape(-1)[0])


def _of_tables(follower: Follower) -> Iterator[tuple[ir.Node, float]]:
    """The values of constants that are made at other sizes: `1/n` everywhere is one."""
    for edit in follower.edits:
        if isinstance(edit, TableEdit) and edit.array.dtype.kind in "iuf" and not varying_axes(edit.array, edit.axes):
            values = np.unique(edit.array)
            yield from (
                (edit.node, float(value)) for value in values[:_MOST_VALUES] if abs(float(value)) not in _EVERYWHERE
            )


def _is_arithmetic(follower: Follower, node: ir.Node) -> bool:
    """Whether the node computes a size."""
    return follower.known[node.outputs[0]].ints is not None


def _formulas(follower: Follower, sizes: Iterable[Expr]) -> Iterator[tuple[float, str]]:
    for expr in sizes:
        size = follower.at(expr)
        if size < _SMALLEST:
            continue
        text = str(expr)
        for value, shown in _forms(size, text):
            if value not in _EVERYWHERE:
                yield float(value), shown
                yield 1.0 / value, f"1/({shown})"


def _forms(size: int, text: str) -> Iterator[tuple[float, str]]:
    """What formulas make of a size; the inverse of each is one, too."""
    yield from ((size, text), (size - 1, f"{text} - 1"), (sqrt(size), f"sqrt({text})"), (log(size), f"log({text})"))
    yield from (
        (size / 2, f"{text}/2"),
        ((size - 1) / 2, f"({text} - 1)/2"),
        (size / (size - 1), f"{text}/({text} - 1)"),
    )
    yield from ((size / pi, f"{text}/pi"), (size / (2 * pi), f"{text}/(2*pi)"))


def _sizes(follower: Follower, dims: frozenset[str]) -> list[Expr]:
    """The sizes that follow these dims, and products of two of them."""
    counts = [expr for expr in follower.counts if expr in follower.seen or follower.at(expr) >= _SMALLEST_PRODUCT]
    own = [expr for expr in (*counts, *follower.seen) if dims_in((expr,)) & dims][:_MOST_SIZES]
    pairs = [product((one, other)) for index, one in enumerate(own[:8]) for other in own[index + 1 : 8]]
    return list(dict.fromkeys((*own, *(each for each in pairs if follower.at(each) >= _SMALLEST_PRODUCT))))


def stays_fixed(found: Contradiction, dims: Sequence[str]) -> Finding:
    """AS501: a node can only have the size that it has in the file."""
    about = [name for name in dims if name in found.dims] or list(dims)
    return Finding(
        code="AS501",
        name="size-stays-fixed",
        what=f"{list_quoted(about) or 'nothing'} cannot be dynamic: node {node_text(found.node)} stands in the way.",
        why=found.why,
        fix="leave the dims that it fixes as numbers, or export the model anew with `anyshape export`.",
    )


def several_readings(choice: Choice, others: Sequence[Axes]) -> Finding:
    """AS502: the numbers of a node are different expressions of the dims, all of which fit."""
    texts = [reading_text(each) for each in (choice.readings[choice.taken], *others)]
    return Finding(
        code="AS502",
        name="several-readings",
        what=f"the numbers of node {node_text(choice.node)} have {len(texts)} readings that fit.",
        why=f"they are {' or '.join(texts)}: the same at the file's own sizes, and not at others.",
        fix=f"--read {f'{choice.key}: {texts[-1]}'!r}      if that is what the model means",
        alternative="declare more axes, also of outputs, or export the static file at sizes that differ from each other.",
    )


def may_be_size(suspect: Suspect) -> Finding:
    """AS502: a number of a formula has the value of a size."""
    name = name_of(suspect.node)
    return Finding(
        code="AS502",
        name="several-readings",
        what=f"the number {suspect.number:g} at node {node_text(suspect.node)} may be a size.",
        why=f"it is {suspect.formula} at the file's own sizes.",
        fix=f"--read {f'{name}: {suspect.number:g}'!r}      if it is that number at all sizes",
        alternative="otherwise export the model anew: a number computed from sizes is not in the file.",
    )


def size_of_one(dim: str, size: int, why: str) -> Finding:
    """AS503: a dim so small in the file that its size has no meaning."""
    return Finding(
        code="AS503",
        name="size-too-small",
        what=f"dim {dim!r} has the size {size} in the file, which other numbers have as well.",
        why=f"the rows along it are not independent, so that nothing confirms a reading: {why}",
        fix=f"export the static file at a larger {dim}, or leave it as {size}.",
    )


def repair_differs(what: str, why: str) -> Finding:
    """AS504: the evidence is against the repair."""
    return Finding(
        code="AS504",
        name="repair-differs",
        what=what,
        why=why,
        fix="export the model anew with `anyshape export`; nothing was written.",
    )


def reading_text(axes: Axes) -> str:
    return str(axes[0]) if len(axes) == 1 else axes_text(axes)


def unknown_reading(name: str, text: str, known: Mapping[str, Sequence[str]]) -> Finding:
    """AS036: --read names no node with several readings, or none of its readings."""
    listed = ", ".join(f"{node!r}: {' or '.join(texts)}" for node, texts in known.items()) or "none"
    return Finding(
        code="AS036",
        name="argument",
        what=f"--read {f'{name}: {text}'!r} is no reading of a node of the file.",
        why=f"nodes with several readings: {listed}.",
    )
