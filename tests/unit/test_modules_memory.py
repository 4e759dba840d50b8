"""A ceiling makes large allocations fail, and is gone afterwards."""

from __future__ import annotations

import resource

import pytest
import torch

from anyshape.modules.call_limits import LEAST_ALLOWANCE, allowance, free_memory, memory_ceiling


def test_an_allocation_beyond_the_ceiling_fails_and_a_small_one_does_not() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    with memory_ceiling(1 << 28):
        assert torch.zeros(1 << 20).numel() == 1 << 20
        with pytest.raises(RuntimeError, match="memory"):
            torch.zeros(1 << 28)  # 1 GiB
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    assert torch.zeros(1 << 27).numel() == 1 << 27


def test_a_call_may_take_a_quarter_of_what_is_free() -> None:
    free, allowed = free_memory(), allowance()
    assert allowed >= LEAST_ALLOWANCE
    assert allowed <= max(LEAST_ALLOWANCE, 1.2 * free / 4)
