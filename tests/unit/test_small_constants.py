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


class NearestShare(nn.Module):
    """A constant, and a quotient of sizes: which element is the nearest depends on the sizes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shares = torch.tensor([1.0, 0.5, 2.0, 1.5])
        written = torch.tensor([1.0, 2.0])
        written.mul_(x.shape[0] / x.shape[1])
        nearest = torch.argmin((shares - x.shape[0] / x.shape[1]).abs())
        return x * (nearest.item() + 1) + written.argmax().item() * written.sum()


def test_a_constant_beside_a_quotient_of_sizes_is_not_known() -> None:
    result = anyshape.export(NearestShare(), lambda rows=3, columns=7: torch.randn(rows, columns), None)
    assert result.is_kept
    assert result.strategy == "symbolic"
    file, module = anyshape.load(result.model_proto.SerializeToString()), NearestShare()
    for shape in ((1, 2), (8, 4), (3, 2), (5, 5)):
        x = torch.randn(shape)
        torch.testing.assert_close(torch.as_tensor(file(x)), module(x))
