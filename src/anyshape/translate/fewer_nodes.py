"""Passes on a captured program before it is translated: casts of type promotion written out, nodes that give back their input
taken out, the length of an input that is only read as a length taken as a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.onnx._internal.fx.passes import type_promotion

from anyshape.translate.decomposed_nodes import name_outputs
from anyshape.translate.known_values import ANDS, find_count, is_true_everywhere, same_shape, same_size, value_of

if TYPE_CHECKING:
    from torch.export import ExportedProgram


class _PromotingInterpreter(type_promotion._TypePromotionInterpreter):  # type: ignore[misc]
    """torch's interpreter, which takes the values of nodes that stay as they are from the capture."""

    def run_node(self, n: torch.fx.Node) -> Any:
        if n.op != "call_function" or "val" not in n.meta:
            return super().run_node(n)
        if n.target is torch.ops.aten.clamp.default:
            n.args = _with_like_bounds(n.args)
        if n.target in _COMPARISONS:
            n.args = _rounded_like_eager(n, *n.args)
            self.env.update({side: side.meta["val"] for side in n.all_input_nodes if side not in self.env})
        rule = type_promotion.get_type_promotion_rule(n, self.type_promotion_table)
        if rule is not None:
            with self._set_current_node(n):
                self._maybe_promote_node(n, rule)
        return n.meta["val"]


def _with_like_bounds(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """clamp(x, 0, 0.5)  ->  clamp(x, 0.0, 0.5): torch's pass (to 2.13) makes a tensor of one bound, and finds no overload."""
    if not any(isinstance(bound, float) for bound in args[1:]):
        return args
    return (args[0], *(float(bound) if isinstance(bound, int) else bound for bound in args[1:]))


_COMPARISONS = frozenset(
    getattr(getattr(torch.ops.aten, name), overload)
    for name in ("eq", "ne", "lt", "le", "gt", "ge")
    for overload in ("Scalar", "Tensor")
)


def _rounded_like_eager(node: Node, *sides: Any) -> tuple[Any, ...]:
    """x == 0.1  ->  x == 0.0999755859375 for x in float16: PyTorch compares in the dtype of x, torch's pass in float32."""
    values = [side.meta["val"] if isinstance(side, Node) else side for side in sides]
    if not all(isinstance(value, (torch.Tensor, int, float)) for value in values):  # symbols stay open
        return sides
    common = torch.result_type(*values)
    if common not in (torch.float16, torch.bfloat16):
        return sides
    return tuple(_rounded(side, value, common, node) for side, value in zip(sides, values, strict=True))


def _rounded(side: Any, value: Any, dtype: torch.dtype, before: Node) -> Any:
    if not isinstance(value, torch.Tensor):
        return torch.tensor(value, dtype=dtype).item()
    if value.dtype == dtype:
        return side
    with before.graph.inserting_before(before):
        cast = before.graph.call_function(torch.ops.prims.convert_element_type.default, (side, dtype))
    cast.meta = {**before.meta, "val": value.to(dtype)}
    return cast


@lru_cache(maxsize=1)
def _rules() -> Any:
    return type_promotion.TypePromotionTable()


def insert_promotions(program: ExportedProgram) -> None:
    """In place, through nested modules: explicit casts where an operator promotes its inputs."""
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            promotion = type_promotion.InsertTypePromotion(module, _rules())
            promotion.interpreter = _PromotingInterpreter(module, _rules())
            promotion.run()
    # A sum in float16 is cast to float32 and back: where it is an output, the cast back is the output.
    name_outputs(program)


def replace_length(given: ir.Value, number: ir.Value) -> None:
    """Put `number`, an int64 vector of one, wherever a graph reads the length of its input `given`.

    Raises TypeError where the graph reads anything else of it.
    """
    pending = [(given, number)]
    while pending:
        value, length = pending.pop()
        for use in tuple(value.uses()):
            node = use.node
            output = node.outputs[0]
            if node.op_type == "Shape":
                _rewrite(node, "Identity", length)
            elif node.op_type == "Identity" and not output.is_graph_output():
                pending.append((output, length))
            elif node.op_type == "Reshape" and use.idx == 0:
                _rewrite(node, "Add", length)
                pending.append((output, output))
            else:
                raise TypeError(f"a number is read as a tensor by {node.op_type}")


def _rewrite(node: ir.Node, op_type: str, number: ir.Value) -> None:
    node.op_type = op_type
    node.attributes.clear()
    node.replace_input_with(0, number)
    node.outputs[0].type, node.outputs[0].shape = ir.TensorType(ir.DataType.INT64), ir.Shape([1])


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
