"""Assertions about values in a captured program -> nodes of the file that fail where the assertion does, named with its words.

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
from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx_ir as ir
import torch
from onnxscript import opset18 as op
from torch.fx import GraphModule, Node

from anyshape.leaves.own_operators import refused
from anyshape.records.captured import asserts
from anyshape.translate.decomposed_nodes import name_outputs

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_NO_WORDS = "RuntimeError: Expected Tensor with single nonzero value, but got zero"


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
