"""Logarithms of a sigmoid in a captured program, written so that onnxruntime computes the small values, too.

    log(sigmoid(x))  ->  log(1 / (1 + exp(-x)))    also log2 and log10, in float32 and float64

onnxruntime (to 1.31) computes Sigmoid of float32 by a formula that ends near -18, where the sigmoid is 1.5e-8: the logarithm
is -inf from there on. torch computes 1 / (1 + exp(-x)), whose logarithm is right down to -88, and -inf below in torch as
well; for this reason it is not replaced by log_sigmoid. Other uses of the sigmoid keep the Sigmoid node: an error of
1.5e-8 has no effect on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.fx import Node

from anyshape.translate.known_values import value_of

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_aten = torch.ops.aten
_LOGARITHMS = (_aten.log.default, _aten.log2.default, _aten.log10.default)
_TYPES = (torch.float32, torch.float64)


def write_sigmoids_of_logarithms(program: ExportedProgram) -> None:
    """Rewrite the program in place."""
    graph = program.graph_module.graph
    found = [node for node in graph.nodes if node.target in _LOGARITHMS and _is_sigmoid(node.args[0])]
    for node in found:
        node.replace_input_with(node.args[0], _write_out(node, node.args[0]))
    if found:
        graph.eliminate_dead_code()
        program.graph_module.recompile()


def _is_sigmoid(given: object) -> bool:
    if not isinstance(given, Node) or given.target is not _aten.sigmoid.default:
        return False
    before, after = value_of(given.args[0]), value_of(given)
    return before is not None and after is not None and before.dtype == after.dtype and after.dtype in _TYPES


def _write_out(before: Node, sigmoid: Node) -> Node:
    """1 / (1 + exp(-x)), in front of a node."""
    value = sigmoid.args[0]
    for operator, more in (
        (_aten.neg.default, ()),
        (_aten.exp.default, ()),
        (_aten.add.Tensor, (1.0,)),
        (_aten.reciprocal.default, ()),
    ):
        with before.graph.inserting_before(before):
            made = before.graph.call_function(operator, (value, *more))
        made.meta = dict(sigmoid.meta)
        value = made
    return made
