"""Constants folded, repeated and dead nodes dropped, weights stored once.

onnxscript's rewrite rules are left out on purpose: they take `x + 1e-8` for `x` (their constants match within 1e-8), and
neighbouring slices for a split though one may be empty (onnxscript 0.7). Runtimes fuse for themselves when they load.
"""

from __future__ import annotations

from collections.abc import Collection

from anyshape.intercept.quiet import quiet_libraries
from anyshape.optimize.plain_nodes import count_axes_from_the_front, simplify_nodes
from anyshape.records.export import Exported

_LARGEST_FOLDED_INPUT = 64 * 1024
_LARGEST_FOLDED_OUTPUT = 64 * 1024 * 1024
_ROUNDS = 2


def optimize(exported: Exported, never_empty: Collection[str] = ()) -> Exported:
    """The same answers from fewer nodes. The model is changed in place, and given back. `never_empty`: dims from 1 on."""
    import onnx_ir.passes.common as passes
    from onnx_ir.passes import Sequential
    from onnxscript.optimizer import fold_constants

    model = exported.model
    names = [value.name for value in (*model.graph.inputs, *model.graph.outputs)]
    with quiet_libraries():
        passes.InlinePass()(model)
        for _ in range(_ROUNDS):
            fold_constants(model, input_size_limit=_LARGEST_FOLDED_INPUT, output_size_limit=_LARGEST_FOLDED_OUTPUT)
            passes.RemoveUnusedNodesPass()(model)
        simplify_nodes(model, never_empty)
        passes.RemoveUnusedNodesPass()(model)
        Sequential(
            passes.RemoveUnusedFunctionsPass(),
            passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
            passes.LiftSubgraphInitializersToMainGraphPass(),
            passes.DeduplicateInitializersPass(),
            passes.CommonSubexpressionEliminationPass(),
            passes.OutputFixPass(),
            passes.NameFixPass(),
        )(model)
    count_axes_from_the_front(model)
    for value, name in zip((*model.graph.inputs, *model.graph.outputs), names, strict=True):
        value.name = name
    return exported
