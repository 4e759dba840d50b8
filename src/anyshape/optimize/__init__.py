"""Smaller and faster, promise kept."""

from anyshape.optimize.fold import optimize
from anyshape.optimize.folded_norms import fold_norms

__all__ = ["fold_norms", "optimize"]
