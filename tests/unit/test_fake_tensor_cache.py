"""The cheaper check of new entries in torch's cache of fake tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import Dim

from anyshape.intercept.quick_tracing import small_cache_checks


class Layers(nn.Module):
    """Views, a conjugate, and sizes that are expressions."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            x = self.linear(x).transpose(0, 1).reshape(-1, 4)[1:]
            x = torch.fft.fft(x).conj().real
        return x


def exported() -> str:
    shapes = ({0: Dim.AUTO, 1: Dim.AUTO},)
    return str(torch.export.export(Layers(), (torch.randn(3, 5, 4),), dynamic_shapes=shapes, strict=False).graph)


def test_a_capture_is_the_same_and_no_result_is_made_with_its_sizes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Any, ...]] = []
    before = FakeTensorMode._get_output_tensor_from_cache_entry

    def note(mode: Any, state: Any, entry: Any, *rest: Any) -> Any:
        made.append(() if entry.metadata is None else tuple(entry.metadata.shape))
        return before(mode, state, entry, *rest)

    monkeypatch.setattr(FakeTensorMode, "_get_output_tensor_from_cache_entry", note)
    usual = exported()
    count = sum(len(shape) > 1 for shape in made)
    made.clear()
    with small_cache_checks():
        assert exported() == usual
    assert sum(len(shape) > 1 for shape in made) < count / 2
    assert (1,) in made
