"""Small modules, each a row: module, function of sizes, rules, and what must come of it (kept, or a code)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

KEPT = "kept"


@dataclass(frozen=True)
class Row:
    name: str
    module: Callable[[], nn.Module]
    inputs: Callable[..., Any]
    where: tuple[str, ...] = ()
    expect: str = KEPT

    def __str__(self) -> str:
        return self.name


class Rnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.RNN(10, 20, batch_first=True)
        self.linear = nn.Linear(20, 5)

    def forward(self, x):
        return self.linear(self.rnn(x)[0][:, -1, :])


class Reshape(nn.Module):
    def forward(self, x):
        return x.view(x.shape[0], x.shape[1])


class ThreeInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 8)
        self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, ids, mask, image):
        text = (self.embed(ids) * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return text + self.conv(image).mean((2, 3))


class Branch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(10, 10)

    def forward(self, x):
        if x.shape[0] > 3:
            return self.linear(x) * 2
        return self.linear(x) + 100


class PadIfOdd(nn.Module):
    def forward(self, x):
        if x.shape[1] % 2:
            x = nn.functional.pad(x, (0, 1))
        return x.reshape(x.shape[0], -1, 2).sum(-1)


class SqueezeOne(nn.Module):
    def forward(self, x):
        if x.shape[0] == 1:
            return x.squeeze(0)
        return x * 2


class Truncate(nn.Module):
    def forward(self, x):
        length = min(x.shape[1], 12)
        return x[:, :length] + torch.arange(length)


class Hard(nn.Module):
    def forward(self, x):
        return x.view(3, 10)


class Pairs(nn.Module):
    def forward(self, x):
        return x.reshape(x.shape[0], -1, 2).sum(-1)


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Embedding(32, 8)

    def forward(self, x):
        return x + self.positions(torch.arange(x.shape[1]))


class ByValue(nn.Module):
    def forward(self, x):
        return x.sort(1).values[:, : x.shape[1] // 2 + 1], x[x > 0]


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("step", torch.zeros(()))

    def forward(self, x):
        self.step += 1
        return x * self.step


class Nested(nn.Module):
    def forward(self, x, past, scale=2.0, *, extra=None):
        keys = [torch.cat([key, x], 1) for key, _ in past]
        return {"y": x * scale + (0 if extra is None else extra), "keys": tuple(keys)}, x.shape[1]


def three_inputs(batch=3, seq=5, h=6, w=7):
    return {
        "ids": torch.randint(0, 100, (batch, seq)),
        "mask": torch.ones(batch, seq),
        "image": torch.randn(batch, 3, h, w),
    }


def nested(batch=2, seq=5, past=3):
    layers = [(torch.randn(batch, past, 4), torch.randn(batch, past, 4)) for _ in range(2)]
    return {"x": torch.randn(batch, seq, 4), "past": layers, "extra": torch.randn(batch, 1, 4)}


ZOO = (
    Row("linear", lambda: nn.Linear(10, 5), lambda batch=3: torch.randn(batch, 10)),
    Row("rnn", Rnn, lambda batch=3, seq=5: torch.randn(batch, seq, 10)),
    Row("lstm", lambda: nn.LSTM(6, 4, batch_first=True), lambda batch=3, seq=5: torch.randn(batch, seq, 6)),
    Row("gru", lambda: nn.GRU(6, 4, bidirectional=True), lambda batch=3, seq=5: torch.randn(seq, batch, 6)),
    Row("reshape", Reshape, lambda batch=3: torch.randn(batch, 10)),
    Row("three-inputs", ThreeInputs, three_inputs),
    Row("branch", Branch, lambda b=5: torch.randn(b, 10), ("1 <= b <= 64",)),
    Row("pad-if-odd", PadIfOdd, lambda b=3, t=8: torch.randn(b, t)),
    Row("squeeze-one", SqueezeOne, lambda b=3: torch.randn(b, 4)),
    Row("truncate", Truncate, lambda b=3, t=7: torch.randn(b, t)),
    Row("pairs-bare", Pairs, lambda b=3, t=8: torch.randn(b, t)),
    Row("positions-bare", Positions, lambda b=3, t=5: torch.randn(b, t, 8)),
    Row("values", ByValue, lambda b=3, t=5: torch.randn(b, t)),
    Row("counter", Counter, lambda b=3: torch.randn(b, 4), expect="AS143"),
    Row("nested", Nested, nested),
    Row("view-with-constant", Hard, lambda batch=3: torch.randn(batch, 10), expect="AS102"),
    Row("pairs-promised", Pairs, lambda b=3, t=8: torch.randn(b, t), ("1 <= t <= 64",), "AS103"),
    Row("positions-promised", Positions, lambda b=3, t=5: torch.randn(b, t, 8), ("1 <= t <= 64",), "AS103"),
)
