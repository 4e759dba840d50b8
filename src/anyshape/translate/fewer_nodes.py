"""Three passes on a captured program before it is translated.

    insert_promotions      casts that type promotion implies become nodes
    take_out_idle_nodes    nodes that give back their input go
    keep_assertions        assertions about values become nodes of the file, named with their words, that fail as they do:

    _assert_async(truth, "too large"); return x  ->  return refused(x, [truth], ["too large"])
                                                 ->  truth -> Gather named with the words -> 0;  x -> Gather([x], 0)

The Gather looks up a 0 or a 1 in a table of one entry, and fails at 1; all outputs depend on it, so that no optimizer leaves it
out. Conditions that torch asserts for itself (`_assert_scalar`) are left to guards.

A condition that a size computed from values equals another size (`torch._check(x[mask].numel() == n)`) is knowledge for
torch: it writes n for both from then on. Its own assertion of that condition still has both, and takes the place of ours.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18 as op
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.onnx._internal.fx.passes import type_promotion

from anyshape.leaves.own_operators import refused
from anyshape.records.captured import asserts
from anyshape.translate.decomposed_nodes import name_outputs
from anyshape.translate.known_values import ANDS, find_count, is_true_everywhere, same_shape, same_size, value_of

_COMPARISONS = frozenset(
    getattr(getattr(torch.ops.aten, name), overload)
    for name in ("eq", "ne", "lt", "le", "gt", "ge")
    for overload in ("Scalar", "Tensor")
)
_DTYPES = {bool: torch.bool, int: torch.int64, float: torch.float32}
"""Of Python numbers, as torch's pass has them: those of another one than the operator computes in are tensors already."""
_END = 2**63 - 1
_MASK = 3
_NO_WORDS = "RuntimeError: Expected Tensor with single nonzero value, but got zero"


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

    def _rerun_node_after_type_promotion(self, node: Node, expected_out_dtype: torch.dtype) -> None:
        """1.0 - mask of integers, decomposed to `sub(1.0, mask)`, which has no overload: a tensor takes the place of 1.0."""
        node.args = tuple(
            self._as_tensor(node, given) if _takes_tensor(node, place) and type(given) in _DTYPES else given
            for place, given in enumerate(node.args)
        )
        super()._rerun_node_after_type_promotion(node, expected_out_dtype)

    def _as_tensor(self, node: Node, number: Any) -> Node:
        with node.graph.inserting_before(node):
            dtype = {"dtype": _DTYPES[type(number)]}
            return self._create_node(
                node.graph, "call_function", torch.ops.aten.scalar_tensor.default, (number,), dtype
            )


def _takes_tensor(node: Node, place: int) -> bool:
    """Whether the operator has a tensor as this argument."""
    assert isinstance(node.target, torch._ops.OpOverload)
    return isinstance(node.target._schema.arguments[place].type, torch.TensorType)


def _with_like_bounds(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """clamp(x, 0, 0.5)  ->  clamp(x, 0.0, 0.5): torch's pass (to 2.13) makes a tensor of one bound, and finds no overload."""
    if not any(isinstance(bound, float) for bound in args[1:]):
        return args
    return (args[0], *(float(bound) if isinstance(bound, int) else bound for bound in args[1:]))


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


_aten = torch.ops.aten
_ATTENTION = _aten.scaled_dot_product_attention.default


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


def keep_assertions(program: ExportedProgram) -> None:
    """In place, through nested modules: outputs depend on the assertions, which go."""
    for module in program.graph_module.modules():
        if isinstance(module, GraphModule):
            found = [node for node in module.graph.nodes if asserts(node)]
            if found:
                _keep(module, found)
    name_outputs(program)


def _keep(module: GraphModule, assertions: Sequence[Node]) -> None:
    texts = [str(node.args[1]) if len(node.args) > 1 else _NO_WORDS for node in assertions]
    for node, text in zip(assertions, texts, strict=True):
        _take_condition_of_torch(module, node, text.partition("\n")[2])
    truths, words = [node.args[0] for node in assertions], [text.partition("\n")[0] for text in texts]
    output = module.graph.output_node()
    made: dict[Node, Node] = {}

    def depending(node: Node) -> Node:
        if not isinstance(node.meta.get("val"), torch.Tensor):
            return node
        if node not in made:
            with module.graph.inserting_before(output):
                made[node] = module.graph.call_function(refused, (node, truths, words))
            made[node].meta = dict(node.meta)
        return made[node]

    output.args = torch.fx.map_arg(output.args, depending)
    for node in assertions:
        module.graph.erase_node(node)
    module.recompile()


def _take_condition_of_torch(module: GraphModule, assertion: Node, condition: str) -> None:
    """In place: scalar_tensor(sym_ite(n == n, 1, 0)) -> the same of the condition that torch asserts with these words."""
    truth = assertion.args[0]
    chosen = truth.args[0] if isinstance(truth, Node) and truth.args else None
    tested = chosen.args[0] if isinstance(chosen, Node) and chosen.target is torch.sym_ite else None
    if not (isinstance(tested, Node) and tested.target is operator.eq and tested.args[0] is tested.args[1]):
        return
    for node in module.graph.nodes:
        if node.target is torch.ops.aten._assert_scalar.default and f"expression {condition} on" in str(node.args[1]):
            assert isinstance(chosen, Node)
            chosen.update_arg(0, node.args[0])
            module.graph.lint()
            return
    raise NotImplementedError(f"a check of {condition}, of which torch has kept no part")


def translate_refused(x: ir.Value, truths: Sequence[ir.Value], words: Sequence[str]) -> ir.Value:
    import onnxscript.evaluator

    zero = op.Constant(value=ir.tensor([0], dtype=ir.DataType.INT64))
    one = op.Constant(value=ir.tensor([1], dtype=ir.DataType.INT64))
    for place, (truth, text) in enumerate(zip(truths, words, strict=True)):
        is_false = op.Not(op.Cast(op.Reshape(truth, one), to=ir.DataType.BOOL.value))
        node = ir.node(
            "Gather",
            [zero, op.Cast(is_false, to=ir.DataType.INT64.value)],
            name=f"{x.name}_{place}/anyshape AS419: the model refuses these values: {text}",
        )
        zero = node.outputs[0]
        zero.type, zero.shape = ir.TensorType(ir.DataType.INT64), ir.Shape([1])
        onnxscript.evaluator.default().nodes.append(node)  # torch.onnx's recorder
    return op.Gather(op.Unsqueeze(x, [0]), op.Squeeze(zero), axis=0)
