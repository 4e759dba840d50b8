"""Sizes inside an ONNX graph: where they can be read, and how conditions on them are computed.

This file: what can be read from a graph: dims from the axes of its inputs, its custom nodes, and the bytes of its tensors.

Equations are solved once for a contract, not once for a call: a dim is found as an expression of axes, `past` as
`mask[1] - ids[1]`. Whether all axes agree with what was read is for the caller to check.

Files, in the order in which data flows:

    arithmetic   expressions and conditions -> ONNX nodes
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from types import MappingProxyType
from typing import TYPE_CHECKING

from anyshape.domain import (
    Compare,
    Condition,
    Domain,
    Expr,
    Number,
    Ref,
    conjuncts,
    dims_of,
    rewritten,
    simplify,
    substitute,
)
from anyshape.domain.polynomial import Polynomial
from anyshape.domain.simplify import polynomial_of

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

VALUE = -1  # in place of an axis
NO_NUMBERS: Mapping[str, Expr] = MappingProxyType({})
_FASTER_IN_TORCH = ("float16", "float32", "float64")
_RUNTIMES_OWN = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")


@dataclass(frozen=True)
class Place:
    """An axis of an input, and the expression of the dims that it must be; `key` names it in readings.

    `axis` is `VALUE` for the value of an input that is a whole number.
    """

    input: str
    axis: int
    expr: Expr
    key: str

    def __str__(self) -> str:
        return repr(self.input) if self.is_value else f"{self.input!r} axis {self.axis}"

    @property
    def is_value(self) -> bool:
        """Whether it is no axis, but the value of an input."""
        return self.axis == VALUE


@dataclass(frozen=True)
class Reading:
    """How the size of a dim is read: `value` is an expression of the keys of places."""

    dim: str
    value: Expr
    places: tuple[Place, ...]

    @property
    def is_direct(self) -> bool:
        """Whether the dim is an axis as it is."""
        return isinstance(self.value, Ref)


@dataclass(frozen=True)
class _Equation:
    """`left`, an expression of dims, equals `right`, an expression of places."""

    left: Expr
    right: Expr


def places_of(
    inputs: Mapping[str, Sequence[Expr | None]], numbers: Mapping[str, Expr] = NO_NUMBERS
) -> tuple[Place, ...]:
    """Every axis of every input whose size depends on dims, in the file's order, then every input that is a whole number.

    `inputs` has the axes of each input, `numbers` what the values of whole numbers are.
    """
    axes = [
        (name, axis, expr)
        for name, sizes in inputs.items()
        for axis, expr in enumerate(sizes)
        if expr is not None and not isinstance(expr, Number)
    ]
    axes += [(name, VALUE, expr) for name, expr in numbers.items()]
    return tuple(Place(name, axis, expr, f"axis_{index}") for index, (name, axis, expr) in enumerate(axes))


def readings_of(domain: Domain, places: Sequence[Place]) -> tuple[Reading, ...]:
    """How to read each dim that the axes, together with the equalities among the relations, determine."""
    equations = [_Equation(place.expr, Ref(place.key)) for place in places]
    equations.sort(key=lambda equation: not isinstance(equation.left, Ref))  # an axis that is a dim comes first
    parts = [part for relation in domain.relations for part in conjuncts(relation)]
    equalities = [part for part in parts if isinstance(part, Compare) and part.op == "=="]
    equations += [_Equation(part.left - part.right, Number(0)) for part in equalities]
    by_key = {place.key: place for place in places}
    found = _solve(equations, domain.names)
    return tuple(Reading(dim, value, tuple(by_key[key] for key in dims_of(value))) for dim, value in found.items())


def on_places(condition: Condition, places: Sequence[Place], readings: Sequence[Reading]) -> Condition:
    """The condition in the keys of places. Where a dim cannot be read, what an axis is made of it can: `min(n, 12)`."""
    known = {reading.dim: reading.value for reading in readings}
    opaque = [place for place in places if any(dim not in known for dim in dims_of(place.expr))]

    def read(expr: Expr) -> Expr | None:
        if isinstance(expr, Ref) and expr.name in known:
            return known[expr.name]
        if isinstance(expr, Number) or all(dim in known for dim in dims_of(expr)):
            return None
        return next((found for place in opaque if (found := _by_place(expr, place)) is not None), None)

    return rewritten(condition, read)


def _by_place(expr: Expr, place: Place) -> Expr | None:
    """The expression as a multiple of the place and a number, if it is one."""
    wanted, given = polynomial_of(expr), polynomial_of(place.expr)
    monomial, factor = given.leading()
    times, rest = divmod(wanted.coefficient(monomial), factor)
    left = (wanted - Polynomial.constant(times) * given).as_constant()
    if not times or rest or left is None:
        return None
    return simplify(times * Ref(place.key) + left)


def _solve(equations: Sequence[_Equation], dims: Sequence[str]) -> dict[str, Expr]:
    """Expressions of places for the dims, as many as can be found."""
    known: dict[str, Expr] = {}
    while len(known) < len(dims):
        step = dict(_eliminate(equations, known)) or dict(_divide(equations, known))
        if not step:
            break
        known.update(step)
    return known


def _eliminate(equations: Sequence[_Equation], known: dict[str, Expr]) -> Iterator[tuple[str, Expr]]:
    """What follows from the equations that are linear in the unknown dims, with numbers as coefficients."""
    linear = [(row, rest) for row, rest in (_linear(equation, known) for equation in equations) if row]
    unknowns = list(dict.fromkeys(name for row, _ in linear for name in row))
    width = len(unknowns)
    own = [[Fraction(int(one == two)) for two in range(len(linear))] for one in range(len(linear))]
    rows = [[*(Fraction(row.get(name, 0)) for name in unknowns), *own[index]] for index, (row, _) in enumerate(linear)]
    for row in _reduced(rows, width):
        named = [name for name, factor in zip(unknowns, row, strict=False) if factor]
        if len(named) == 1:
            yield named[0], _combine(row[width:], [rest for _, rest in linear])


def _reduced(rows: list[list[Fraction]], width: int) -> list[list[Fraction]]:
    """The rows brought to their simplest form over the first `width` columns (Gauss and Jordan); earlier rows first."""
    done = 0
    for column in range(width):
        pivot = next((index for index in range(done, len(rows)) if rows[index][column]), None)
        if pivot is None:
            continue
        chosen = rows.pop(pivot)
        chosen = [value / chosen[column] for value in chosen]
        rows = [[mine - row[column] * other for mine, other in zip(row, chosen, strict=True)] for row in rows]
        rows.insert(done, chosen)
        done += 1
    return rows[:done]


def _linear(equation: _Equation, known: dict[str, Expr]) -> tuple[dict[str, int], Expr]:
    """Coefficients of the unknown dims, and what they add up to; no coefficients if the equation is not linear."""
    row: dict[str, int] = {}
    rest: dict[tuple[Expr, ...], int] = {}
    for monomial, factor in polynomial_of(equation.left).terms.items():
        if all(name in known for atom in monomial for name in dims_of(atom)):
            rest[monomial] = factor
        elif len(monomial) == 1 and isinstance(monomial[0], Ref):
            row[monomial[0].name] = factor
        else:
            return {}, Number(0)
    return row, simplify(equation.right - substitute(Polynomial(rest).to_expr(), known))


def _combine(weights: Sequence[Fraction], terms: Sequence[Expr]) -> Expr:
    """The weighted sum; where weights are fractions it is divided at the end, without a rest if the axes agree."""
    common = lcm(*(weight.denominator for weight in weights))
    summed: Expr = Number(0)
    for weight, term in zip(weights, terms, strict=True):
        summed = summed + int(weight * common) * term
    return simplify(summed) if common == 1 else simplify(summed) // common


def _divide(equations: Sequence[_Equation], known: dict[str, Expr]) -> Iterator[tuple[str, Expr]]:
    """One dim from `n*m + k` where all the others are known: `(axis - k)//n`."""
    for equation in equations:
        unknown = [name for name in dims_of(equation.left) if name not in known]
        if len(unknown) != 1:
            continue
        split = _split_by(polynomial_of(equation.left), Ref(unknown[0]))
        if split is not None:
            factor, rest = (substitute(part.to_expr(), known) for part in split)
            yield unknown[0], simplify(equation.right - rest) // factor
            return


def _split_by(poly: Polynomial, dim: Ref) -> tuple[Polynomial, Polynomial] | None:
    """factor and rest with `poly == factor*dim + rest`, neither of which mentions the dim."""
    factor: dict[tuple[Expr, ...], int] = {}
    rest: dict[tuple[Expr, ...], int] = {}
    for monomial, number in poly.terms.items():
        others = list(monomial)
        target = rest
        if dim in others:
            others.remove(dim)
            target = factor
        if any(dim.name in dims_of(atom) for atom in others):
            return None
        target[tuple(others)] = number
    return (Polynomial(factor), Polynomial(rest)) if factor else None


def find_needs(model: ir.Model) -> tuple[str, ...]:
    """`mylib::Scale` for each, in the order of their names; functions that the file itself has are not among them."""
    import onnx_ir as ir

    own = {(function.domain, function.name) for function in model.functions.values()}
    graphs: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    nodes = (node for graph in graphs for node in ir.traversal.RecursiveGraphIterator(graph))
    needed = {
        f"{node.domain}::{node.op_type}"
        for node in nodes
        if node.domain not in _RUNTIMES_OWN and (node.domain, node.op_type) not in own
    }
    return tuple(sorted(needed))


def find_needs_of_proto(model: onnx.ModelProto) -> tuple[str, ...]:
    """`find_needs` of a ModelProto, which onnx-ir may refuse: torch writes outputs that are named like inputs."""
    own = {(function.domain, function.name) for function in model.functions}
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    needed = set()
    while nodes:
        node = nodes.pop()
        nodes += [
            inner for attribute in node.attribute for graph in (attribute.g, *attribute.graphs) for inner in graph.node
        ]
        if node.domain not in _RUNTIMES_OWN and (node.domain, node.op_type) not in own:
            needed.add(f"{node.domain}::{node.op_type}")
    return tuple(sorted(needed))


def bytes_of(tensor: ir.TensorProtocol) -> bytes | memoryview:
    """Little-endian, row after row: a view of the tensor's own memory if it is contiguous. Not for strings.

    Elements of less than a byte are packed, which takes a copy.
    """
    from anyshape.runtime.child_messages import raw  # loads numpy, which reading a contract does without

    if tensor.dtype.bitwidth < 8 or sys.byteorder == "big":
        return tensor.tobytes()
    array = tensor.numpy()
    is_transposed = array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous
    if is_transposed and array.flags.writeable and array.dtype in _FASTER_IN_TORCH and "torch" in sys.modules:
        import torch

        array = torch.from_numpy(array).contiguous().numpy()  # half of numpy's time
    return raw(array).data
