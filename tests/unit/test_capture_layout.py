"""Conditions by which torch chooses between a view and a copy are no conditions of a capture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import anyshape


class Windows(nn.Module):
    """Pads an image to whole windows of 7, cuts it into these, joins them, and crops it: the way of most window attentions."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, height, width, channels = x.shape
        x = nn.functional.pad(x, (0, 0, 0, (7 - width % 7) % 7, 0, (7 - height % 7) % 7))
        rows, columns = x.shape[1] // 7, x.shape[2] // 7
        x = x.view(batch, rows, 7, columns, 7, channels)
        x = x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, 7, 7, channels) * 2
        x = x.view(batch, rows, columns, 7, 7, channels)
        x = x.permute(0, 1, 3, 2, 4, 5).contiguous().view(batch, 7 * rows, 7 * columns, channels)
        return x[:, :height, :width].contiguous().view(batch, height * width, channels)


class Channels(nn.Module):
    """Attention over channels, whose second product has batches of open sizes on both sides."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.flatten(1, 2)
        heads = tokens.reshape(tokens.shape[0], tokens.shape[1], 2, -1).permute(0, 2, 1, 3)
        shares = (heads.transpose(-1, -2) @ heads).softmax(-1)
        return (shares @ heads.transpose(-1, -2)).transpose(-1, -2).transpose(1, 2).reshape(tokens.shape)


@pytest.mark.parametrize("make", [Windows, Channels])
def test_copies_for_a_view_leave_the_capture_proved(make: Callable[[], nn.Module], tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    result = anyshape.export(make(), (torch.randn(2, 9, 15, 4),), path, dynamic={"x": "batch h w 4"})
    assert result.contract.tested.capture_proved
    assert [dim.max for dim in result.contract.domain.dims] == [None, None, None]
    loaded = anyshape.load(path)
    for sizes in ((1, 1, 1), (1, 7, 1), (3, 1, 14), (2, 30, 7), (1, 8, 50)):
        x = torch.randn(*sizes, 4)
        torch.testing.assert_close(loaded(x=x), make()(x), rtol=1e-4, atol=1e-5)
