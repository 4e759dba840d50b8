"""Loops over the rows of nonzero(): right whatever is hit, and refused where what a body computes is used outside of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import anyshape


def _inputs(batch: int = 3, seq: int = 5) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(batch, seq, 4)}


class Experts(nn.Module):
    """A mixture of four experts, where the mask has a fifth that has no weights."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(4, 4)
        self.up = nn.Parameter(torch.randn(4 * 6, 4))
        self.down = nn.Parameter(torch.randn(4 * 6, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.reshape(-1, 4)
        weights, index = torch.topk(self.router(tokens).softmax(-1), 2)
        out = torch.zeros_like(tokens)
        mask = F.one_hot(index, num_classes=5).permute(2, 1, 0)
        for row in torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero():
            expert = row[0]
            place, token = torch.where(mask[expert])
            up, down = (table.view(-1, 6, 4)[expert] for table in (self.up, self.down))
            part = torch.relu(tokens[token] @ up.T) @ down * weights[token, place, None]
            out.index_add_(0, token, part)
        return out.view(x.shape[0], -1, 4)


class LastExpert(nn.Module):
    """Five places, and a table of four, whose axis is not the first."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = x * 2
        hit = F.one_hot(x.argmax(-1), num_classes=5).sum((0, 1))
        for (place,) in (hit > 0).nonzero():
            out += self.table[:, place] + self.table[..., place]
        return out


class Columns(nn.Module):
    """Changes all of `out` for each column that is hit: running the body for another one would show."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = x * 2
        for (column,) in (x.sum((0, 1)) > 0).nonzero():
            out += x[..., column, None].exp()
            out[..., column] = out[..., column] - 1
        return out


class Pairs(nn.Module):
    """A loop inside a loop: what the inner one writes counts only where both are hit."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = x * 2
        for (row,) in (x.sum((0, 1)) > 0).nonzero():
            part = torch.zeros_like(x)
            for (column,) in (x.amax((0, 1)) > 0.5).nonzero():
                part[..., column] += x[..., row]
                out[..., column] -= 1
            out += part
        return out


class Viewed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = x * 2
        for row in (x.sum((0, 1)) > 0).nonzero():
            view = out[..., row[0]]
            view.add_(1)
        return out + 1


def _attacks() -> list[torch.Tensor]:
    one = torch.tensor([9.0, -9.0, -9.0, -9.0])
    return [
        *(torch.randn(batch, seq, 4) for batch, seq in ((1, 1), (1, 7), (5, 1), (4, 33))),
        *(torch.full((2, 3, 4), value) for value in (0.0, -1.0, 1.0)),
        one.expand(3, 4, 4),
        one.roll(2).expand(1, 1, 4),
    ]


@pytest.mark.parametrize("kind", [Experts, LastExpert, Columns, Pairs, Viewed])
def test_a_loop_over_what_is_hit_is_right_whatever_is_hit(kind: type[nn.Module], tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = kind().eval()
    anyshape.export(module, _inputs, tmp_path / "m.onnx")
    loaded = anyshape.load(tmp_path / "m.onnx")
    for x in _attacks():
        with torch.no_grad():
            expected = module(x)
        np.testing.assert_allclose(np.asarray(loaded(x)), expected.numpy(), rtol=1e-4, atol=1e-4)


class Added(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = x.sum()
        for row in (x.sum((0, 1)) > 0).nonzero():
            total = total + x[..., row[0]].mean()
        return x + total


class Counted(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count = 0
        for _ in (x.sum((0, 1)) > 0).nonzero():
            count += 1
        return x * count


class Broken(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = x * 2
        for row in (x.sum((0, 1)) > 0).nonzero():
            out[..., row[0]] = 0
            break
        return out + 1


class Last(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        row = torch.tensor([0])
        for row in (x.sum((0, 1)) > 0).nonzero():  # noqa: B007
            pass
        return x[..., row[0]] * 2


@pytest.mark.parametrize("kind", [Added, Counted, Broken, Last])
def test_a_body_whose_results_leave_it_in_another_way_is_refused(kind: type[nn.Module], tmp_path: Path) -> None:
    with pytest.raises(anyshape.PromiseBroken) as raised:
        anyshape.export(kind(), _inputs, tmp_path / "m.onnx")
    assert raised.value.finding.code == "AS111"
