"""Operations of a captured program that give back their input, taken out before the program is translated.

    slice(x, axis, 0, end of x)             ->  x
    expand(x, its own shape)                ->  x
    x + 0, x * 1                            ->  x                       integers; floats for x * 1 alone
    mask & True                             ->  mask
    mask[arange(batch)[:, None], arange(n)] ->  mask, with axes of 1 between its own
    attention(q, k, v, expand(mask))        ->  attention(q, k, v, mask)
    attention(q, k, v, True)                ->  attention(q, k, v)

Each rule asks for the same shape and dtype on both sides. What the program gives back keeps its own node: the signature
of the program has its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from anyshape.translate.known_values import ANDS, find_count, is_true_everywhere, same_shape, same_size, value_of

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_aten = torch.ops.aten
_END = 2**63 - 1
_ATTENTION = _aten.scaled_dot_product_attention.default
_MASK = 3


def take_out_idle_nodes(program: ExportedProgram, names: Mapping[str, Any]) -> None:
    """Rewrite the program in place. `names` maps torch's symbols to expressions of the dims."""
    graph = program.graph_module.graph
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        if node.target is _ATTENTION:
            _simplify_mask(node)
            continue
        if node.target is _aten.index.Tensor:
            kept = _indexed_in_full(node, names)
        else:
            rule = _RULES.get(node.target)
            kept = rule(node) if rule is not None else None
        if kept is not None and _may_replace(node, kept, names):
            node.replace_all_uses_with(kept)
    graph.eliminate_dead_code()
    program.graph_module.recompile()


def _may_replace(node: Node, kept: Node, names: Mapping[str, Any]) -> bool:
    """Whether both have one shape and dtype, and the node is no answer of the program."""
    before, after = value_of(node), value_of(kept)
    if before is None or after is None or any(user.op == "output" for user in node.users):
        return False
    return before.dtype == after.dtype and same_shape(before, after, names)


def _sliced_in_full(node: Node) -> Node | None:
    _, _, start, end, step = (*node.args, *(None,) * 5)[:5]
    if node.kwargs or start not in (None, 0) or step not in (None, 1):
        return None
    return _first(node) if end is None or end == _END else None


def _first(node: Node) -> Node | None:
    first = node.args[0]
    return first if isinstance(first, Node) else None


def _added_nothing(node: Node) -> Node | None:
    value = value_of(node)
    is_integer = value is not None and not value.dtype.is_floating_point and not value.dtype.is_complex
    return _first(node) if is_integer and not node.kwargs and _is_number(node.args[1], 0) else None


def _multiplied_by_one(node: Node) -> Node | None:
    return _first(node) if not node.kwargs and _is_number(node.args[1], 1) else None


def _is_number(given: Any, number: int) -> bool:
    return isinstance(given, (int, float)) and given == number


def _and_true(node: Node) -> Node | None:
    left, right = node.args[0], node.args[1]
    kept = right if is_true_everywhere(left) else left if is_true_everywhere(right) else None
    return kept if isinstance(kept, Node) else None


_RULES: dict[Any, Callable[[Node], Node | None]] = {
    _aten.slice.Tensor: _sliced_in_full,
    _aten.expand.default: _first,
    _aten.add.Tensor: _added_nothing,
    _aten.mul.Tensor: _multiplied_by_one,
    **dict.fromkeys(ANDS, _and_true),
}


def _indexed_in_full(node: Node, names: Mapping[str, Any]) -> Node | None:
    """x[arange(a)[:, None, None], arange(b)]  ->  x with the axes in between, if x is of the sizes a and b."""
    x: Any = node.args[0]
    indices: Any = node.args[1]
    value, given = value_of(x), value_of(node)
    if value is None or given is None or not isinstance(x, Node) or len(indices) != value.dim():
        return None
    counts = [find_count(index) for index in indices]
    dims = [index.meta["val"].dim() if count else 0 for count, index in zip(counts, indices, strict=True)]
    axes = [count.axis + given.dim() - each for count, each in zip(counts, dims, strict=True) if count]
    if len(axes) != value.dim() or axes != sorted(set(axes)):
        return None
    if not all(same_size(given.shape[axis], size, names) for axis, size in zip(axes, value.shape, strict=True)):
        return None
    return _with_axes(node, x, [axis for axis in range(given.dim()) if axis not in axes])


def _with_axes(node: Node, x: Node, axes: list[int]) -> Node:
    """x with axes of the size 1 at these places."""
    for axis in axes:
        with node.graph.inserting_before(node):
            wider = node.graph.call_function(_aten.unsqueeze.default, (x, axis))
        wider.meta = {**node.meta, "val": _aten.unsqueeze.default(x.meta["val"], axis)}
        x = wider
    return x


def _simplify_mask(node: Node) -> None:
    """Attention spreads its mask over batch, heads and rows by itself; a mask of True hides nothing."""
    if len(node.args) <= _MASK:
        return
    mask: Any = node.args[_MASK]
    while isinstance(mask, Node):
        if is_true_everywhere(mask):
            mask = None
        elif mask.target is _aten.expand.default:
            mask = mask.args[0]
        elif mask.target in ANDS and (other := _and_true(mask)) is not None:
            mask = other
        else:
            break
    node.update_arg(_MASK, mask)
