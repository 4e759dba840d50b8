"""Places -> nodes: one frame for the main program, and one for each loop's body.

A frame knows the values of its own places. What it needs from around it, it asks of the frame around, and remembers: that
is how a body's inputs are found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.fx import Node
from torch.utils._pytree import tree_unflatten

from anyshape.capture.generalized.arguments import Explained
from anyshape.capture.generalized.fit_reals import Real
from anyshape.capture.generalized.gather import gather
from anyshape.capture.generalized.lists import Listed
from anyshape.capture.generalized.literals import NoTensorForm, call_with_tensors, takes_tensor
from anyshape.capture.generalized.made import build_constant
from anyshape.capture.generalized.operands import Collected, Element, Given, Held, Made, Operand, Value
from anyshape.capture.generalized.refusals import number_only
from anyshape.capture.generalized.schema import bakes, rewrite
from anyshape.capture.generalized.scope import Scope, Size
from anyshape.capture.generalized.template import Item, Place, Repeated
from anyshape.capture.generalized.trace import ANSWER, TENSOR_KINDS, Step
from anyshape.domain import Domain, Expr, Number
from anyshape.operators.pieces import cut, pick

_PIECES = {torch.ops.aten.select.int, torch.ops.aten.slice.Tensor}

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
        if isinstance(operand, Made):
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
        elif self._is_piece(step, args):
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

    def _is_piece(self, step: Step, args: Sequence[Any]) -> bool:
        """Whether it takes a piece at a computed place. Where something writes into views, they have to stay views."""
        return (
            self.explained.is_functional and step.target in _PIECES and any(isinstance(each, Node) for each in args[1:])
        )

    def _piece(self, place: Place, args: Sequence[Any]) -> Node:
        """select and slice at computed places, without the conditions that torch would record."""
        step = place.step
        rank = len(step.shapes[0] or ()) + (1 if step.target is _aten.select.int else 0)
        axis = args[1] % rank
        if step.target is _aten.select.int:
            return self.scope.call(pick, args[0], axis, args[2])
        start = args[2] if len(args) > 2 and args[2] is not None else 0
        stride = args[4] if len(args) > 4 else 1
        if isinstance(stride, Node) or (isinstance(start, int) and start < 0):
            return self.scope.call(step.target, *args)
        return self.scope.call(cut, args[0], axis, start, self.shape(place)[axis], stride)

    def shape(self, place: Place) -> list[Size]:
        """The shape of a place's result, as sizes of this frame."""
        seen = [(occurrence.seen.point, occurrence.step.shapes[0] or ()) for occurrence in place.occurrences]
        return [self.scope.size(expr) for expr in shape_of(self.explained, seen)]

    def constant(self, name: str, tensor: torch.Tensor) -> Node:
        """A tensor of the file, mentioned by this graph."""
        raise NotImplementedError


def shape_of(explained: Explained, seen: Sequence[tuple[Any, tuple[int, ...]]]) -> tuple[Expr, ...]:
    """A shape seen at many points, as expressions. Raises CaptureRefused where an axis follows no rule."""
    from anyshape.capture.generalized.refusals import number_without_rule

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


def held_name(operand: Held) -> str:
    """How the graph mentions a tensor of the user's module."""
    return f"module.{operand.weight.name}"


__all__ = ["Frame", "Given", "held_name", "shape_of"]
