"""A loop over one dim beside branches on another: the loop is learned on each side of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import anyshape


class Padded(nn.Module):
    """Rows are looked up one after the other; a length above 4 is padded to whole parts, which share a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(16, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, seq, width = x.shape
        if seq % 4 != 0 and seq > 4:
            x = F.pad(x, (0, 0, 0, 4 - seq % 4))
        places = torch.arange(x.shape[1]).expand(batch, -1)
        rows = torch.cat([self.table.index_select(0, places[row]).unsqueeze(0) + x[row] for row in range(batch)])
        if rows.shape[1] > 4:
            parts = rows.reshape(batch, -1, 4, width)
            rows = (parts + parts.sum(2, keepdim=True)).reshape(batch, -1, width)
        return rows[:, :seq].tanh()


def test_a_loop_over_the_batch_is_right_on_both_sides_of_branches_on_the_length(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = Padded()
    result = anyshape.export(
        module,
        lambda batch=2, seq=7: torch.randn(batch, seq, 3),
        tmp_path / "m.onnx",
        where=["1 <= seq <= 16", "1 <= batch <= 40"],
    )
    assert result.strategy == "rerolled"
    loaded = anyshape.load(tmp_path / "m.onnx")
    for batch, seq in ((1, 1), (1, 4), (2, 3), (3, 5), (1, 8), (7, 9), (40, 16), (5, 15), (17, 12)):
        x = torch.randn(batch, seq, 3)
        with torch.no_grad():
            expected = module(x).numpy()
        np.testing.assert_allclose(np.asarray(loaded(x)), expected, rtol=1e-4, atol=1e-5)
