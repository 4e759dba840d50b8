"""Whether a module refuses inputs because of values that we made: then it is our fault, and no limit of the module.

The message of the error is the suspicion, an experiment the proof: the same sizes with values that cannot be too large.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch

from anyshape.findings import Finding
from anyshape.inputs.axis_messages import format_sizes
from anyshape.inputs.declared import Declared, Sizes
from anyshape.modules.state import kept

_SPEAKS_OF_VALUES = re.compile(
    r"out of (range|bounds)|index .* is (out|not)|lengths?\b.*(>|<|greater|less|longer|larger|positive|must)"
    r"|offsets?\b|must be (in|within) .*range|indices? (must|should)|Class values|negative|duplicate|sorted",
    re.IGNORECASE,
)


def is_bad_value(error: BaseException) -> bool:
    """Whether an error speaks of values rather than of sizes: an index out of range, a length beyond the sequence."""
    return isinstance(error, IndexError) or bool(_SPEAKS_OF_VALUES.search(str(error)))


def explain_bad_inputs(
    module: Callable[..., Any], declared: Declared, sizes: Sizes, error: BaseException
) -> Finding | None:
    """The finding for inputs that we made and whose values the module refuses; None if the values are not to blame."""
    whole = [leaf for leaf in declared.tensor_leaves if leaf.dtype.startswith(("int", "uint"))]
    if declared.source == "function" or not whole or not is_bad_value(error):
        return None
    if not any(_answers(module, declared, sizes, value) for value in (0, 1)):
        return None
    names = ", ".join(repr(leaf.path) for leaf in whole)
    arguments = ", ".join(f"{name}={size}" for name, size in declared.example_sizes.items())
    return Finding(
        code="AS027",
        name="made-values-refused",
        what=f"the module refuses the values made for {names} at {format_sizes(sizes)}.",
        why=f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no message'}.",
        fix=f"give a function of sizes, which makes values that are legal:  def inputs({arguments}): return ...",
        is_fix_untried=True,
        sizes=dict(sizes),
    )


def _answers(module: Callable[..., Any], declared: Declared, sizes: Sizes, value: int) -> bool:
    """Whether the module answers at these sizes with all whole numbers at one small value."""
    flat = declared.flat(declared.make(sizes, 1))
    tame = [
        torch.full_like(made, value) if leaf.kind == "tensor" and leaf.dtype.startswith(("int", "uint")) else made
        for leaf, made in zip(declared.leaves, flat, strict=True)
    ]
    try:
        with kept(module) if isinstance(module, torch.nn.Module) else nullcontext(), torch.no_grad():
            declared.call(module, declared.rebuild(tame))
    except Exception:
        return False
    return True
