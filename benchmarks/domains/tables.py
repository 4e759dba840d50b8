"""Rows whose rule comes from a table, a buffer or a weight of a given size: upper ends, sums, products, and pinned sizes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from rows import Row, integers, row
from torch import Tensor, nn

ROWS: list[Row] = []


@row(ROWS, {"x": "b seq 8", "cache": "b past 8"}, "past + seq <= 48", b=2, seq=3, past=5, upto={"seq": 56, "past": 56})
class DecoderStep(nn.Module):
    """A step of a decoder with a cache and a table of 48 positions."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Embedding(48, 8)

    def forward(self, x: Tensor, cache: Tensor) -> Tensor:
        past = cache.shape[1]
        x = x + self.positions(torch.arange(past, past + x.shape[1], device=x.device))
        keys = torch.cat([cache, x], 1)
        return (x @ keys.transpose(1, 2)).softmax(-1) @ keys


@row(
    ROWS,
    {"x": "b seq 8", "cache": "b past 8"},
    "past + seq <= 48 or past == 47 or seq == 1",
    b=2,
    seq=3,
    past=5,
    upto={"seq": 56, "past": 56},
)
class SlicedDecoderStep(nn.Module):
    """The table is sliced: at 47 one position is left, which broadcasts; beyond it none is, and one step plus none is empty."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.randn(48, 8))

    def forward(self, x: Tensor, cache: Tensor) -> Tensor:
        past = cache.shape[1]
        x = x + self.positions[past : past + x.shape[1]]
        return torch.cat([cache, x], 1)


@row(ROWS, {"ids": "b seq"}, "seq <= 64", fills={"ids": integers(50)}, b=2, seq=7, upto={"seq": 80})
class TokensAndPositions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(50, 8)
        self.positions = nn.Embedding(64, 8)
        self.norm = nn.LayerNorm(8)

    def forward(self, ids: Tensor) -> Tensor:
        return self.norm(self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device)))


@row(ROWS, {"x": "b seq 6"}, "seq <= 32", b=2, seq=10, upto={"seq": 44})
class SlicedPositions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.randn(1, 32, 6))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.positions[:, : x.shape[1]]


@row(ROWS, {"x": "b seq 8"}, "seq <= 50", b=2, seq=12, upto={"seq": 60})
class RotaryTable(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        angles = torch.outer(torch.arange(50.0), 0.1 ** torch.arange(0.0, 1.0, 0.25))
        self.register_buffer("cos", torch.cat([angles, angles], -1).cos())
        self.register_buffer("sin", torch.cat([angles, angles], -1).sin())

    def forward(self, x: Tensor) -> Tensor:
        turned = torch.cat([-x[..., 4:], x[..., :4]], -1)
        return x * self.cos[: x.shape[1]] + turned * self.sin[: x.shape[1]]


@row(ROWS, {"x": "b seq 6"}, "seq == 1 or seq == 16", pinned=("16", "pos"), b=2, seq=16)
class AddedPositions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pos = nn.Parameter(torch.randn(16, 6))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.pos


@row(ROWS, {"scores": "b s t"}, "(s == 1 or s == 5) and (t == 1 or t == 5)", pinned=("5", "mask"), b=2, s=5, t=5)
class SquareMask(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.ones(5, 5).tril().log())

    def forward(self, scores: Tensor) -> Tensor:
        return (scores + self.mask).softmax(-1)


@row(ROWS, {"x": "b seq 4"}, "seq == 10", pinned=("10",), b=2, seq=10)
class MixedSteps(nn.Module):
    """A linear layer over the steps."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(10, 10)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.mix(x.transpose(1, 2)).transpose(1, 2)


@row(ROWS, {"x": "n 4", "y": "3 4"}, "n == 3 or n == 1", pinned=("3", "y"), n=3)
class AxisLeftOut(nn.Module):
    """Only one of two inputs has an open batch."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x * y + 1


@row(ROWS, {"x": "b c n"}, "c == 6", pinned=("6",), b=2, c=6, n=7)
class NormedChannels(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(6)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x)


@row(ROWS, {"x": "b seq 8"}, "seq <= 12", b=2, seq=6)
class RelativeBias(nn.Module):
    """A bias for each distance from -11 to 11."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Embedding(23, 1)

    def forward(self, x: Tensor) -> Tensor:
        steps = torch.arange(x.shape[1], device=x.device)
        bias = self.bias(steps[:, None] - steps + 11).squeeze(-1)
        return (x @ x.transpose(1, 2) + bias).softmax(-1) @ x


@row(ROWS, {"x": "b h w 4"}, "h <= 20 and w <= 28", b=2, h=5, w=6, upto={"h": 30, "w": 36})
class RowsAndColumns(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Embedding(20, 4)
        self.columns = nn.Embedding(28, 4)

    def forward(self, x: Tensor) -> Tensor:
        rows = self.rows(torch.arange(x.shape[1]))
        return x + rows[:, None] + self.columns(torch.arange(x.shape[2]))


@row(ROWS, {"x": "b n 6", "y": "b m 6"}, "n + m <= 40", b=2, n=5, m=7, upto={"n": 48, "m": 48})
class JoinedPositions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Embedding(40, 6)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        joined = torch.cat([x, y], 1)
        return joined + self.positions(torch.arange(joined.shape[1]))


@row(ROWS, {"x": "b 4 n"}, "5 <= n <= 34", b=2, n=12, upto={"n": 44})
class ConvolvedPositions(nn.Module):
    """A convolution of width 5, then 30 positions."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 6, 5)
        self.positions = nn.Embedding(30, 6)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x).transpose(1, 2)
        return x + self.positions(torch.arange(x.shape[1]))


@row(
    ROWS,
    {"x": "b 2 h w"},
    "h >= 4 and w >= 4 and (h // 4) * (w // 4) <= 36",
    b=2,
    h=12,
    w=16,
    upto={"h": 48, "w": 48},
)
class PatchPositions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(2, 6, 4, stride=4)
        self.positions = nn.Embedding(36, 6)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        return tokens + self.positions(torch.arange(tokens.shape[1]))


@row(ROWS, {"x": "b seq 4"}, "2 * seq <= 31", b=2, seq=6, upto={"seq": 40})
class EverySecondPosition(nn.Module):
    """Step i has position 2 * i + 1 of 31."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Embedding(31, 4)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.positions(2 * torch.arange(x.shape[1]) + 1)


@row(ROWS, {"x": "b seq 8"}, "seq <= 24", b=2, seq=9, upto={"seq": 32})
class CausalTable(nn.Module):
    """Attention with a causal mask of 24 steps, sliced."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("causal", torch.ones(24, 24, dtype=torch.bool).tril())

    def forward(self, x: Tensor) -> Tensor:
        steps = x.shape[1]
        return F.scaled_dot_product_attention(x, x, x, attn_mask=self.causal[:steps, :steps])
