"""Whether the truths that were written down by hand are true: eager at points of each row."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from points import choose_points, random_points, small_points
from rows import Row, Sizes


def runs(module: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> tuple[bool, Any]:
    """Whether eager returns a result, and the result or the error's text."""
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return True, module(**inputs)
    except Exception as error:
        return False, f"{type(error).__name__}: {error}"


def find_disagreements(row: Row, count: int = 240, seed: int = 0) -> list[tuple[Sizes, str]]:
    """Sizes at which eager and the truth differ, with the error or '' where eager returned a result."""
    module = row.build()
    points = [row.sizes]
    points += random_points(row, count // 2, row.cheap, seed)
    points += choose_points(row, count // 2, row.cheap, seed)
    points += small_points(row, count // 2, seed)
    differ = []
    for at, sizes in enumerate(points):
        is_right, result = runs(module, row.make(sizes, seed + at))
        if is_right != row.is_true(sizes):
            differ.append((sizes, "" if is_right else result))
    return differ
