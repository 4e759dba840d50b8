"""Stage: make the ONNX model smaller and faster, without changing what it promises.

Files, in the order in which data flows:

    fold         fold constants and batch norms, drop repeated and dead nodes
    plain_nodes  needless moves and reshapes
"""

from anyshape.optimize.fold import fold_norms, optimize

__all__ = ["fold_norms", "optimize"]
