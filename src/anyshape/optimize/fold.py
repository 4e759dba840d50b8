"""Constants folded, shape arithmetic simplified, dead nodes dropped: onnxscript's optimizer, told what it may not touch.

Names of inputs and outputs are part of the promise and stay; a fold that would make the file larger is left alone.
"""

from __future__ import annotations

from anyshape.modules.quiet import quiet_logger
from anyshape.records.exported import Exported

_LARGEST_FOLDED_INPUT = 64 * 1024
_LARGEST_FOLDED_OUTPUT = 64 * 1024 * 1024


def optimize(exported: Exported) -> Exported:
    """The same answers from fewer nodes. The model is changed in place, and given back."""
    import onnxscript.optimizer

    names = [value.name for value in (*exported.model.graph.inputs, *exported.model.graph.outputs)]
    with quiet_logger("onnxscript"), quiet_logger("onnx_ir"):
        onnxscript.optimizer.optimize_ir(
            exported.model,
            input_size_limit=_LARGEST_FOLDED_INPUT,
            output_size_limit=_LARGEST_FOLDED_OUTPUT,
        )
    for value, name in zip((*exported.model.graph.inputs, *exported.model.graph.outputs), names, strict=True):
        value.name = name
    return exported
