"""Smaller and faster, promise kept."""

from anyshape.optimize.fold import optimize

__all__ = ["optimize"]
