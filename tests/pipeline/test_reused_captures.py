"""A capture that no file was made of is not made again when more regions turn out to be needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import nn

import anyshape
from anyshape.capture import rungs


class FourWays(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 5:
            x = x * 2
        if x.shape[1] > 7:
            x = x + 1
        return torch.tanh(x)


def test_regions_that_the_first_file_left_out_are_captured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    captured: Counter[tuple[tuple[str, int], ...]] = Counter()
    capture = rungs.capture_symbolically

    def counted(module: Any, declared: Any, sizes: Mapping[str, int], decompose: Any) -> Any:
        captured[tuple(sorted(sizes.items()))] += 1
        return capture(module, declared, sizes, decompose)

    monkeypatch.setattr(rungs, "capture_symbolically", counted)
    result = anyshape.export(FourWays(), lambda batch=3, seq=4: torch.randn(batch, seq))
    assert result.strategy == "symbolic"
    assert len(result.regions) == len(captured) == 4
    assert sorted(captured.values()) == [1, 1, 1, 2]
