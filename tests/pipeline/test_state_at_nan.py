"""State that only NaN in the inputs changes: the model's own answers to NaN are a note, and so is what it keeps of them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import anyshape


class Ceiling(nn.Module):
    """No number is below what is kept; the minimum of anything and NaN is NaN."""

    def __init__(self):
        super().__init__()
        self.ceiling = torch.tensor(3.0)

    def forward(self, x):
        self.ceiling = torch.minimum(self.ceiling, 4.0 + x.abs().amax())
        return x + self.ceiling


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x):
        y = x - self.shift
        self.shift.sub_(0.0 * x.mean(0))
        return y


class Loud(nn.Module):
    """NaN changes what is kept, and so do numbers above those that are tried."""

    def __init__(self):
        super().__init__()
        self.register_buffer("offset", torch.zeros(()))

    def forward(self, x):
        peak = x.abs().amax()
        self.offset.copy_(self.offset + torch.relu(peak - 1e9) * 0.5)
        return x + self.offset.clamp(max=2.0)


def inputs(n=5):
    return torch.randn(n, 4)


@pytest.mark.parametrize("make", [Ceiling, Frozen])
def test_state_that_no_number_changes_is_kept_with_a_warning_that_says_nan(make, tmp_path) -> None:
    result = anyshape.export(make(), inputs, tmp_path / "m.onnx")
    assert [finding.code for finding in result.findings] == ["AS159"]
    assert "NaN" in result.findings[0].what and "self." in result.findings[0].where.text


def test_state_that_large_numbers_change_as_well_is_refused(tmp_path) -> None:
    with pytest.raises(anyshape.PromiseBroken, match="AS143") as broken:
        anyshape.export(Loud(), inputs, tmp_path / "m.onnx")
    assert "self.offset.copy_" in broken.value.finding.where.text
