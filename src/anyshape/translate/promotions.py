"""Write the casts of type promotion into a program (int64 + float32 -> Cast, Add), looking only at operators that promote.

torch.onnx's pass runs every node again on fake tensors, which takes three times as long as the translation. Every node has
its value from the capture already; only nodes whose inputs are cast are run again.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.onnx._internal.fx.passes import type_promotion

from anyshape.translate.decomposed_nodes import name_outputs


class _PromotingInterpreter(type_promotion._TypePromotionInterpreter):  # type: ignore[misc]
    """torch's interpreter, which takes the values of nodes that stay as they are from the capture."""

    def run_node(self, n: torch.fx.Node) -> Any:
        if n.op != "call_function" or "val" not in n.meta:
            return super().run_node(n)
        if n.target is torch.ops.aten.clamp.default:
            n.args = _with_like_bounds(n.args)
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
