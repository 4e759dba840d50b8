"""`torch.nn.functional.grouped_mm` in float32 and float16 -> `anyshape::grouped_mm`, which fake tensors can run.

torch's `_grouped_mm` multiplies float32 on the CPU, but its rule for fake tensors takes bfloat16 alone (seen to torch 2.13).
Its ONNX nodes are those of torch's own operator, in `translate/operators/products.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from anyshape.leaves.define import define

Function = Callable[..., Any]

_NAMES = ("self", "mat2", "offs", "bias", "out_dtype")
_DTYPES = (torch.float16, torch.float32)


def _run(rows: Tensor, matrices: Tensor, ends: Tensor) -> Tensor:
    product: Tensor = torch._grouped_mm(rows, matrices, offs=ends)
    return product


def _shape(rows: Tensor, matrices: Tensor, ends: Tensor) -> Tensor:
    torch._check(rows.shape[1] == matrices.shape[1], lambda: "rows as long as the columns of the matrices")
    return rows.new_empty((rows.shape[0], matrices.shape[2]))


grouped_mm = define("grouped_mm", "(Tensor rows, Tensor matrices, Tensor ends) -> Tensor", _run, _shape)


def replacements() -> dict[Any, Callable[..., Any]]:
    """`torch._grouped_mm`, which torch.nn.functional.grouped_mm calls."""
    function = getattr(torch, "_grouped_mm", None)
    return {function: _grouped_mm} if function is not None else {}


def _grouped_mm(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    given = {**dict.fromkeys(_NAMES), **kwargs, **dict(zip(_NAMES, args, strict=False))}
    rows, matrices, ends, *others = (given[name] for name in _NAMES)
    is_plain = len(given) == len(_NAMES) and isinstance(ends, Tensor) and others == [None, None]
    if not is_plain or rows.dtype not in _DTYPES or matrices.dtype != rows.dtype:
        return func(*args, **kwargs)
    if (rows.dim(), matrices.dim(), ends.dim()) != (2, 3, 1):
        return func(*args, **kwargs)
    return grouped_mm(rows, matrices, ends)
