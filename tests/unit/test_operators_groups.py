"""Groups of rows by matrices of their own, as a mixture of experts has them."""

from __future__ import annotations

import pytest
import torch
from operator_exports import Row, find_differences

pytest.importorskip("transformers.integrations.moe")
EXPERTS = 4


def mix(rows: torch.Tensor, ends: torch.Tensor, matrices: torch.Tensor) -> torch.Tensor:
    return torch.ops.transformers.grouped_mm_fallback(rows, matrices, offs=ends)


def inputs(*ends: int, beyond: int = 0) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    return torch.randn(ends[-1] + beyond, 3), torch.tensor(ends, dtype=torch.int32), torch.randn(EXPERTS, 3, 5)


def test_each_group_meets_its_own_matrix_be_it_empty_or_not() -> None:
    calls = [
        inputs(2, 5, 6, 9),
        inputs(0, 0, 3, 3),
        inputs(1, 1, 1, 1),
        inputs(0, 0, 0, 0),
        inputs(1, 2, 3, 4, beyond=3),
    ]
    assert find_differences(Row("", mix, calls, {1: (0,), 2: (0, 1, 2)})) == []


def test_torchs_own_function_takes_float32() -> None:
    def mix_by_torch(rows: torch.Tensor, ends: torch.Tensor, matrices: torch.Tensor) -> torch.Tensor:
        return torch._grouped_mm(rows, matrices, offs=ends)

    def wide(*ends: int) -> tuple[torch.Tensor, ...]:
        torch.manual_seed(0)
        return torch.randn(ends[-1], 4), torch.tensor(ends, dtype=torch.int32), torch.randn(EXPERTS, 4, 8)

    calls = [wide(2, 5, 6, 9), wide(0, 0, 3, 3), wide(1, 1, 1, 1)]
    assert find_differences(Row("", mix_by_torch, calls, {1: (0,), 2: (0, 1, 2)})) == []
