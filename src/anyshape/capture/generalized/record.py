"""The module at given sizes -> a trace of steps, recorded on fake tensors above the dispatcher.

Operators are recorded as the user called them (`linear`, `reshape`, `matmul`), since what they come down to depends on
sizes: a reshape is a view or a copy, a matmul folds or not, and a size of 1 changes both. Dead steps are left out.
`x.unbind(1)`, `x.split(4, 1)` and `x.chunk(3)` give as many tensors as a size says: each piece is cut where it is used, so
that a loop over pieces is a loop whose body cuts its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.fx import Node
from torch.utils._pytree import tree_flatten

from anyshape.capture.generalized.called_operators import CallGraph, Shaped, record_call
from anyshape.capture.generalized.trace import ANSWER, Constant, Input, Result, Step, Tensors, Trace, Weight
from anyshape.capture.generalized.values_in_traces import KnownValues, writes
from anyshape.inputs import Declared, flatten_outputs
from anyshape.intercept.control_flow import control_flow_in_python
from anyshape.intercept.operation_counts import count_real_call
from anyshape.intercept.patching import uncached, without_fused_layers
from anyshape.intercept.quick_tracing import small_cache_checks
from anyshape.leaves import leaves
from anyshape.leaves.checked import masks_as_in_eager
from anyshape.modules.state import kept
from anyshape.records.captured import asserts, live_nodes

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
_MOST_OPERATORS = 1_000_000


def steps_of(called: CallGraph, positions: Sequence[int], weights: WeightTable) -> tuple[Step, ...]:
    """The steps in order, the answer last."""
    return _Lowering(called, positions, weights).run()


class _Piece:
    """One of the tensors that a cut gives, not yet cut."""

    def __init__(self, node: Node, index: int) -> None:
        self.node = node
        self.index = index


class _Lowering:
    """One walk over a recorded graph."""

    def __init__(self, called: CallGraph, positions: Sequence[int], weights: WeightTable) -> None:
        self._called = called
        self._positions = iter(positions)
        self._weights = weights
        self._values: dict[Node, Any] = {}
        self._steps: list[Step] = []
        self._live = live_nodes(called.graph, counts=_changes_something)

    def run(self) -> tuple[Step, ...]:
        for node in self._called.graph.nodes:
            if node.op == "placeholder":
                self._values[node] = Input(next(self._positions))
            elif node.op == "get_attr":
                self._values[node] = self._held(getattr(self._called.root, str(node.target)))
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
                tuple(out.shape if isinstance(out, Shaped) else None for out in outputs),
                tuple(out.dtype if isinstance(out, Shaped) else None for out in outputs),
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


def _changes_something(node: Node) -> bool:
    return asserts(node) or (writes(node.target) and node.target is not _aten.detach_.default)


TraceKey = tuple[tuple[str, int], ...]


class Recorder:
    """Traces one module at one assignment of sizes after another; `traces` keeps those that were made."""

    def __init__(
        self, module: torch.nn.Module, declared: Declared, traces: dict[TraceKey, Trace] | None = None
    ) -> None:
        self.module = module
        self._declared = declared
        self._traces = traces if traces is not None else {}
        self.weights = weights_of(module)

    def trace(self, sizes: Mapping[str, int]) -> Trace:
        """The steps at these sizes. Raises ReadsInputValue, and whatever the module raises on fake tensors."""
        key = tuple(sorted(sizes.items()))
        if key not in self._traces:
            self._traces[key] = self._record(sizes)
        return self._traces[key]

    @property
    def traced_at(self) -> list[dict[str, int]]:
        """The sizes of all traces so far."""
        return [dict(trace.sizes) for trace in self._traces.values()]

    def count(self, sizes: Mapping[str, int]) -> int | None:
        """How many operators a call at these sizes runs, counted while it really runs; None where it raises."""
        inputs = self._declared.make(sizes, 0)
        with _untouched(self.module):
            counted = count_real_call(lambda: self._declared.call(self.module, inputs), _MOST_OPERATORS)
        return counted.operators if counted is not None else None

    def _record(self, sizes: Mapping[str, int]) -> Trace:
        declared = self._declared
        values = open_values(declared, sizes)
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        paths: list[str] = []

        def run(*given: torch.Tensor) -> Any:
            rest = iter(given)
            leaves_given = [next(rest) if isinstance(value, torch.Tensor) else value for value in values]
            with KnownValues():
                answered = flatten_outputs(declared.call(self.module, declared.rebuild(leaves_given)))
            answers = [(path, leaf) for path, leaf in answered if leaf is not None and not isinstance(leaf, str)]
            paths.extend(path for path, _ in answers)
            return tuple(leaf if isinstance(leaf, torch.Tensor) else torch.tensor(leaf) for _, leaf in answers)

        with _untouched(self.module), _quiet_tracing(), leaves(), control_flow_in_python(), torch.no_grad():
            called = record_call(run, tensors)
        positions = [position for position, value in enumerate(values) if isinstance(value, torch.Tensor)]
        steps = steps_of(called, positions, self.weights)
        shapes = tuple(tuple(value.shape) if isinstance(value, torch.Tensor) else () for value in values)
        dtypes = tuple(value.dtype if isinstance(value, torch.Tensor) else torch.int64 for value in values)
        return Trace(dict(sizes), steps, shapes, dtypes, tuple(paths))


def open_values(declared: Declared, sizes: Mapping[str, int]) -> list[Any]:
    """The open leaves at these sizes; a float becomes a tensor of no axes, since as a number it would be baked in."""
    values = declared.open_values(declared.make(sizes, 0))
    return [torch.tensor(value) if isinstance(value, float) else value for value in values]


def weights_of(module: torch.nn.Module) -> dict[int, tuple[str, torch.Tensor]]:
    """Every tensor that the module holds, by identity: parameters, buffers, and plain attributes."""
    found: dict[int, tuple[str, torch.Tensor]] = {}
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        found.setdefault(id(tensor), (name, tensor))
    for prefix, part in module.named_modules():
        for name, value in vars(part).items():
            for path, tensor in _tensors_in(name, value):
                found.setdefault(id(tensor), (f"{prefix}.{path}" if prefix else path, tensor))
    return found


def _tensors_in(name: str, value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _tensors_in(f"{name}.{index}", item)
    elif isinstance(value, dict) and name not in ("_parameters", "_buffers", "_modules"):
        for key, item in value.items():
            yield from _tensors_in(f"{name}.{key}", item)


@contextmanager
def _untouched(module: torch.nn.Module) -> Iterator[None]:
    with kept(module), uncached(module), masks_as_in_eager(module):
        yield


@contextmanager
def _quiet_tracing() -> Iterator[None]:
    with ExitStack() as stack:
        # One fused operator for a whole encoder layer: it has no translation, and its parts have.
        stack.enter_context(without_fused_layers())
        stack.enter_context(small_cache_checks())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        yield
