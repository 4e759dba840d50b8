"""Candidates for rules under which a module answers: the guards of a symbolic capture, and the tables that its program reads.

A guard holds wherever the captured program does, which may be a part of the sizes at which the module answers: a candidate
becomes a rule only if it holds at every answered point and predicts further ones.

    4*b*(n//3) == 8*b*(n//6)                            ->  n//3 == 2*(n//6), since b >= 1
    embedding(table of 36 rows, arange((h//4)*(w//4)))  ->  (h//4)*(w//4) <= 36
    topk(scores of (h//8)*(w//8) positions, 30)         ->  (h//8)*(w//8) >= 30
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from anyshape.capture.regions import find_raising_regions
from anyshape.capture.symbolic import Stopped, Traces, read_capture, trace_once
from anyshape.capture.sympy_terms import expression_of
from anyshape.domain import Compare, Condition, Domain, Expr, Number, Op, Ref, conjuncts, holds, negate, simplify
from anyshape.domain.polynomial import Polynomial
from anyshape.domain.simplify import polynomial_of
from anyshape.inputs import Declared
from anyshape.intercept.quick_tracing import term_of
from anyshape.records.captured import Captured, Region

if TYPE_CHECKING:
    import torch
    from torch.fx import Node

_MOST_REFUSED = 6
_SAME_VALUES = ("unsqueeze", "squeeze", "expand", "view", "reshape", "repeat", "flatten", "contiguous", "clone", "to")
_CHOOSING = ("topk", "kthvalue")


@dataclass
class CapturedOnce:
    """What captures have shown under one declaration: rules that are learned again with one more refusal need only that one."""

    conditions: tuple[Condition, ...] | None = None  # of the program at the example's sizes; None: not captured yet
    holds_where: tuple[Condition, ...] | None = None  # all guards of that program; None where one is not known
    traces: Traces = field(default_factory=dict)


def find_candidates(
    module: torch.nn.Module, declared: Declared, known: CapturedOnce, refused: Sequence[Mapping[str, int]]
) -> Iterator[tuple[Condition, ...]]:
    """First the conditions under which the module's program holds; then these again, with conditions that captures at
    refused sizes show: where one of those fails, the module raises.

    Nothing where torch.export cannot follow the module. What `known` has is not captured again, and what is captured is added
    to it. Captures at refused sizes are made only if the second are taken, and none where the guards of the first program
    hold: torch.export would follow the same lines, and meet no error.
    """
    example = declared.example_sizes
    traced = trace_once(module, declared, example, known.traces)
    if isinstance(traced, Stopped):
        return
    if (
        known.conditions is None
    ):  # before the program is decomposed: an operator that reads a table is found by its name
        captured = read_capture(traced, traced.program, declared, example)
        known.conditions = _conditions_of_program(captured, declared.domain)
        known.holds_where = _all_guards(captured)
    yield known.conditions
    others = [sizes for sizes in refused if not _runs_at(known.holds_where, sizes)]
    parts = find_raising_regions(module, declared, others[:_MOST_REFUSED], known.traces)
    outside = [_shortened(rule, declared.domain) for part in parts for rule in conjuncts(negate(part.condition))]
    yield (*outside, *known.conditions)


def _all_guards(captured: Captured) -> tuple[Condition, ...] | None:
    guards = [guard.condition for guard in captured.guards if guard.status != "proved"]
    return tuple(guards) if None not in guards else None  # type: ignore[arg-type]


def _runs_at(conditions: tuple[Condition, ...] | None, sizes: Mapping[str, int]) -> bool:
    """Whether a capture at these sizes would give the program again that has these guards: the module raises by values."""
    return conditions is not None and all(holds(condition, sizes) for condition in conditions)


def _conditions_of_program(captured: Captured, domain: Domain) -> tuple[Condition, ...]:
    limits = [
        limit for region in captured.regions for limit in (*find_table_limits(region), *_find_choice_limits(region))
    ]
    conditions = [*(guard.condition for guard in captured.guards if guard.status != "proved"), *limits]
    parts = [part for condition in conditions if condition is not None for part in conjuncts(condition)]
    return tuple(dict.fromkeys(_shortened(part, domain) for part in parts))


def _shortened(condition: Condition, domain: Domain) -> Condition:
    """Numbers on one side, and both sides divided by what they share, where that is positive at all sizes."""
    if not isinstance(condition, Compare):
        return condition
    left, right = polynomial_of(condition.left), polynomial_of(condition.right)
    number = Polynomial.constant(left.coefficient(()))
    left, right = left - number, right - number
    factor, atoms = left.common_factor(right) if left.terms and right.terms else (1, ())
    shared = tuple(_positive(atoms, domain))
    short = Compare(condition.op, left.without(shared, factor).to_expr(), right.without(shared, factor).to_expr())
    return _without_division(short)


def _without_division(condition: Compare) -> Compare:
    """`h//4 >= 1` as `h >= 4`, `h//4 <= 1` as `h <= 7`."""
    left, right = condition.left, condition.right
    if not (isinstance(left, Op) and left.symbol == "//" and isinstance(right, Number)):
        return condition
    whole, part = left.args
    if not isinstance(part, Number) or part.value < 1 or condition.op not in (">=", "<="):
        return condition
    beyond = part.value - 1 if condition.op == "<=" else 0
    return Compare(condition.op, whole, Number(right.value * part.value + beyond))


def _positive(atoms: tuple[object, ...], domain: Domain) -> Iterator[Ref]:
    for atom in atoms:
        if isinstance(atom, Ref) and domain.dim(atom.name).smallest >= 1:
            yield atom


def find_table_limits(region: Region) -> Iterator[Condition]:
    """What keeps each counted position inside the table from which it takes a row."""
    counts: dict[Node, Expr] = {}  # of tensors with positions: one more than their largest
    for node in region.program.graph.nodes:
        kind = str(getattr(node.target, "_opname", ""))
        count = _count(node, kind, counts, region)
        if count is not None:
            counts[node] = count
        for table, axis, positions in _reads(node, kind):
            rows = _size(table.meta["val"].shape[axis], region)
            if positions in counts and rows is not None:
                yield Compare("<=", counts[positions], rows)


def _find_choice_limits(region: Region) -> Iterator[Condition]:
    """What keeps the number of chosen positions at most that of all positions on the axis."""
    for node in region.program.graph.nodes:
        if str(getattr(node.target, "_opname", "")) in _CHOOSING:
            values, count, *axis = node.args
            chosen, length = _number(count, region), _size(values.meta["val"].shape[axis[0] if axis else -1], region)
            if chosen is not None and length is not None:
                yield Compare(">=", length, chosen)


def _count(node: Node, kind: str, counts: dict[Node, Expr], region: Region) -> Expr | None:
    if kind == "arange" and len(node.args) <= 2:
        return _number(node.args[-1], region)
    if kind in _SAME_VALUES:
        return counts.get(node.args[0])  # type: ignore[arg-type]
    if kind == "add":
        for one, other in (node.args[:2], node.args[1::-1]):
            shift = _number(other, region)
            if one in counts and shift is not None:
                return simplify(counts[one] + shift)  # type: ignore[index]
    return None


def _reads(node: Node, kind: str) -> Iterator[tuple[Any, int, Any]]:
    """The tables that an operator reads: each with the axis, and the positions on it."""
    if kind == "embedding":
        yield node.args[0], 0, node.args[1]
    if kind == "index_select":
        table, axis, positions = node.args
        yield table, cast("int", axis), positions
    if kind == "index":
        places = enumerate(cast("Sequence[Any]", node.args[1]))
        yield from ((node.args[0], axis, each) for axis, each in places if each is not None)


def _number(value: Any, region: Region) -> Expr | None:
    """A whole number of the program in the user's dims; None for tensors and other values."""
    return _size(value.meta.get("val") if hasattr(value, "meta") else value, region)


def _size(value: Any, region: Region) -> Expr | None:
    import torch

    if isinstance(value, torch.SymInt):
        return expression_of(term_of(value), region.symbols)
    return Number(value) if type(value) is int else None
