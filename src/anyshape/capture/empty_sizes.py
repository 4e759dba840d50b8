"""Captures in which a size may be 0.

torch assumes that sizes are positive, so `if past.shape[1] == 0` is no guard. Within `empty_sizes_open` it is one, and both
sides are captured. Conditions without effect become guards there, too, which makes larger files: it is entered only after
a comparison at a size of 0 has failed.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from anyshape.intercept.patching import patched


def empty_sizes_open() -> AbstractContextManager[None]:
    """Within this, symbols of sizes are not assumed to be positive."""
    from torch.fx.experimental import symbolic_shapes
    from torch.utils._sympy.symbol import SymT, make_symbol

    def make_size(prefix: SymT, number: int, **assumed: Any) -> Any:
        if prefix == SymT.SIZE:
            assumed["positive"] = None  # not "nonnegative", for which torch divides inequalities by sizes that may be 0
        return make_symbol(prefix, number, **assumed)

    return patched([(symbolic_shapes, "make_symbol", make_size)])
