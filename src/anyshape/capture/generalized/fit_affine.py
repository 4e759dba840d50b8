"""Integers as a sum of columns, each with a whole factor: the step that most fits end with."""

from __future__ import annotations

import numpy as np

from anyshape.capture.generalized.samples import Column, Integers
from anyshape.domain import Expr, Number


def combine(values: Integers, columns: tuple[Column, ...]) -> Expr | None:
    """values == a*first + b*second + ... + c with integers a, b, c; None if there are none."""
    if len(values) < len(columns) + 2:
        return None
    matrix = np.column_stack([column for _, column in columns] + [np.ones(len(values), dtype=np.int64)]).astype(float)
    solution = np.linalg.lstsq(matrix, values.astype(float), rcond=None)[0]
    if np.abs(solution).max() > 1e12:
        return None
    factors = np.rint(solution).astype(np.int64)
    total = np.full(len(values), factors[-1], dtype=np.int64)
    for (_, column), factor in zip(columns, factors, strict=False):
        total = total + factor * column
    if not (total == values).all():
        return None
    result: Expr = Number(int(factors[-1]))
    for (expr, _), factor in zip(columns, factors, strict=False):
        result = result + expr * int(factor)
    return result
