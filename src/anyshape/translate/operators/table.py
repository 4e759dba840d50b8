"""Which ATen operator has which translation of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anyshape.translate.operators import cumulative, pooling, ranking, searching, shifting, sorting

TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "adaptive_avg_pool1d": pooling.adaptive_avg_pool(1),
    "adaptive_avg_pool2d": pooling.adaptive_avg_pool(2),
    "_adaptive_avg_pool2d": pooling.adaptive_avg_pool(2),
    "adaptive_avg_pool3d": pooling.adaptive_avg_pool(3),
    "_adaptive_avg_pool3d": pooling.adaptive_avg_pool(3),
    "adaptive_max_pool1d": pooling.adaptive_max_pool(1),
    "adaptive_max_pool2d": pooling.adaptive_max_pool(2),
    "adaptive_max_pool3d": pooling.adaptive_max_pool(3),
    "roll": shifting.translate_roll,
    "sort": sorting.translate_sort,
    "sort.stable": sorting.translate_sort_stable,
    "cumprod": cumulative.translate_cumprod,
    "cummax": cumulative.running_extreme("GreaterOrEqual"),
    "cummin": cumulative.running_extreme("LessOrEqual"),
    "logcumsumexp": cumulative.translate_logcumsumexp,
    "searchsorted.Tensor": searching.translate_searchsorted,
    "searchsorted.Scalar": searching.translate_searchsorted,
    "bucketize.Tensor": searching.translate_bucketize,
    "bucketize.Scalar": searching.translate_bucketize,
    "kthvalue": ranking.translate_kthvalue,
    "median": ranking.translate_median,
    "median.dim": ranking.translate_median_dim,
    "nanmedian": ranking.translate_nanmedian,
    "nanmedian.dim": ranking.translate_nanmedian_dim,
    "mode": ranking.translate_mode,
}
