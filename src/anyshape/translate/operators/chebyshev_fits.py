"""Smooth functions as Chebyshev series, fitted to torch's own function in float64 when it is translated.

A series is right to 1e-12 where the function is analytic on its interval; the caller takes poles, logarithms and waves out
first. Values are float64 throughout.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import onnx_ir as ir
import torch
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import constant

DOUBLE = ir.DataType.DOUBLE
Function = Callable[[torch.Tensor], torch.Tensor]
_TERMS = 40


@lru_cache(maxsize=64)
def _coefficients(function: Function, low: float, high: float) -> tuple[float, ...]:
    def values(places: np.ndarray) -> np.ndarray:
        return function(torch.from_numpy(places)).numpy()

    fitted = np.polynomial.chebyshev.Chebyshev.interpolate(values, _TERMS, domain=[low, high]).coef
    small = np.abs(fitted).max() * 1e-17
    kept = max((number for number, each in enumerate(fitted) if abs(each) > small), default=0)
    return tuple(float(each) for each in fitted[: kept + 1])


def fit(function: Function, low: float, high: float, x: ir.Value) -> ir.Value:
    """function(x), for x in [low, high]; nonsense elsewhere, for the caller to put aside. By Clenshaw's sums."""
    place = op.Div(op.Sub(x, number((low + high) / 2)), number((high - low) / 2))
    twice = op.Add(place, place)
    one_later, two_later = number(0), number(0)
    first, *rest = _coefficients(function, low, high)
    for coefficient in reversed(rest):
        one_later, two_later = (
            op.Sub(op.Add(op.Mul(twice, one_later), number(coefficient)), two_later),
            one_later,
        )
    return op.Sub(op.Add(op.Mul(place, one_later), number(first)), two_later)


def number(value: float) -> ir.Value:
    return constant(value, DOUBLE)
