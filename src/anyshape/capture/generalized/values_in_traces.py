"""What Python reads from tensors in a trace: `int(n)`, `.item()`, `.tolist()`, `if x.sum() > 0`; and `x[...]`.

A value that follows from sizes and weights alone is computed from the steps so far. One that depends on an input's
values is never answered: it would be baked into the file.

An index is recorded as views (`select`, `slice`), one for each part of it. torch leaves out a slice that happens to take
everything (`x[:, :8]` of eight columns), so that traces at different sizes would differ; here every slice with a bound is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch.fx import Node
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from anyshape.findings import Source
from anyshape.intercept.real_numbers import real_number, whole_number
from anyshape.modules.user_code import source_of_running_code

IsPlace = Callable[[Any], bool]
_ASKING = {
    getattr(torch.Tensor, name)
    for name in ("item", "tolist", "numpy", "__int__", "__float__", "__bool__", "__index__", "__array__", "is_nonzero")
} | {torch.is_nonzero}
_PYTHONS = {whole_number: torch.Tensor.__int__, real_number: torch.Tensor.__float__}
"""int() and float() in the user's own code, while they are replaced by functions that record their calls."""


def basic_index(tensor: torch.Tensor, index: Any, is_place: IsPlace = lambda item: False) -> torch.Tensor | None:
    """The view that numbers, slices, None and ... make; None where the index has tensors or lists in it.

    Tensors that are a place count as numbers. torch would read their values. What they pick is a copy, and no view.
    """
    items = _full(tensor, index, is_place)
    if items is None:
        return None
    view, axis = tensor, 0
    for item in items:
        if item is None:
            view, axis = torch.ops.aten.unsqueeze.default(view, axis), axis + 1
        elif isinstance(item, slice):
            view, axis = _sliced(view, axis, item), axis + 1
        elif isinstance(item, torch.Tensor):
            size = view.shape[axis]
            counted = torch.where(item < -size, size, item + size)  # a place before the first is beyond the end, too
            view = torch.index_select(view, axis, torch.where(item < 0, counted, item).reshape(1)).squeeze(axis)
        else:
            view = torch.ops.aten.select.int(view, axis, item)
    return view


def assign(tensor: torch.Tensor, index: Any, value: Any) -> bool:
    """`tensor[index] = value` by writing into a view, or through one tensor of positions; False where it is neither."""
    given = value if isinstance(value, torch.Tensor) else None
    view = basic_index(tensor, index)
    if view is not None:
        if given is None:
            torch.ops.aten.fill_.Scalar(view, value)
            return True
        if given.ndim > view.ndim:
            return False
        torch.ops.aten.copy_.default(view, given)
        return True
    is_positions = isinstance(index, torch.Tensor) and index.dtype in (torch.int64, torch.int32)
    if not is_positions or given is None or given.ndim > index.ndim + tensor.ndim - 1 or given.dtype != tensor.dtype:
        return False
    torch.ops.aten.index_put_.default(tensor, [index], given)
    return True


def _full(tensor: torch.Tensor, index: Any, is_place: IsPlace) -> list[Any] | None:
    """The index with ... written out; None where it is not basic."""
    items = list(index) if isinstance(index, tuple) else [index]
    if not all(is_place(item) if isinstance(item, torch.Tensor) else _is_basic(item) for item in items):
        return None
    used = sum(1 for item in items if item is not None and item is not Ellipsis)
    position = next((at for at, item in enumerate(items) if item is Ellipsis), None)
    if position is not None:
        items[position : position + 1] = [slice(None)] * (tensor.ndim - used)
    return items if used <= tensor.ndim and not any(item is Ellipsis for item in items) else None


def _is_basic(item: Any) -> bool:
    if isinstance(item, slice):
        return all(part is None or _is_number(part) for part in (item.start, item.stop, item.step))
    return item is None or item is Ellipsis or _is_number(item)


def _is_open_place(item: torch.Tensor) -> bool:
    """Whether it is one whole number that depends on the values of the inputs."""
    if item.ndim or item.dtype not in (torch.int64, torch.int32):
        return False
    try:
        _real_value(item, torch.Tensor.__index__)
    except ReadsInputValue:
        return True
    return False


def _is_number(item: Any) -> bool:
    return isinstance(item, int) and not isinstance(item, bool)


def _sliced(view: torch.Tensor, axis: int, item: slice) -> torch.Tensor:
    if item == slice(None):
        return view
    if item.step is not None and item.step <= 0:
        return view[(slice(None),) * axis + (item,)]  # torch's own error
    return torch.ops.aten.slice.Tensor(view, axis, item.start, item.stop, 1 if item.step is None else item.step)


class ReadsInputValue(Exception):
    """Python asked for a value that depends on the values of the inputs."""

    def __init__(self, source: Source | None, asked: str) -> None:
        super().__init__(asked)
        self.source = source
        self.asked = asked


class KnownValues(TorchFunctionMode):
    """Gives Python the values of tensors that do not depend on inputs; raises ReadsInputValue for the others.

    Indexing is Python's too, and is written out here (`basic_index`). What an open place picks is a view for PyTorch, and a
    copy here: at the end, ReadsInputValue is raised if anything was written to either of them afterwards.
    """

    def __init__(self) -> None:
        super().__init__()
        self._picked: list[tuple[torch.Tensor, int, Source | None]] = []

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        for tensor, version, source in self._picked if raised[0] is None else ():
            if tensor._version != version:
                raise ReadsInputValue(source, "__getitem__")

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        func = _PYTHONS.get(func, func)
        if func in _ASKING and isinstance(args[0], torch.Tensor):
            value = _real_value(args[0], func)
            with _disable_current_modes():  # else asking would itself be traced
                return func(value, *args[1:], **(kwargs or {}))
        if func is torch.Tensor.__getitem__:
            view = basic_index(args[0], args[1])
            if view is not None:
                return view
            view = basic_index(args[0], args[1], _is_open_place)
            if view is not None:
                source = source_of_running_code(2)
                self._picked += [(tensor, tensor._version, source) for tensor in (args[0], view)]
                return view
        if func is torch.Tensor.__setitem__ and assign(*args):
            return None
        if func is torch.Tensor.contiguous and len(args) == 1 and not kwargs:
            return torch.ops.aten.contiguous.default(*args)  # torch leaves it out at sizes that need no copy
        return func(*args, **(kwargs or {}))


def _real_value(tensor: torch.Tensor, func: Callable[..., Any]) -> torch.Tensor:
    tracer = _tracer()
    slot = get_proxy_slot(tensor, tracer, None) if tracer is not None else None
    if tracer is None or (slot is None and not _mentions(tensor, tracer)):
        with _disable_current_modes():
            return tensor.detach().clone()
    nodes = [slot.proxy.node] if slot is not None else _mentions(tensor, tracer)
    wanted = _ancestors(nodes, list(tracer.graph.nodes))
    if any(node.op == "placeholder" for node in wanted):
        raise ReadsInputValue(source_of_running_code(2), getattr(func, "__name__", "a value"))
    with _disable_current_modes():
        return _replay(wanted, nodes[0], tracer.root)


def _tracer() -> Any:
    mode = torch._ops._get_dispatch_mode_pre_dispatch(torch._C._TorchDispatchModeKey.PROXY) or get_proxy_mode()
    return mode.tracer if mode is not None else None


def _mentions(tensor: torch.Tensor, tracer: Any) -> list[Node]:
    return [
        node
        for node in tracer.graph.nodes
        if node.op == "get_attr" and getattr(tracer.root, node.target, None) is tensor
    ]


def _ancestors(wanted: list[Node], nodes: list[Node]) -> list[Node]:
    """All steps that these depend on, in order, with the steps that write into any of them."""
    found = set(wanted)
    todo = list(wanted)
    while todo:
        while todo:
            for parent in todo.pop().all_input_nodes:
                if parent not in found:
                    found.add(parent)
                    todo.append(parent)
        for node in nodes:
            if node not in found and writes(node.target) and _written_bases(node) & found:
                found.add(node)
                todo.append(node)
    return [node for node in nodes if node in found]


def writes(target: Any) -> bool:
    """Whether an operator changes one of its arguments."""
    schema = getattr(target, "_schema", None)
    return bool(schema is not None and schema.is_mutable)


def _written_bases(node: Node) -> set[Node]:
    """What a writing step may change: its first argument, and everything that this may be a view of."""
    bases: set[Node] = set()
    todo = node.all_input_nodes[:1]
    while todo:
        base = todo.pop()
        bases.add(base)
        todo += [parent for parent in base.all_input_nodes[:1] if parent not in bases]
    return bases


def _replay(nodes: list[Node], wanted: Node, root: Any) -> torch.Tensor:
    values: dict[Node, Any] = {}
    for node in nodes:
        if node.op == "get_attr":
            values[node] = _shared_copy(values, node, root)
            continue
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda used: values[used])
        values[node] = node.target(*args, **kwargs)  # type: ignore[operator]
    result: torch.Tensor = values[wanted]
    return result


def _shared_copy(values: Mapping[Node, Any], node: Node, root: Any) -> torch.Tensor:
    """A copy, since the steps may write into it; the same copy wherever the same tensor is mentioned."""
    for known, value in values.items():
        if known.op == "get_attr" and known.target == node.target:
            copied: torch.Tensor = value
            return copied
    return getattr(root, str(node.target)).detach().clone()  # type: ignore[no-any-return]
