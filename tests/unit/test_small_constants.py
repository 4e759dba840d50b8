"""Values of small tensors that are made of Python numbers can be read during a capture."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import anyshape


class Grid(nn.Module):
    """Positions of a grid whose sides are read from a tensor; attention compares their number with that of the keys."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shapes = torch.tensor([(4, 6)], device=x.device)
        height, width = shapes[0, 0], shapes[0, 1]
        rows = torch.arange(0, height, dtype=x.dtype) / height
        columns = torch.arange(width) / width
        mask = (rows.view(1, -1, 1) + columns.view(1, 1, -1)).flatten(1)
        query = x.view(x.shape[0], 1, 24, 1)
        return F.scaled_dot_product_attention(
            query, 2 * query, query, attn_mask=mask[:, None, None].expand(-1, 1, 24, -1)
        )


class Overwritten(nn.Module):
    """What is read from the tensor is what was written into it, through a view, last."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        table = torch.tensor([2, 3])
        first = table[0]
        table[0] = (x > 0).sum().clamp(4, 5)
        return x[:, :8][:, : torch.arange(first).shape[0]].sum(1) + table[1]


class OverwrittenByNumbers(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        table = torch.tensor([2, 3])
        first = table[0]
        table += 1
        first.mul_(2)
        return x[:, : int(table[0])] * torch.arange(first)


@pytest.mark.parametrize("module", [Grid(), Overwritten(), OverwrittenByNumbers()])
def test_numbers_that_are_read_from_a_tensor_of_numbers_are_known(module: nn.Module) -> None:
    result = anyshape.export(module, torch.randn(3, 24), dynamic={"x": "batch 24"}, where=["batch <= 64"])
    assert result.is_kept
    assert result.strategy == "symbolic"
