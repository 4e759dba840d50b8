"""A call on fake tensors -> the graph of the operators that it calls, as `make_fx(..., pre_dispatch=True)` records them.

make_fx makes a proxy, a second fake tensor and a stack of a hundred lines for each operator. A trace needs the operator, its
arguments, the shapes and dtypes of what it gives, and the lines of functions named `forward`: this takes a quarter of the
time. A call in which values decide sizes or numbers is left to make_fx, which follows them as symbols.

FakeTensorMode takes an operator apart in Python, and looks into a cache, makes an entry and checks devices for each part. For
operators of torch that write nothing, whose tensors are all on one device, the kernel of the meta device gives the same
shapes in a tenth of the time. Everything else goes the usual way, also where such a kernel raises.
"""

from __future__ import annotations

import operator
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import CodeType, SimpleNamespace
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses import FakeTensor, FakeTensorMode
from torch._subclasses.fake_tensor import in_kernel_invocation_manager
from torch.fx import Graph, Node
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, disable_autocast_cache, make_fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv, uninteresting_files
from torch.fx.node import map_aggregate
from torch.nn import Parameter

from anyshape.intercept.value_checks import asked_checks

_LIFT = torch.ops.aten.lift_fresh.default
_LIFTED = torch.ops.aten.lift_fresh_copy.default
_DEVICE = torch.ops.prim.device.default
_SLOT = "_anyshape_called_operator"
_PLAIN = (torch.Tensor, Parameter)


@dataclass(frozen=True)
class Shaped:
    """The shape and dtype of a tensor that an operator gave. A size that values decide is None."""

    shape: tuple[int | None, ...]
    dtype: torch.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)


class CalledOperators:
    """The graph of a call. `root` holds the tensors that it mentions and does not make itself, by the names of their nodes."""

    def __init__(self, fake: FakeTensorMode) -> None:
        self.graph = Graph()
        self._kernels = ShapeKernels(fake)
        self.root = SimpleNamespace()
        self.tensor_tracker = _Slots(self)
        self._held: dict[int, tuple[torch.Tensor, Node]] = {}
        self._stacks = _Stacks()

    def placeholder(self, name: str, tensor: torch.Tensor) -> None:
        """A tensor that the call is given."""
        node = self.graph.placeholder(name)
        node.meta["val"] = _shaped(tensor)
        self._held[id(tensor)] = tensor, node

    def node_of(self, tensor: torch.Tensor) -> Node | None:
        """The node that gave a tensor, the last one that wrote into it, or None where the call has not met it."""
        held = self._held.get(id(tensor))
        if held is not None:
            return held[1]
        owner, node = tensor.__dict__.get(_SLOT, (0, None))
        return node if owner == id(tensor) and node is not None and node.graph is self.graph else None

    def call(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call an operator, and record it."""
        if torch.Tag.data_dependent_output in func.tags:
            raise _NeedsSymbols
        given = map_aggregate((tuple(args), dict(kwargs)), self._use)
        target = func if func is not _LIFT else _LIFTED  # what is written into the result must not change the constant
        node = self.graph.create_node("call_function", target, given[0], given[1], name="call")
        node.meta["stack_trace"] = self._stacks.now()
        result = self._kernels.run(func, args, kwargs)
        node.meta["val"] = _shaped(result)
        self._note(result, node)
        return result

    def _note(self, result: Any, node: Node) -> None:
        if isinstance(result, torch.Tensor):
            if not all(type(size) is int for size in result.shape):
                raise _NeedsSymbols
            if id(result) in self._held:
                self._held[id(result)] = result, node
            else:
                result.__dict__[_SLOT] = id(result), node
        elif isinstance(result, (list, tuple)):
            for index, item in enumerate(result):
                if item is None:
                    continue
                part = self.graph.create_node("call_function", operator.getitem, (node, index), name="part")
                part.meta["val"] = _shaped(item)
                self._note(item, part)
        elif isinstance(result, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            raise _NeedsSymbols

    def _use(self, value: Any) -> Any:
        return self.use(value) if isinstance(value, torch.Tensor) else value

    def use(self, tensor: torch.Tensor) -> Node:
        """The node of a tensor; a new one where the call has not met it: a weight, or a constant."""
        node = self.node_of(tensor)
        if node is None:
            name = f"held_{len(self._held)}"
            setattr(self.root, name, tensor)
            node = self.graph.get_attr(name)
            node.meta["val"] = _shaped(tensor)
            self._held[id(tensor)] = tensor, node
        return node


class _NeedsSymbols(BaseException):
    """An operator gives a number, or a tensor of a size, that depends on values. The user's code must not catch it."""


class _Slots:
    """What torch's `get_proxy_slot` looks at."""

    def __init__(self, called: CalledOperators) -> None:
        self._called = called

    def get(self, tensor: torch.Tensor) -> Any:
        node = self._called.node_of(tensor)
        return None if node is None or node.op == "get_attr" else SimpleNamespace(proxy=SimpleNamespace(node=node))


class _Recording(ProxyTorchDispatchMode):
    """Hands every operator of a call on, before torch decomposes it."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _DEVICE:
            return func(*args, **(kwargs or {}))
        called: Any = self.tracer
        return called.call(func, args, kwargs or {})


class _Stacks:
    """The lines of functions named `forward` that run now, as text."""

    def __init__(self) -> None:
        self._texts: dict[tuple[tuple[CodeType, int], ...], str] = {}
        self._dull = uninteresting_files()

    def now(self) -> str:
        found = []
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_name == "forward" and frame.f_code.co_filename not in self._dull:
                found.append((frame.f_code, frame.f_lasti, frame))
            frame = frame.f_back  # type: ignore[assignment]
        key = tuple((code, step) for code, step, _ in found)
        if key not in self._texts:
            lines = [
                traceback.FrameSummary(code.co_filename, frame.f_lineno, "forward", lookup_line=False)
                for code, _, frame in reversed(found)
            ]
            self._texts[key] = "".join(traceback.StackSummary.from_list(lines).format()).strip()
        return self._texts[key]


@dataclass(frozen=True)
class CallGraph:
    """The operators of a call, with `val` in the meta of each node, and the object that holds its weights and constants."""

    graph: Graph
    root: Any


def record_call(function: Callable[..., Sequence[torch.Tensor]], tensors: Sequence[torch.Tensor]) -> CallGraph:
    """The graph of `function(*tensors)`, which gives tensors. Raises what the function raises on fake tensors."""
    try:
        return _record(function, tensors)
    except _NeedsSymbols:
        record = make_fx(
            function, tracing_mode="fake", _allow_non_fake_inputs=True, pre_dispatch=True, record_stack_traces=True
        )
        with asked_checks():
            traced = record(*tensors)
    for node in traced.graph.nodes:
        if "val" in node.meta:
            node.meta["val"] = _shaped(node.meta["val"])
    return CallGraph(traced.graph, traced)


def _record(function: Callable[..., Sequence[torch.Tensor]], tensors: Sequence[torch.Tensor]) -> CallGraph:
    fake = FakeTensorMode(
        allow_fallback_kernels=True, allow_non_fake_inputs=True, shape_env=ShapeEnv(), static_shapes=True
    )
    called = CalledOperators(fake)
    given = [fake.from_tensor(tensor) for tensor in tensors]
    for number, tensor in enumerate(given):
        called.placeholder(f"given_{number}", tensor)
    mode: Any = _Recording(called, "fake", pre_dispatch=True)  # type: ignore[arg-type]
    with ExitStack() as stack:
        for each in (fake, enable_python_dispatcher(), mode, disable_autocast_cache()):
            stack.enter_context(each)
        results = function(*given)
    called.graph.output(tuple(called.use(result) for result in results))
    return CallGraph(called.graph, called.root)


def _shaped(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return Shaped(tuple(size if type(size) is int else None for size in value.shape), value.dtype)
    if isinstance(value, (list, tuple)):
        return [_shaped(item) for item in value]
    return value


class ShapeKernels:
    """Runs operators on the fake tensors of one mode."""

    def __init__(self, fake: FakeTensorMode) -> None:
        self._fake = fake
        self._fakes: dict[int, tuple[torch.Tensor, FakeTensor]] = {}
        self._usual: set[Any] = set()  # operators that have no kernel for shapes

    def run(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The result of the operator on fake tensors, by the kernel of the meta device where that can run."""
        device = self._common_device(func, args, kwargs)
        if device is not None:
            try:
                return self._run(func, args, kwargs, device)
            except Exception:  # the usual way says what is wrong, or has a kernel
                self._usual.add(func)
        return func(*args, **kwargs)

    def _common_device(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> torch.device | None:
        """The device of all tensors; None where the operator goes the usual way."""
        if func.namespace != "aten" or func._schema.is_mutable or func in self._usual:
            return None
        found = None
        for value in _values((*args, *kwargs.values())):
            if isinstance(value, torch.device):
                return None
            if not isinstance(value, torch.Tensor):
                continue
            is_plain = value.constant is None if isinstance(value, FakeTensor) else type(value) in _PLAIN
            if not is_plain or value.layout is not torch.strided or found not in (None, value.device):
                return None
            found = value.device
        return found

    def _run(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], device: torch.device) -> Any:
        given = [self._faked(value) for value in args]
        named = {name: self._faked(value) for name, value in kwargs.items()}
        with in_kernel_invocation_manager(self._fake), torch._C._DisablePythonDispatcher():
            result = func(*given, **named)
        return self._wrapped(result, device)

    def _faked(self, value: Any) -> Any:
        if isinstance(value, FakeTensor):
            return value
        if isinstance(value, torch.Tensor):
            if id(value) not in self._fakes:
                self._fakes[id(value)] = value, self._fake.from_tensor(value)
            return self._fakes[id(value)][1]
        return [self._faked(item) for item in value] if isinstance(value, (list, tuple)) else value

    def _wrapped(self, result: Any, device: torch.device) -> Any:
        if isinstance(result, FakeTensor) or not isinstance(result, (torch.Tensor, list, tuple)):
            return result
        if isinstance(result, torch.Tensor):
            return self._fake.fake_tensor_converter.from_meta_and_device(self._fake, result, device)
        return type(result)(self._wrapped(item, device) for item in result)


def _values(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _values(value)
        else:
            yield value
