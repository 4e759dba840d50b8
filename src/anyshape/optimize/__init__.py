"""Stage: make the ONNX model smaller and faster, without changing what it promises.

Files, in the order in which data flows:

    fold          fold constants, drop repeated and dead nodes
    folded_norms  batch norms -> weights of the layer before
    plain_nodes   needless moves and reshapes
    fused_model   the file of onnxruntime's optimizer, with names and metadata put back
"""

from anyshape.optimize.fold import optimize
from anyshape.optimize.folded_norms import fold_norms

__all__ = ["fold_norms", "optimize"]
