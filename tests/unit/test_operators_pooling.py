"""Adaptive pooling to a number of bins is right at every size, also where the bins do not divide it."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from operator_exports import Row, compare, export, find_differences, sizes

LINES = ((2, 3, 9), (1, 3, 4), (3, 3, 17), (2, 3, 7), (2, 3, 1), (2, 3, 12), (0, 3, 5))
PLANES = ((2, 3, 9, 7), (1, 3, 4, 5), (3, 3, 17, 12), (2, 3, 7, 7), (2, 3, 1, 1))
SOLIDS = ((2, 3, 5, 7, 6), (1, 3, 4, 3, 5), (2, 3, 1, 1, 1))
CHANNELS = {0: (1,)}

ROWS = [
    Row("average-1d", lambda x: F.adaptive_avg_pool1d(x, 3), sizes(*LINES), CHANNELS),
    Row("average-2d", lambda x: F.adaptive_avg_pool2d(x, (4, 2)), sizes(*PLANES), CHANNELS),
    Row("average-2d-to-one", lambda x: F.adaptive_avg_pool2d(x, 1), sizes(*PLANES), CHANNELS),
    Row("average-2d-without-batch", lambda x: F.adaptive_avg_pool2d(x, 3), sizes((3, 9, 7), (3, 4, 5)), {0: (0,)}),
    Row("average-3d", lambda x: F.adaptive_avg_pool3d(x, (4, 2, 3)), sizes(*SOLIDS), CHANNELS),
    Row("average-one-axis-kept", lambda x: F.adaptive_avg_pool2d(x, (None, 3)), sizes(*PLANES[:-1]), CHANNELS),
    Row("average-with-infinity", lambda x: F.adaptive_avg_pool1d(x / (x > 1), 3), sizes(*LINES[:4]), CHANNELS),
    Row("maximum-1d", lambda x: F.adaptive_max_pool1d(x, 3, return_indices=True), sizes(*LINES[:6]), CHANNELS),
    Row("maximum-2d", lambda x: F.adaptive_max_pool2d(x, (4, 2), return_indices=True), sizes(*PLANES), CHANNELS),
    Row("maximum-3d", lambda x: F.adaptive_max_pool3d(x, 3, return_indices=True), sizes(*SOLIDS), CHANNELS),
    Row("maximum-one-axis-kept", lambda x: F.adaptive_max_pool2d(x, (None, 3)), sizes(*PLANES[:-1]), CHANNELS),
    Row("maximum-3d-one-axis-kept", lambda x: F.adaptive_max_pool3d(x, (2, None, 3)), sizes(*SOLIDS), CHANNELS),
    Row("maximum-3d-places", lambda x: F.adaptive_max_pool3d(x.round(), (2, None, 3), True), sizes(*SOLIDS), CHANNELS),
    Row("maximum-nothing-pooled", lambda x: F.adaptive_max_pool2d(x, (None, None), True), sizes(*PLANES), CHANNELS),
    Row("equal-maxima", lambda x: F.adaptive_max_pool2d(x.sign(), 3, return_indices=True), sizes(*PLANES), CHANNELS),
    Row("area", lambda x: F.interpolate(x, size=(7, 4), mode="area"), sizes(*PLANES), CHANNELS),
    Row("area-of-a-line", lambda x: F.interpolate(x, scale_factor=1.7, mode="area"), sizes(*LINES[:6]), CHANNELS),
    Row("area-of-a-line-to-a-size", lambda x: F.interpolate(x, size=5, mode="area"), sizes(*LINES[:6]), CHANNELS),
    Row(
        "divisor-and-ceiling",
        lambda x: F.avg_pool2d(x, 3, 2, padding=1, ceil_mode=True, divisor_override=2),
        sizes(*PLANES[:4]),
        CHANNELS,
    ),
    Row("divisor", lambda x: F.avg_pool2d(x, 2, divisor_override=3), sizes(*PLANES[:4]), CHANNELS),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.long_table
def test_is_right_at_every_size(row: Row) -> None:
    assert find_differences(row) == []


def test_bins_may_be_as_many_as_another_input_is_long() -> None:
    inputs = [(torch.randn(2, 3, size), torch.randn(2, bins)) for size, bins in ((9, 4), (5, 3), (5, 9))]
    assert find_differences(Row("", lambda x, y: F.adaptive_avg_pool1d(x, y.shape[1]), inputs, CHANNELS)) == []


def test_the_comparison_notices_other_bins() -> None:
    three = Row("", lambda x: F.adaptive_avg_pool1d(x, 3), sizes(*LINES), CHANNELS)
    shifted = Row("", lambda x: F.adaptive_avg_pool1d(x.roll(1, -1), 3), sizes(*LINES), CHANNELS)
    assert compare(shifted, export(three)[0])
