"""A loop whose body is another program: `anyshape::loop` marks its place in a program, and says what comes out.

The body is not an argument: the record of the capture has it under the loop's name. `sizes` are the sizes of all axes of
all results, one result after the other, `ranks` of them each; so no kernel needs to know the body.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from anyshape.leaves.define import define

_SCHEMA = (
    "(str name, SymInt trips, Tensor[] carried, Tensor[] tensors, SymInt[] numbers, SymInt[] sizes, int[] ranks, "
    "str[] dtypes) -> Tensor[]"
)


def _run(
    name: str,
    trips: int,
    carried: Sequence[Tensor],
    tensors: Sequence[Tensor],
    numbers: Sequence[int],
    sizes: Sequence[int],
    ranks: Sequence[int],
    dtypes: Sequence[str],
) -> list[Tensor]:
    raise RuntimeError(f"loop {name!r} is a mark in a program: its body is elsewhere, and only the ONNX file runs it")


def _shapes(
    name: str,
    trips: int,
    carried: Sequence[Tensor],
    tensors: Sequence[Tensor],
    numbers: Sequence[int],
    sizes: Sequence[int],
    ranks: Sequence[int],
    dtypes: Sequence[str],
) -> list[Tensor]:
    device = next((tensor.device for tensor in (*carried, *tensors)), torch.device("cpu"))
    results, rest = [], list(sizes)
    for rank, dtype in zip(ranks, dtypes, strict=True):
        shape, rest = rest[:rank], rest[rank:]
        results.append(torch.empty(shape, dtype=getattr(torch, dtype), device=device))
    return results


loop = define("loop", _SCHEMA, _run, _shapes)
