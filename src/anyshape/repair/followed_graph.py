"""Follow declared dims through a graph: node after node, by one rule for each operator.

Nothing is changed here. What has to change is noted as edits, where several readings of a number remain as choices; a
number that cannot follow a dim is a Contradiction that names its node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import lcm
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.domain import Expr, Number, simplify
from anyshape.repair.known_constants import find_constant, find_counting, find_sources, is_regular, varying_axes
from anyshape.repair.known_shapes import (
    Axes,
    Choice,
    Contradiction,
    Edit,
    IntsEdit,
    Known,
    TableEdit,
    axes_text,
    check_counting,
    dims_in,
    find_multiples,
    is_open,
    is_same,
    name_of,
    read_number,
    size_at,
    tensor_known,
)

_ACTING = ("Slice", "Pad", "Resize", "Upsample", "TopK", "Gather", "OneHot", "Split")
_PLAIN = ("FastGelu", "Gelu", "QuickGelu")  # operators of onnxruntime that have the shape of their input

Rule = Callable[["Follower", ir.Node], Sequence[Known]]


class Follower:
    """One pass over a graph. `decisions` has the reading to take of a choice, by its key; the first without one.

    With `may_assume`, sizes that are equal where dims are multiples of a number count as equal, and `multiples` has the
    numbers: elsewhere the node raises in the file as it does in the model.
    """

    def __init__(
        self,
        rules: Mapping[str, Rule],
        sizes: Mapping[str, int],
        decisions: Mapping[str, int],
        kept: dict[ir.Value, Known] | None = None,
        *,
        may_assume: bool = False,
    ) -> None:
        self.sizes = sizes
        self.edits: list[Edit] = []
        self.choices: list[Choice] = []
        self.known: dict[ir.Value, Known] = {}
        self.seen: dict[Expr, None] = {}
        self.counts: dict[Expr, None] = {}  # how many elements are reduced to one
        self._rules = rules
        self.multiples: dict[str, int] = {}
        self._decisions = decisions
        self._may_assume = may_assume
        self._pushed: dict[ir.Value, set[tuple[int, int]]] = {}
        self._kept = {} if kept is None else kept

    def follow(self, graph: ir.Graph, inputs: Mapping[str, Axes]) -> dict[str, Axes]:
        """The axes of the graph's outputs, by name. Raises Contradiction."""
        for value in graph.inputs:
            if value.name in inputs:
                self.note(value, Known(inputs[str(value.name)]))
        try:
            self.walk(graph)
            self._check_pushed()
            self._check_constant_outputs(graph)
        except Contradiction as found:
            found.choices, found.progress = tuple(self.choices), len(self.known)
            raise
        return {str(value.name): self.of(value).axes for value in graph.outputs}

    def walk(self, graph: ir.Graph) -> None:
        """Every node of the graph, in order; its inputs are known."""
        for value in graph.initializers.values():
            if value.const_value is not None and value not in self.known:
                self.known[value] = tensor_known(value.const_value)
        for node in graph:
            self._visit(node)

    def _visit(self, node: ir.Node) -> None:
        constant = find_constant(node, self.known, self._kept)
        if constant is not None:
            found: Sequence[Known] = constant
        else:
            is_plain = node.domain in ("", "ai.onnx") or (node.domain == "com.microsoft" and node.op_type in _PLAIN)
            rule = self._rules.get(node.op_type) if is_plain else None
            if rule is None:
                name = f"{node.domain or 'ai.onnx'}::{node.op_type}"
                raise Contradiction(node, f"how sizes go through the operator {name} is not known.")
            found = rule(self, node)
        for value, known in zip(node.outputs, found, strict=False):
            self.note(value, known)

    def note(self, value: ir.Value, known: Known) -> None:
        self.known[value] = known
        for axis in known.axes:
            if is_open(axis):
                self.seen.setdefault(axis)

    def of(self, value: ir.Value | None) -> Known:
        assert value is not None
        return self.known[value]

    def input(self, node: ir.Node, index: int) -> Known | None:
        """What is known of an input, None where the node has none there."""
        if index >= len(node.inputs) or node.inputs[index] is None:
            return None
        value = node.inputs[index]
        assert value is not None
        if value not in self.known:
            raise Contradiction(node, f"nothing is known of its input {value.name!r}.")
        return self.known[value]

    def axes(self, node: ir.Node, index: int = 0) -> Axes:
        known = self.input(node, index)
        assert known is not None
        return known.axes

    def ints(self, node: ir.Node, index: int, name: str = "") -> list[Expr] | None:
        """The integers of an input, or of an attribute in older opsets; None where there are none at all."""
        known = self.input(node, index)
        if known is None:
            attribute = node.attributes.get(name) if name else None
            return None if attribute is None else [Number(int(each)) for each in attribute.as_ints()]
        if known.ints is None:
            raise Contradiction(node, "it takes sizes that are computed from values.")
        return list(np.asarray(known.ints, dtype=object).reshape(-1))

    def numbers(self, node: ir.Node, index: int, name: str = "") -> list[int] | None:
        """`ints`, where each has to be a number (axes, steps)."""
        found = self.ints(node, index, name)
        if found is None:
            return None
        if any(is_open(each) for each in found):
            raise Contradiction(node, "it takes axes that depend on sizes.", dims_in(found))
        return [each.value for each in found if isinstance(each, Number)]

    def at(self, expr: Expr) -> int:
        """The value at the file's own sizes."""
        return size_at(expr, self.sizes)

    def choose(
        self, node: ir.Node, readings: Sequence[Axes], slot: str = "", *, acts: bool = False, is_asked: bool = False
    ) -> Axes:
        """One of the readings; where there are several, a choice is noted. `acts`, `is_asked`: as in `Choice`."""
        distinct = tuple(dict.fromkeys(tuple(simplify(each) for each in reading) for reading in readings))
        if len(distinct) == 1:
            return distinct[0]
        key = f"{name_of(node)}{slot}"
        taken = self._decisions.get(key, 0)
        self.choices.append(Choice(key, node, distinct, taken, acts or node.op_type in _ACTING, is_asked))
        return distinct[taken]

    def require_same(self, node: ir.Node, one: Expr, other: Expr, what: str) -> Expr:
        """The size that both are. Raises Contradiction where they differ at other sizes."""
        if is_same(one, other):
            return one if is_open(one) else other
        multiples = (
            find_multiples(one, other, self.sizes) if self._may_assume and is_open(one) and is_open(other) else None
        )
        if multiples is not None:
            for name, number in multiples.items():
                self.multiples[name] = lcm(self.multiples.get(name, 1), number)
            return one
        why = f"{what}: {one} has to be {other}, which holds at the file's own sizes alone."
        raise Contradiction(node, why, dims_in((one, other)))

    def edit_ints(self, node: ir.Node, index: int, exprs: Sequence[Expr], *, is_scalar: bool = False) -> None:
        """Replace an integer input, unless it is right as it is."""
        known = self.input(node, index)
        if known is not None and known.ints is not None:
            before = list(np.asarray(known.ints, dtype=object).reshape(-1))
            if len(before) == len(exprs) and all(map(is_same, before, exprs)):
                return
        if known is None:
            raise Contradiction(
                node, f"its sizes are an attribute, which cannot be {axes_text(exprs)}.", dims_in(exprs)
            )
        self.edits.append(IntsEdit(node, index, tuple(exprs), is_scalar))

    def edit_table(self, node: ir.Node, index: int, axes: Mapping[int, Expr], *, may_broadcast: bool) -> None:
        """Let a constant follow sizes. Raises Contradiction where it has no pattern that goes on."""
        known = self.input(node, index)
        assert known is not None
        name = getattr(node.inputs[index], "name", "")
        if known.is_constant:
            array = known.array()
            if is_regular(array, axes):
                self._note_table(TableEdit(node, index, array, dict(axes), may_broadcast))
                return
            if self._push(node, index, axes):
                return
        place = ", ".join(f"axis {axis} has {self.at(expr)} and has to follow {expr}" for axis, expr in axes.items())
        why = f"the table {name!r} it takes ends with the file's own sizes: {place}."
        raise Contradiction(node, why, dims_in(axes.values()))

    def _note_table(self, edit: TableEdit) -> None:
        varying = varying_axes(edit.array, edit.axes)
        counting = find_counting(edit.array, varying[0]) if len(varying) == 1 else None
        if counting is not None:
            start, step = int(counting.start.flat[0]), int(counting.step.flat[0])
            check_counting(self, edit.node, start, step, edit.axes[varying[0]])
        if not any(each.node is edit.node and each.index == edit.index for each in self.edits):
            self.edits.append(edit)

    def _push(self, node: ir.Node, index: int, axes: Mapping[int, Expr]) -> bool:
        """Let the node that makes a constant make it of constants that follow sizes; False where there is none."""
        value = node.inputs[index]
        maker = None if value is None else value.producer()
        if value is None or maker is None or value.is_graph_output():
            return False
        wanted = find_sources(maker, axes, self.known)
        if wanted is None:
            return False
        self._check_beside(maker, wanted, axes)
        self._pushed.setdefault(value, set()).add((id(node), index))
        for source, own in wanted.items():
            self.edit_table(maker, source, own, may_broadcast=False)
        return True

    def _check_beside(self, maker: ir.Node, wanted: Mapping[int, Any], axes: Mapping[int, Expr]) -> None:
        """Raise Contradiction for a single number beside a constant that follows sizes, if it may be one."""
        for index, value in enumerate(maker.inputs):
            known = self.known.get(value) if value is not None and index not in wanted else None
            if known is None or not known.is_constant or known.array().size != 1 or maker.op_type == "Unsqueeze":
                continue
            number = float(known.array().reshape(-1)[0])
            inverse = 1 / number if number else 0.0
            for expr in axes.values():
                tried = {
                    round(abs(each))
                    for each in (number, number + 1, inverse, number**2, inverse**2)
                    if abs(each) < 2**31
                }
                if any(each > 2 and len(read_number(self, each, expr)) > 1 for each in tried):
                    raise Contradiction(maker, f"its number {number:g} may be a size.", dims_in((expr,)))

    def _check_pushed(self) -> None:
        """Raise Contradiction for a constant that follows sizes for one of the nodes that take it, and not for another."""
        for value, told in self._pushed.items():
            for user, index in value.uses():
                if (id(user), index) not in told:
                    raise Contradiction(user, f"its constant {value.name!r} follows sizes at another node.")

    def _check_constant_outputs(self, graph: ir.Graph) -> None:
        """Raise Contradiction for an output that is a constant of a size which follows dims elsewhere."""
        for value in graph.outputs:
            known, node = self.known.get(value), value.producer()
            if known is None or node is None or not known.is_constant:
                continue
            like = [expr for axis in known.axes for expr in self.seen if self.at(expr) == self.at(axis) > 2]
            if like:
                raise Contradiction(
                    node, f"output {value.name!r} is a constant, and may follow {like[0]}.", dims_in(like)
                )

    def attribute(self, node: ir.Node, name: str, default: Any = None) -> Any:
        found = node.attributes.get(name)
        return default if found is None else found.value
