"""A number computed through floats, in one piece: `math.ceil(1.1 * seq)` is `whole(formula, seq)`.

Python computes in double precision, and one step in single precision rounds to another whole number at some sizes (1.1 * 50
is 55.00000000000001). Kept in one piece, the formula is written in double precision through and through. How many numbers
`torch.arange` gives is such a number, too.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable
from typing import Any

import torch

from anyshape.intercept.real_numbers import OPEN_EXP, OPEN_LOG, OPEN_LOG2, OPEN_LOG10

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "trunc": math.trunc,
    "round": round,
    "float": torch.sym_float,
    "sqrt": torch._sym_sqrt,  # type: ignore[attr-defined]
    "log": OPEN_LOG,
    "log2": OPEN_LOG2,
    "log10": OPEN_LOG10,
    "exp": OPEN_EXP,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "pow": operator.pow,
    "max": torch.sym_max,
    "min": torch.sym_min,
}
"""By the names that formulas use; `["size", k]` is the k-th size."""


def whole(formula: str, *sizes: Any) -> Any:
    """What the formula gives at these sizes."""
    return _evaluate(json.loads(formula), sizes)


def number(formula: str, is_double: bool, *sizes: Any) -> Any:
    """The float that the formula gives at these sizes; a tensor where it meets doubles."""
    found = _evaluate(json.loads(formula), sizes)
    return torch.scalar_tensor(found, dtype=torch.float64) if is_double else found


def _evaluate(formula: Any, sizes: tuple[Any, ...]) -> Any:
    if not isinstance(formula, list):
        return formula
    name, *parts = formula
    return sizes[parts[0]] if name == "size" else FUNCTIONS[name](*(_evaluate(part, sizes) for part in parts))


def counted(number: Any, start: Any, step: Any, dtype: str) -> torch.Tensor:
    """`torch.arange(start, end, step)` of floats, as many as `number`, which a formula counts."""
    return (start + step * torch.arange(number, dtype=torch.float64)).to(getattr(torch, dtype))
