"""A recorded fx graph -> steps: dead ones left out, and lists of pieces turned into the pieces that are used.

`x.unbind(1)`, `x.split(4, 1)` and `x.chunk(3)` give as many tensors as a size says. Each piece is cut where it is used,
so that a loop over pieces is a loop whose body cuts its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_flatten

from anyshape.capture.generalized.asked import writes
from anyshape.capture.generalized.trace import ANSWER, Constant, Input, Result, Step, Tensors, Weight

_aten = torch.ops.aten
_SAME = {_aten.detach.default, _aten.detach_.default, _aten.lift_fresh.default, _aten.alias.default}
_UNBIND = {_aten.unbind.int}
_CUTS = {
    _aten.split.Tensor,
    _aten.split.sizes,
    _aten.split_with_sizes.default,
    _aten.chunk.default,
    _aten.tensor_split.sections,
    _aten.tensor_split.indices,
    _aten.unsafe_chunk.default,
    _aten.unsafe_split.Tensor,
}
_LISTS = {_aten.cat.default, _aten.stack.default}

WeightTable = Mapping[int, tuple[str, torch.Tensor]]


def steps_of(recorded: GraphModule, positions: Sequence[int], weights: WeightTable) -> tuple[Step, ...]:
    """The steps in order, the answer last."""
    return _Lowering(recorded, positions, weights).run()


class _Piece:
    """One of the tensors that a cut gives, not yet cut."""

    def __init__(self, node: Node, index: int) -> None:
        self.node = node
        self.index = index


class _Lowering:
    """One walk over a recorded graph."""

    def __init__(self, recorded: GraphModule, positions: Sequence[int], weights: WeightTable) -> None:
        self._recorded = recorded
        self._positions = iter(positions)
        self._weights = weights
        self._values: dict[Node, Any] = {}
        self._steps: list[Step] = []
        self._live = _live_nodes(recorded)

    def run(self) -> tuple[Step, ...]:
        for node in self._recorded.graph.nodes:
            if node.op == "placeholder":
                self._values[node] = Input(next(self._positions))
            elif node.op == "get_attr":
                self._values[node] = self._held(getattr(self._recorded, str(node.target)))
            elif node.op == "output":
                self._add(ANSWER, (tuple(node.args[0]),), {}, node)
            elif node in self._live:
                self._call(node)
        return tuple(self._steps)

    def _held(self, tensor: torch.Tensor) -> Weight | Constant:
        known = self._weights.get(id(tensor))
        return Weight(*known) if known is not None else Constant(tensor)

    def _call(self, node: Node) -> None:
        target: Any = node.target
        source = node.args[0] if node.args else None
        if target in _SAME and isinstance(source, Node):
            self._values[node] = self._values[source]
        elif target is _aten.lift_fresh_copy.default and isinstance(source, Node):
            # A copy matters only to those who write into it.
            written = any(writes(user.target) for user in node.users)
            self._values[node] = (
                self._add(_aten.clone.default, (source,), {}, node) if written else self._values[source]
            )
        elif getattr(target, "__name__", "") == "getitem":
            self._values[node] = self._item(node)
        elif isinstance(target, torch._ops.OpOverload):
            self._values[node] = self._values.get(node) or (
                None if target in _CUTS | _UNBIND else self._add(target, node.args, node.kwargs, node)
            )

    def _item(self, node: Node) -> Any:
        source, index = node.args
        assert isinstance(source, Node)
        assert isinstance(index, int)
        if source.target in _CUTS | _UNBIND:
            return _Piece(source, index)
        result = self._values[source]
        return Result(result.step, index)

    def _add(self, target: Any, args: Sequence[Any], kwargs: Mapping[str, Any], node: Node) -> Result:
        if target in _LISTS:
            args = (Tensors(tuple(self._use(item) for item in args[0])), *args[1:])
        given = torch.fx.node.map_arg((tuple(args), dict(kwargs)), self._use)
        leaves, spec = tree_flatten(_plain(given))
        value = node.meta.get("val")
        outputs = value if isinstance(value, (tuple, list)) else (value,)
        self._steps.append(
            Step(
                target,
                tuple(leaves),
                spec,
                node.meta.get("stack_trace") or node.stack_trace or "",
                tuple(tuple(out.shape) if isinstance(out, torch.Tensor) else None for out in outputs),
                tuple(out.dtype if isinstance(out, torch.Tensor) else None for out in outputs),
            )
        )
        return Result(len(self._steps) - 1)

    def _use(self, node: Any) -> Any:
        value = self._values[node] if isinstance(node, Node) else node
        return self._cut(value) if isinstance(value, _Piece) else value

    def _cut(self, piece: _Piece) -> Result:
        """x.unbind(axis)[i] -> x.select(axis, i);  x.split(..., axis)[i] -> x[start:end] along the axis."""
        source: Any = piece.node.args[0]
        pieces = piece.node.meta["val"]
        rank = source.meta["val"].ndim
        axis = int(_argument(piece.node, "dim", 1 if piece.node.target in _UNBIND else 2, 0)) % rank
        cut = Node.__new__(Node)  # only its meta and stack are read
        cut.meta = {"val": pieces[piece.index], "stack_trace": piece.node.meta.get("stack_trace", "")}
        if piece.node.target in _UNBIND:
            return self._add(_aten.select.int, (source, axis, piece.index), {}, cut)
        start = sum(int(part.shape[axis]) for part in pieces[: piece.index])
        end = start + int(pieces[piece.index].shape[axis])
        return self._add(_aten.slice.Tensor, (source, axis, start, end), {}, cut)


def _argument(node: Node, name: str, position: int, default: Any) -> Any:
    if name in node.kwargs:
        return node.kwargs[name]
    return node.args[position] if len(node.args) > position else default


def _plain(value: Any) -> Any:
    """fx keeps arguments in classes of its own; plain lists and dicts compare and travel better."""
    if isinstance(value, (list, tuple)):
        items = [_plain(item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _live_nodes(recorded: GraphModule) -> set[Node]:
    """What the answer depends on, and what writes into something."""
    live: set[Node] = set()
    todo = [node for node in recorded.graph.nodes if node.op == "output" or writes(node.target)]
    todo = [node for node in todo if node.target is not _aten.detach_.default]
    while todo:
        node = todo.pop()
        if node not in live:
            live.add(node)
            todo.extend(node.all_input_nodes)
    return live
