"""Operators that change a tensor in place  ->  operators that return a new one, where nothing else sees that tensor.

    y = aten.conv2d(x, w); aten.relu_(y); z = aten.add(y, 1)   ->   y = aten.conv2d(x, w); r = aten.relu(y); z = aten.add(r, 1)

    v = aten.select(x, 0, 1); aten.copy_(v, y); z = f(x)       ->   c = aten.copy(v, y); z = f(aten.select_scatter(x, c, 0, 1))

    y = aten.to(x, float32); aten.relu_(y)   with x in float32   ->   aten.relu_(x): y was x itself

The tensor must be the result of an operator that returns new memory, or the only view of such a tensor. A view of it from
before the change that is read afterwards is made again from the result of the change.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node
from torch.utils import _pytree as pytree

from anyshape.translate.known_values import returns_new_memory

_aten = torch.ops.aten
_SCATTERS: dict[Any, OpOverload] = {
    _aten.select.int: _aten.select_scatter.default,
    _aten.slice.Tensor: _aten.slice_scatter.default,
}
_PLAIN_VIEWS = (
    *_SCATTERS,
    _aten.permute.default,
    _aten.reshape.default,
    _aten.t.default,
    _aten.transpose.int,
    _aten.unsqueeze.default,
    _aten.view.default,
)
"""Views, or copies, in which each element has memory of its own: not so in `expand`. A copy is new memory itself."""
_SURE_VIEWS = tuple(view for view in _PLAIN_VIEWS if view is not _aten.reshape.default)
"""Those that never copy."""
_CONVERSIONS: tuple[Any, ...] = (_aten.to.dtype, _aten.to.device, _aten.to.other, _aten.to.dtype_layout)


class Unsuited(Exception):
    """A program that single operators cannot be decomposed in."""

    def __init__(self, node: Node) -> None:
        super().__init__(str(node.target))


def remove_writes(program: torch.export.ExportedProgram) -> None:
    """In place, with each step exact by itself. Raises Unsuited where a change may be seen by others."""
    order = {node: place for place, node in enumerate(program.graph.nodes)}
    for node in list(program.graph.nodes):
        if _is_idle_dropout(node) or _is_idle_conversion(node):
            _replace(node, node.args[0], order)
        elif _is_write(node):
            changed = node.args[0]
            if isinstance(changed, Node) and changed.target in _SCATTERS and not _is_private(changed):
                _write_through_views(node, changed, order)
                continue
            _check_private(node, changed, order)
            if node.target is not torch.ops.aten.detach_.default:
                _check_same_result(node)
                node.target = _functional(node)
                _renew_views(changed, node, order[node], order)
                _redirect(changed, node, order)
            else:
                _replace(node, changed, order)


def _write_through_views(node: Node, changed: Node, order: dict[Node, int]) -> None:
    """A change of a view, as a change of the tensor that it is a view of."""
    views = [changed]
    while isinstance(views[-1].args[0], Node) and views[-1].args[0].target in _SCATTERS:
        views.append(views[-1].args[0])
    base = views[-1].args[0]
    if not isinstance(base, Node) or not _is_private(base):
        raise Unsuited(node)
    _check_views(base, node, order)
    _check_readers(node, order)
    _check_same_result(node)
    node.target = _functional(node)
    written = node
    for view in views:
        with node.graph.inserting_after(written):
            scattered = node.graph.call_function(
                _SCATTERS[view.target], (view.args[0], written, *view.args[1:]), dict(view.kwargs)
            )
        whole = view.args[0]
        assert isinstance(whole, Node)
        scattered.meta = {**node.meta, "val": whole.meta["val"]}
        order[scattered] = order[node]
        written = scattered
    _renew_views(base, written, order[node], order)
    _redirect(base, written, order)


def _check_views(tensor: Node, node: Node, order: dict[Node, int]) -> None:
    """Raise Unsuited where what may be a view of the tensor, and cannot be made again, is read after the change."""
    for user in tensor.users:
        if user is node or order[user] > order[node] or not _may_be_view(user):
            continue
        if not _can_be_renewed(user, tensor) and _is_read_after(user, order[node], order):
            raise Unsuited(node)
        _check_views(user, node, order)


def _can_be_renewed(view: Node, tensor: Node) -> bool:
    """Whether a node is a view of the tensor for sure, and gives no size that is unknown before the program runs."""
    is_view = view.target in _SURE_VIEWS and bool(view.args) and view.args[0] is tensor
    return is_view and not view.meta.get("unbacked_bindings")


def _is_read_after(view: Node, place: int, order: dict[Node, int]) -> bool:
    return any(order[reader] > place for reader in view.users)


def _renew_views(tensor: Node, written: Node, place: int, order: dict[Node, int]) -> None:
    """Views of the tensor from before the change that are read after it, as views of what the change gives.

    A view that only other views read is made again as well, where one of those is.
    """
    for view in list(tensor.users):
        if order[view] >= place or not _can_be_renewed(view, tensor) or not _leads_to_reader(view, place, order):
            continue
        with written.graph.inserting_after(written):
            renewed = written.graph.create_node(
                "call_function", view.target, (written, *view.args[1:]), dict(view.kwargs)
            )
        renewed.meta = dict(view.meta)
        order[renewed] = place
        for reader in list(view.users):
            if order[reader] > place:
                reader.replace_input_with(view, renewed)
        _renew_views(view, renewed, place, order)


def _leads_to_reader(view: Node, place: int, order: dict[Node, int]) -> bool:
    """Whether a node after this place reads the view, or a view of it."""
    inner = [user for user in view.users if order[user] < place and _can_be_renewed(user, view)]
    return _is_read_after(view, place, order) or any(_leads_to_reader(each, place, order) for each in inner)


def _may_be_view(node: Node) -> bool:
    """Whether a node's result may share memory with an argument: it is no number, and no schema declares it new memory."""
    results = pytree.tree_leaves(node.meta["val"]) if "val" in node.meta else [None]
    is_number = all(
        isinstance(each, (bool, int, float, torch.SymBool, torch.SymInt, torch.SymFloat)) for each in results
    )
    return not is_number and not returns_new_memory(node)


def _check_readers(node: Node, order: dict[Node, int]) -> None:
    """Raise Unsuited unless what a change of a view returns, a view as well, is read before anything else is changed.

    `x[0] += y` is such: x[0] is changed, and what this returns is then written to x[0].
    """
    last = max((order[reader] for reader in node.users), default=-1)
    for reader in node.users:
        is_write = _is_write(reader) and reader.args[0] is not node
        if not is_write and not returns_new_memory(reader):
            raise Unsuited(node)
    if any(_is_write(each) and order[node] < place < last for each, place in order.items()):
        raise Unsuited(node)


def _is_write(node: Node) -> bool:
    return isinstance(node.target, OpOverload) and node.target._schema.is_mutable


def _is_idle_dropout(node: Node) -> bool:
    is_dropout = node.target is torch.ops.aten.dropout.default
    return is_dropout and len(node.args) > 2 and node.args[2] is False and _can_be_left_out(node)


def _is_idle_conversion(node: Node) -> bool:
    """Whether `to` returns its input itself: same dtype, device and layout, and no copy asked for."""
    target = node.target
    if not isinstance(target, OpOverload) or target not in _CONVERSIONS or not _can_be_left_out(node):
        return False
    assert isinstance(node.args[0], Node)
    names = [argument.name for argument in target._schema.arguments]
    given = dict(zip(names, node.args, strict=False)) | node.kwargs
    source, result = node.args[0].meta.get("val"), node.meta.get("val")
    if given.get("copy") or given.get("memory_format") is not None or not isinstance(source, torch.Tensor):
        return False
    return isinstance(result, torch.Tensor) and _stored_as(source) == _stored_as(result)


def _stored_as(tensor: torch.Tensor) -> tuple[torch.dtype, torch.device, torch.layout]:
    return tensor.dtype, tensor.device, tensor.layout


def _can_be_left_out(node: Node) -> bool:
    """Whether what a node takes can be in its place: as an output only the result of an operator, and each once."""
    taken = node.args[0]
    if not isinstance(taken, Node):
        return False
    return not _is_answered(node) or (taken.op == "call_function" and not _is_answered(taken))


def _is_answered(node: Node) -> bool:
    return any(user.op == "output" for user in node.users)


def _replace(node: Node, other: Any, order: dict[Node, int]) -> None:
    if not isinstance(other, Node) or (other.op == "placeholder" and _is_answered(node)):
        raise Unsuited(node)
    node.replace_all_uses_with(other)
    node.graph.erase_node(node)
    order.pop(node)


def _check_private(node: Node, changed: Any, order: dict[Node, int]) -> None:
    """Raise Unsuited unless the changed tensor is new memory, and no view of it from before is read afterwards."""
    if not isinstance(changed, Node) or not _is_private(changed):
        raise Unsuited(node)
    _check_views(changed, node, order)


def _is_private(node: Node) -> bool:
    """Whether a tensor is new memory, or a view of new memory that nothing else reads: `torch.cat(parts).view(n, -1)`."""
    if returns_new_memory(node):
        return True
    if node.target not in _PLAIN_VIEWS or not isinstance(node.args[0], Node):
        return False
    return len(node.args[0].users) == 1 and _is_private(node.args[0])


def _functional(node: Node) -> OpOverload:
    """The operator that returns what this one writes."""
    target = node.target
    assert isinstance(target, OpOverload)
    name = target._opname
    packet = getattr(torch.ops.aten, name[:-1], None) if name.endswith("_") and target.namespace == "aten" else None
    found = getattr(packet, target._overloadname, None)
    if found is None or found._schema.is_mutable:
        raise Unsuited(node)
    written = [(argument.name, str(argument.type)) for argument in target._schema.arguments]
    if written != [(argument.name, str(argument.type)) for argument in found._schema.arguments]:
        raise Unsuited(node)
    assert isinstance(found, OpOverload)
    return found


def _check_same_result(node: Node) -> None:
    """Raise Unsuited where the other operator would return another dtype or shape than that of the changed tensor."""
    changed = node.args[0]
    assert isinstance(changed, Node)
    own = changed.meta["val"]
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda each: each.meta["val"])
    with own.fake_mode:
        found = _functional(node)(*args, **kwargs)
    is_same = isinstance(found, torch.Tensor) and found.dtype == own.dtype and found.dim() == own.dim()
    if not is_same or not all(map(is_same_size, found.shape, own.shape)):
        raise Unsuited(node)


def is_same_size(found: Any, own: Any) -> bool:
    """Whether a size of the result is that of the changed tensor, which a write in place cannot change.

    Where a condition says that a size is 1, torch takes that of a new result for the number, and the tensor keeps its symbol.
    """
    is_one = isinstance(found, int) and found == 1 and isinstance(own, torch.SymInt) and own.node.hint == 1
    return is_one or str(found) == str(own)


def _redirect(changed: Node, node: Node, order: dict[Node, int]) -> None:
    """Make the nodes after a change, which read the changed tensor, read the result of the change."""
    for user in list(changed.users):
        if user is not node and order[user] > order[node]:
            user.replace_input_with(changed, node)
