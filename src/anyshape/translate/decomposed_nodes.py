"""Decompose single operators of a captured program, in place, instead of tracing the whole program again.

    aten.__and__(a, b)   ->   aten.bitwise_and(a, b)        nearly all other operators have a translation and stay

torch's own pass (`run_decompositions`) runs every operator once more, to find the few that need it, and takes longer than the
capture. It is left to programs that need more than this: operators that change values which others see, control flow, custom
operators. Equal operators on equal inputs, as in the layers of a stack, are traced once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch.fx import Graph, GraphModule, Node
from torch.utils import _pytree as pytree

from anyshape.translate.known_values import is_composite
from anyshape.translate.private_writes import Unsuited, remove_writes

Table = Mapping[Any, Callable[..., Any]]

_ONE_TO_ONE = ("aten::reshape", "aten::contiguous")
"""Composite operators whose translation is exact at every size; what they come down to depends on memory layouts."""
_KEPT_META = ("stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "from_node")


def decompose_nodes(
    program: torch.export.ExportedProgram, table: Table, is_translated: Callable[[OpOverload], bool]
) -> bool:
    """Whether the program was decomposed in place; False where it needs torch's own pass, which then finds it unharmed."""
    try:
        _check_plain(program)
        remove_writes(program)
        expansions = _Expansions(table, is_translated, _fake_mode(program))
        work = [(node, expansions.find(node)) for node in program.graph.nodes if expansions.is_needed(node)]
    except Exception:  # whatever it is, torch's own pass meets it too, and says so
        name_outputs(program)  # of several writes the first may have been removed, which gives outputs other nodes
        program.graph_module.recompile()
        return False
    for node, expansion in work:
        _inline(node, expansion)
    program.graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output") or is_check(node.target))
    name_outputs(program)
    program.graph_module.recompile()
    return True


def _fake_mode(program: torch.export.ExportedProgram) -> AbstractContextManager[Any]:
    from torch._guards import detect_fake_mode

    mode: AbstractContextManager[Any] | None = detect_fake_mode([node.meta.get("val") for node in program.graph.nodes])
    return mode or nullcontext()


def _check_plain(program: torch.export.ExportedProgram) -> None:
    """Raise Unsuited where the program calls functions with graphs of their own, or the steps of `vmap` and the like."""
    for node in program.graph.nodes:
        if node.op not in ("placeholder", "call_function", "output") or isinstance(node.target, HigherOrderOperator):
            raise Unsuited(node)
        is_operator = isinstance(node.target, OpOverload) or node.target is operator.getitem
        if node.op == "call_function" and not is_operator and isinstance(node.meta.get("val"), torch.Tensor):
            raise Unsuited(node)


@dataclass(frozen=True)
class _Expansions:
    """Traced decompositions, each once. `fake_mode` is that of the capture, to which tensors that they make belong, too."""

    table: Table
    is_translated: Callable[[OpOverload], bool]
    fake_mode: AbstractContextManager[Any]
    known: dict[Any, Graph] = field(default_factory=dict)

    def is_needed(self, node: Node) -> bool:
        """Whether an operator of the program has no translation that is used."""
        target = node.target
        if node.op != "call_function" or not isinstance(target, OpOverload) or is_check(target):
            return False
        is_decomposed = target in self.table or is_composite(target)
        if is_decomposed and node.meta.get("unbacked_bindings"):  # traced again, it would give another unknown size
            raise Unsuited(node)
        if target in self.table:
            return True
        if not self.is_translated(target) and not is_composite(target):
            raise Unsuited(node)
        return is_composite(target) and not (self.is_translated(target) and _is_kept_whole(target))

    def find(self, node: Node) -> Graph:
        """What replaces a node: a graph with a placeholder for each node among its arguments, in order."""
        flat, spec = pytree.tree_flatten((node.args, node.kwargs))
        inputs = _nodes_among(flat)
        key = (
            node.target,
            spec,
            tuple(("node", inputs.index(each)) if isinstance(each, Node) else (type(each), each) for each in flat),
            tuple(_described(each.meta["val"]) for each in inputs),
        )
        if key not in self.known:
            self.known[key] = self._trace(node, flat, spec)
        self._check_result(node, self.known[key])
        return self.known[key]

    def _trace(self, node: Node, flat: list[Any], spec: Any) -> Graph:
        from torch._dispatch.python import enable_python_dispatcher
        from torch.fx.experimental.proxy_tensor import make_fx
        from torch.fx.traceback import preserve_node_meta, set_current_meta

        function: Any = self.table.get(node.target, node.target)

        def run(*values: Any) -> Any:
            given = iter(values)
            filled = [next(given) if isinstance(each, Node) else each for each in flat]
            args, kwargs = pytree.tree_unflatten(filled, spec)
            return function(*args, **kwargs)

        values = [each.meta["val"] for each in _nodes_among(flat)]
        with self.fake_mode, enable_python_dispatcher(), preserve_node_meta(), set_current_meta(node):
            traced = make_fx(run, decomposition_table=dict(self.table), _allow_non_fake_inputs=True)(*values)
        self._check(traced, node)
        return traced.graph

    def _check(self, traced: GraphModule, node: Node) -> None:
        """Raise Unsuited where the traced nodes are not all such as can be translated."""
        for each in traced.graph.nodes:
            is_call = each.op == "call_function" and not isinstance(each.target, HigherOrderOperator)
            if not is_call and each.op not in ("placeholder", "output"):
                raise Unsuited(node)
            if isinstance(each.target, OpOverload) and not self._may_stay(each.target):
                raise Unsuited(node)

    def _check_result(self, node: Node, expansion: Graph) -> None:
        """Raise Unsuited where a node's users cannot take the result of its expansion."""
        result = expansion.output_node().args[0]
        given = pytree.tree_leaves(result)
        is_answered = any(user.op == "output" for user in node.users)
        if any(not isinstance(each, Node) or (each.op == "placeholder" and is_answered) for each in given):
            raise Unsuited(node)
        if not isinstance(result, Node) and any(user.target is not operator.getitem for user in node.users):
            raise Unsuited(node)

    def _may_stay(self, target: OpOverload) -> bool:
        return is_check(target) or (not target._schema.is_mutable and self.is_translated(target))


def _is_kept_whole(target: OpOverload) -> bool:
    """Whether torch's own pass, too, leaves a composite operator as it is."""
    from torch._export.utils import _is_preservable_cia_op

    return target.name() in _ONE_TO_ONE or bool(_is_preservable_cia_op(target))


def is_check(target: Any) -> bool:
    """Checks at run time, which translation leaves out: guards have the same conditions."""
    return isinstance(target, OpOverload) and (
        "assert" in target.name() or target.name().startswith("aten::sym_constrain_range")
    )


def _described(value: Any) -> Any:
    """What a decomposition can see of an input."""
    if isinstance(value, torch.Tensor):
        sizes = tuple(map(str, value.shape)), tuple(map(str, value.stride()))
        return value.dtype, value.device, sizes, value.layout, value.is_conj(), value.is_neg()
    if isinstance(value, (list, tuple)):
        return tuple(map(_described, value))
    return type(value), str(value)


def _nodes_among(flat: Sequence[Any]) -> list[Node]:
    return [each for each in flat if isinstance(each, Node)]


def _inline(node: Node, expansion: Graph) -> None:
    """The expansion's nodes before the node, its result in place of the node's."""
    meta = {name: node.meta[name] for name in _KEPT_META if name in node.meta}
    placeholders = [each for each in expansion.nodes if each.op == "placeholder"]
    inputs = _nodes_among(pytree.tree_leaves((node.args, node.kwargs)))
    known: dict[Node, Any] = dict(zip(placeholders, inputs, strict=True))
    with node.graph.inserting_before(node):
        for each in expansion.nodes:
            if each.op == "call_function":
                copied = node.graph.node_copy(each, known.__getitem__)
                copied.meta = {**each.meta, **meta}
                known[each] = copied
    result: Any = expansion.output_node().args[0]
    if isinstance(result, Node):
        node.replace_all_uses_with(known[result])
    else:
        for user in list(node.users):
            user.replace_all_uses_with(known[result[user.args[1]]])
            node.graph.erase_node(user)
    node.graph.erase_node(node)


def name_outputs(program: torch.export.ExportedProgram) -> None:
    """The signature names outputs by their nodes, of which some are others now."""
    given = program.graph.output_node().args[0]
    for spec, node in zip(program.graph_signature.output_specs, given, strict=True):
        if isinstance(node, Node) and hasattr(spec.arg, "name"):
            spec.arg.name = node.name
