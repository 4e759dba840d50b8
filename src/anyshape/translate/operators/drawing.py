"""Random operators by RandomUniformLike, whose numbers follow each other from run to run.

torch.onnx (to 2.13) writes Dropout and Bernoulli, of which onnxruntime (to 1.31) seeds a new generator in each run: the first
element is nearly the same each time. It has no translation of uniform and randperm.
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from anyshape.translate.operators.size_values import Size, as_vector, ints

_FLOAT = ir.DataType.FLOAT


def translate_native_dropout(x: ir.Value, p: float, train: bool | None = True) -> tuple[ir.Value, ir.Value]:
    """An element is kept where a number of [0, 1) is at least p."""
    if train is False or p == 0.0:
        return op.Identity(x), op.CastLike(op.Expand(op.Constant(value_float=1.0), op.Shape(x)), _true())
    kept = op.GreaterOrEqual(_uniform(x), op.Constant(value_float=float(p)))
    scale = 0.0 if p >= 1.0 else 1.0 / (1.0 - p)
    return op.Mul(op.Mul(x, op.CastLike(kept, x)), op.CastLike(op.Constant(value_float=scale), x)), kept


def translate_dropout(x: ir.Value, p: float, train: bool) -> ir.Value:
    return translate_native_dropout(x, p, train)[0]


def translate_bernoulli(p: ir.Value, generator: Any = None) -> ir.Value:
    return op.CastLike(op.Less(_uniform(p), op.Cast(p, to=_FLOAT)), p)


def translate_bernoulli_p(x: ir.Value, p: float = 0.5, generator: Any = None) -> ir.Value:
    return op.CastLike(op.Less(_uniform(x), op.Constant(value_float=float(p))), x)


def translate_uniform(x: ir.Value, low: float = 0.0, high: float = 1.0, generator: Any = None) -> ir.Value:
    return op.CastLike(op.RandomUniformLike(x, low=float(low), high=float(high), dtype=_FLOAT), x)


def translate_randperm(n: Size, **_: Any) -> ir.Value:
    """The order that sorts n random numbers."""
    length = as_vector(n)
    noise = _uniform(op.Expand(op.Constant(value_float=0.0), length))
    return op.TopK(noise, length)[1]


def _uniform(like: ir.Value) -> ir.Value:
    return op.RandomUniformLike(like, low=0.0, high=1.0, dtype=_FLOAT)


def _true() -> ir.Value:
    return op.Cast(ints(1), to=ir.DataType.BOOL)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "bernoulli": translate_bernoulli,
    "bernoulli.p": translate_bernoulli_p,
    "dropout": translate_dropout,
    "native_dropout": translate_native_dropout,
    "randperm": translate_randperm,
    "uniform": translate_uniform,
}
