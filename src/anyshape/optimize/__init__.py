"""Stage: make the ONNX model smaller and faster, without changing what it promises.

Files, in the order in which data flows:

    fold         fold constants and batch norms, drop repeated and dead nodes
    plain_nodes  needless moves and reshapes; fused nodes of onnxruntime that are slower than their parts
"""

from anyshape.optimize.fold import fold_norms, optimize
from anyshape.optimize.plain_nodes import split_skip_norms

__all__ = ["fold_norms", "optimize", "split_skip_norms"]
