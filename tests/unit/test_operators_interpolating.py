"""Linear and cubic interpolation, by factors and to sizes: torch's sizes, and its copies along axes that keep theirs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from operator_exports import Row, find_differences, sizes

LINES = ((1, 2, 9), (1, 2, 2), (2, 2, 3), (1, 2, 90), (1, 2, 100), (2, 2, 4), (1, 2, 180))
IMAGES = ((1, 2, 9, 7), (1, 2, 2, 4), (2, 2, 3, 2), (1, 2, 90, 3), (1, 2, 4, 100), (1, 2, 6, 6))
VOLUMES = ((1, 2, 4, 7, 5), (1, 2, 2, 2, 4), (1, 2, 3, 90, 2))


@pytest.mark.parametrize("shapes", [LINES, IMAGES, VOLUMES], ids=["linear", "bilinear", "trilinear"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("how", [{"scale_factor": 1.3}, {"scale_factor": 1.3, "align_corners": True}], ids=str)
def test_by_a_factor(shapes: Any, dtype: torch.dtype, how: dict[str, Any]) -> None:
    mode = {3: "linear", 4: "bilinear", 5: "trilinear"}[len(shapes[0])]
    inputs = [(x.to(dtype),) for (x,) in sizes(*shapes)]
    row = Row("", lambda x: F.interpolate(x, mode=mode, **how), inputs, {0: (1,)}, tolerance=3e-4)
    assert find_differences(row) == []


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("factor", [0.29, 0.7, 1.15, 1.5, 2, 2.3], ids=str)
def test_the_size_is_computed_in_double_precision(mode: str, factor: float) -> None:
    shapes = ((1, 1, 9, 7), (1, 1, 90, 4), (1, 1, 100, 50), (1, 1, 180, 5), (1, 1, 4, 200), (1, 1, 340, 4))
    row = Row("", lambda x: F.interpolate(x, scale_factor=factor, mode=mode), sizes(*shapes), {0: (0, 1)}, 1e-3)
    assert find_differences(row) == []


@pytest.mark.parametrize("align_corners", [False, True])
def test_to_a_size(align_corners: bool) -> None:
    def resize(x: torch.Tensor) -> Any:
        to = (x.shape[2] * 2 - 1, 5)
        return [F.interpolate(x, to, mode=mode, align_corners=align_corners) for mode in ("bilinear", "bicubic")]

    assert find_differences(Row("", resize, sizes(*IMAGES), {0: (1,)})) == []


@pytest.mark.parametrize("factor", [(0.37, 2.1), (1.3, 2.04), (1.01, 1.7)], ids=str)
def test_nearest_of_small_images_keeps_and_doubles_sizes_exactly(factor: tuple[float, float]) -> None:
    shapes = ((1, 1, 3, 2), (1, 1, 3, 9), (1, 1, 40, 24), (1, 1, 60, 66), (1, 1, 64, 3), (1, 1, 7, 60), (1, 1, 90, 40))
    row = Row("", lambda x: F.interpolate(x, scale_factor=factor, mode="nearest"), sizes(*shapes), {0: (0, 1)}, 0)
    assert find_differences(row) == []


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("how", [{}, {"align_corners": True}], ids=["centres", "corners"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("by", [0.29, 0.5, (1.3, 0.7), 2.3, "thirds", "columns", "one column"], ids=str)
def test_with_antialias(mode: str, how: dict[str, Any], dtype: torch.dtype, by: Any) -> None:
    def resize(x: torch.Tensor) -> Any:
        height, width = x.shape[2:]
        to = {"thirds": (height // 2, width // 3), "columns": (height * 2 - 1, 5), "one column": (height + 1, 1)}
        chosen: dict[str, Any] = {"size": to[by]} if isinstance(by, str) else {"scale_factor": by}
        return F.interpolate(x, mode=mode, antialias=True, **how, **chosen)

    shapes = ((2, 1, 9, 7), (1, 1, 4, 4), (1, 1, 6, 5), (1, 1, 40, 4), (2, 1, 5, 90), (1, 1, 30, 61))
    inputs = [(x.to(dtype),) for (x,) in sizes(*shapes)]
    assert find_differences(Row("", resize, inputs, {0: (1,)}, tolerance=3e-4)) == []


def test_antialias_by_given_factors_that_do_not_belong_to_the_size() -> None:
    operator = torch.ops.aten._upsample_bilinear2d_aa.default
    shapes = ((2, 1, 9, 7), (1, 1, 4, 4), (1, 1, 6, 5))
    row = Row("", lambda x: operator(x, [x.shape[2] // 2, 3], False, None, 0.4), sizes(*shapes), {0: (1,)})
    assert find_differences(row) == []
