"""Places -> nodes: one frame for the main program, and one for each loop's body.

A frame holds the values of its own places. What it needs from around it, it takes from the frame around, and remembers: that
is how a body's inputs are found.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.fx import Node
from torch.utils._pytree import tree_unflatten

from anyshape.capture.generalized.explained_arguments import Explained, Listed, gather
from anyshape.capture.generalized.fit_reals import Real
from anyshape.capture.generalized.not_learned import number_only
from anyshape.capture.generalized.python_constants import build_constant
from anyshape.capture.generalized.scope import (
    NoTensorForm,
    Scope,
    Size,
    bakes,
    call_with_tensors,
    rewrite,
    takes_tensor,
)
from anyshape.capture.generalized.template import (
    Collected,
    ConstantOperand,
    Element,
    InputOperand,
    Item,
    Operand,
    Place,
    Repeated,
    Value,
    WeightOperand,
)
from anyshape.capture.generalized.trace import ANSWER, TENSOR_KINDS
from anyshape.domain import Domain, Expr, Number, Op
from anyshape.leaves.own_operators import cut, pick

EmitLoop = Callable[["Frame", Repeated], None]

_aten = torch.ops.aten


class Frame:
    """One graph and the values in it. `emit_loop` builds a loop that stands among its items."""

    def __init__(
        self, explained: Explained, domain: Domain, loops: tuple[Repeated, ...], emit_loop: EmitLoop | None
    ) -> None:
        self.explained = explained
        self.loops = loops
        self.emit_loop = emit_loop
        self.values: dict[Any, Node] = {}
        self.scope = Scope(domain, self.read)
        self.constants: dict[str, torch.Tensor] = {}

    def read(self, scope: Scope, name: str) -> Size:
        """The size of a dim or a counter, in this frame."""
        raise NotImplementedError

    def outer(self, operand: Operand) -> Node:
        """A value that this frame does not make itself."""
        raise NotImplementedError

    def emit(self, items: Iterable[Item]) -> None:
        """Nodes for all items, in order; the answer becomes the graph's output."""
        for item in items:
            if isinstance(item, Place):
                self.scope.stack = item.step.stack
                self._emit_place(item)
            else:
                assert self.emit_loop is not None
                self.emit_loop(self, item)

    def tensor(self, operand: Operand) -> Node:
        """The node of an operand."""
        key = (operand.place, operand.output) if isinstance(operand, Value) else operand
        if key not in self.values:
            self.values[key] = self._find(operand)
        return self.values[key]

    def _find(self, operand: Operand) -> Node:
        if isinstance(operand, Value) and operand.place.loops == self.loops:
            assert operand.output is not None
            return self.scope.call(_getitem, self.values[operand.place, None], operand.output)
        if isinstance(operand, ConstantOperand):
            return build_constant(self, operand)
        if isinstance(operand, Element):
            collected = self.tensor(Collected(operand.loop, operand.inner))
            return self.scope.call(pick, collected, 0, self.scope.size(operand.index))
        return self.outer(operand)

    def _emit_place(self, place: Place) -> None:
        step, arguments = place.step, self.explained.arguments[place]
        if step.target == ANSWER:
            self.scope.graph.output(tuple(self.answer(argument) for argument in arguments))
            return
        leaves = [self._leaf(place, index, argument) for index, argument in enumerate(arguments)]
        if isinstance(arguments[0], Listed):
            rank = len(step.shapes[0] or ())
            self.values[place, None] = gather(self, step.target, arguments[0], leaves[1:], rank)
            return
        args, kwargs = tree_unflatten(leaves, step.spec)
        number_leaves = [index for index, argument in enumerate(arguments) if isinstance(argument, Real)]
        if any(not takes_tensor(step.target, index) for index in number_leaves):
            self.values[place, None] = self._with_tensors(place, args, kwargs)
        elif self._is_piece(place, args):
            self.values[place, None] = self._piece(place, args)
        elif bakes(step.target, args, kwargs):
            self.values[place, None] = self._rewritten(place, args, kwargs)
        else:
            self.values[place, None] = self.scope.call(step.target, *args, **kwargs)

    def answer(self, argument: Any) -> Any:
        """An output of the program: a tensor, or a size."""
        if isinstance(argument, Expr):
            return self.scope.size(argument)
        return self.tensor(argument) if not isinstance(argument, (int, float, bool)) else argument

    def _leaf(self, place: Place, index: int, argument: Any) -> Any:
        if isinstance(argument, Listed):
            return argument
        if isinstance(argument, Real):
            dtype = place.step.dtypes[0] if place.step.dtypes else None
            return self.scope.real(argument, torch.float64 if dtype == torch.float64 else torch.float32)
        if isinstance(argument, Expr):
            return self.scope.size(argument)
        return self.tensor(argument) if isinstance(place.step.leaves[index], TENSOR_KINDS) else argument

    def _with_tensors(self, place: Place, args: Sequence[Any], kwargs: dict[str, Any]) -> Node:
        step = place.step
        dtype = step.dtypes[0]
        assert dtype is not None
        try:
            node: Node = call_with_tensors(self.scope, step.target, args, kwargs, self.shape(place), dtype)
        except NoTensorForm:
            formula = next(str(argument) for argument in self.explained.arguments[place] if isinstance(argument, Real))
            raise number_only(step, formula) from None
        return node

    def _rewritten(self, place: Place, args: Sequence[Any], kwargs: dict[str, Any]) -> Node:
        node = rewrite(self.scope, place.step.target, args, kwargs)
        if node is None:
            formulas = (argument for argument in self.explained.arguments[place] if isinstance(argument, Expr))
            raise number_only(
                place.step, next((str(each) for each in formulas if not isinstance(each, Number)), "a size")
            )
        return node

    def _is_piece(self, place: Place, args: Sequence[Any]) -> bool:
        """Whether the step takes a piece at a computed place or of a computed size.

        Where something writes into views, they have to stay views: torch then sees to them.
        """
        step = place.step
        if not self.explained.is_functional or step.target not in (_aten.select.int, _aten.slice.Tensor):
            return False
        if any(isinstance(each, Node) for each in args[1:]):
            return True
        shapes = {each.step.shapes[0] for each in place.occurrences}
        return step.target is _aten.slice.Tensor and len(shapes) > 1

    def _piece(self, place: Place, args: Sequence[Any]) -> Node:
        """select and slice at computed places, without the conditions that torch would record."""
        step, expressions = place.step, self.explained.arguments[place]
        rank = len(step.shapes[0] or ()) + (1 if step.target is _aten.select.int else 0)
        axis = (args[1] if len(args) > 1 else 0) % rank
        if step.target is _aten.select.int:
            return self.scope.call(pick, args[0], axis, self._place_on(args[0], axis, args[2], expressions[2]))
        start, end = [*args[2:4], None, None][:2]
        stride = args[4] if len(args) > 4 else 1
        if isinstance(stride, Node):
            return self.scope.call(step.target, *args)
        size = self.scope.call(_aten.sym_size.int, args[0], axis)
        first = self._bound(args[0], axis, start, expressions[2]) if start is not None and start != 0 else 0
        last = self._bound(args[0], axis, end, expressions[3]) if end is not None and not _is_end(end) else size
        sizes = [(each.seen.point, (each.step.shapes[0] or ())[axis]) for each in place.occurrences]
        fitted = self.explained.fits.integers(sizes)
        count = self.scope.size(fitted) if fitted is not None else self._count(first, last, stride)
        return self.scope.call(cut, args[0], axis, first, count, stride)

    def _count(self, first: Size, last: Size, stride: int) -> Size:
        length = self.scope.call(operator.sub, last, first) if first != 0 else last
        length = self.scope.call(torch.sym_max, length, 0) if first != 0 else length
        if stride == 1:
            return length
        return self.scope.call(operator.floordiv, self.scope.call(operator.add, length, stride - 1), stride)

    def _bound(self, tensor: Node, axis: int, number: Size, expr: Expr) -> Size:
        """A bound of a slice as Python reads it: counted from the end where negative, and not beyond the end."""
        place = self._place_on(tensor, axis, number, expr)
        return self.scope.call(torch.sym_min, place, self.scope.call(_aten.sym_size.int, tensor, axis))

    def _place_on(self, tensor: Node, axis: int, number: Size, expr: Expr) -> Size:
        if self.scope.is_positive(expr):
            return number
        size = self.scope.call(_aten.sym_size.int, tensor, axis)
        if isinstance(number, int):
            return self.scope.call(torch.sym_max, self.scope.call(operator.add, size, number), 0)
        # 1 where the number is negative: a comparison of sizes would be a condition of the program.
        below = self.scope.size(Op("min", (Op("max", (Number(0) - expr, Number(0))), Number(1))))
        shifted = self.scope.call(operator.add, number, self.scope.call(operator.mul, size, below))
        return self.scope.call(torch.sym_max, shifted, 0)

    def shape(self, place: Place) -> list[Size]:
        """The shape of a place's result, as sizes of this frame."""
        seen = [(occurrence.seen.point, occurrence.step.shapes[0] or ()) for occurrence in place.occurrences]
        return [self.scope.size(expr) for expr in shape_of(self.explained, seen)]

    def constant(self, name: str, tensor: torch.Tensor) -> Node:
        """A tensor of the file, mentioned by this graph."""
        raise NotImplementedError


def shape_of(explained: Explained, seen: Sequence[tuple[Any, tuple[int, ...]]]) -> tuple[Expr, ...]:
    """A shape seen at many points, as expressions. Raises NotCaptured where an axis follows no rule."""
    from anyshape.capture.generalized.not_learned import number_without_rule

    found = []
    for axis in range(len(seen[0][1])):
        sizes = [(point, shape[axis]) for point, shape in seen]
        expr = explained.fits.integers(sizes)
        if expr is None:
            place = next(iter(explained.arguments))
            raise number_without_rule(place.step, sizes)
        found.append(expr)
    return tuple(found)


def _getitem(values: Any, index: int) -> Any:
    return values[index]


def _is_end(end: Size) -> bool:
    return isinstance(end, int) and end >= 2**62


def held_name(operand: WeightOperand) -> str:
    """How the graph mentions a tensor of the user's module."""
    return f"module.{operand.weight.name}"


__all__ = ["Frame", "InputOperand", "held_name", "shape_of"]
