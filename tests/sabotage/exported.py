"""Models that anyshape itself exports, to be broken on purpose: whose file is checked as a user would check it.

Dims are b and s throughout, as in the twins, so that the same mutations apply. The models of the twins are among them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx
import torch
import torch.nn.functional as F
from torch import nn
from twins import TWINS, Make, Of, both, floats, ids, mask

import anyshape
from anyshape.explore import AFFORDABLE, CHEAP, costing
from anyshape.inputs import Declared, declare, flatten_outputs
from anyshape.records.verdict import Verdict
from anyshape.verify import Reference, VerifyOptions, verify
from anyshape.verify.request import Cost, plan_check, request_for

EXAMPLE = {"b": 2, "s": 5}
WHERE = ("1 <= b <= 16", "1 <= s <= 16")


@dataclass(frozen=True)
class Subject:
    """A model, its inputs, and the rules of its domain."""

    name: str
    module: Callable[[], nn.Module]
    make: Make
    where: tuple[str, ...] = WHERE

    def build(self) -> nn.Module:
        torch.manual_seed(0)
        return self.module().eval()

    def inputs(self, b: int = EXAMPLE["b"], s: int = EXAMPLE["s"]) -> Any:
        return self.make({"b": b, "s": s}, torch.default_generator)

    def declared(self, module: nn.Module) -> Declared:
        return declare(module, self.inputs, where=self.where)

    def export(self, path: Path) -> None:
        anyshape.export(self.build(), self.inputs, path, where=self.where)


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase], **options: Any) -> None:
        super().__init__()
        self.layer = kind(8, 6, batch_first=True, **options)
        self.head = nn.Linear(12 if options.get("bidirectional") else 6, 3)

    def forward(self, x: torch.Tensor) -> Any:
        every, _ = self.layer(x)
        return self.head(every[:, -1]), every


class CellLoop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(8, 6), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state, out = torch.zeros(x.shape[0], 6), []
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
            out.append(self.head(state))
        return torch.stack(out, 1)


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, tokens: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        return self.layer(self.embed(tokens), src_key_padding_mask=~keep)


class Images(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.down = nn.Conv2d(3, 4, 3, 1, 1), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 3, 2, 1)
        self.norm.running_mean.uniform_(-1, 1)
        self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x: torch.Tensor) -> Any:
        y = F.relu(self.norm(self.stem(x)))
        z = F.max_pool2d(self.down(y), 2, ceil_mode=True)
        return F.interpolate(z, size=x.shape[2:], mode="nearest") + y, z.mean((2, 3))


class Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = self.project(x).view(batch, length, 3, 2, 4).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2)) / 2.0
        scores = scores.masked_fill(~keep[:, None, None, :], float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, 8))


def _branch(m: Any, x: torch.Tensor) -> torch.Tensor:
    y = m.w(x)
    if x.shape[1] > 6:
        return torch.tanh(y[:, :6] * 2 - 1)
    return F.relu(y) + x.shape[1]


def _windows(m: Any, x: torch.Tensor) -> torch.Tensor:
    padded = F.pad(x, (0, 0, 0, (-x.shape[1]) % 4))
    pieces = padded.reshape(x.shape[0], -1, 4, 8)
    return (m.w(pieces) + pieces.mean(2, keepdim=True)).flatten(1, 2)[:, : x.shape[1]]


def _positions(m: Any, x: torch.Tensor) -> torch.Tensor:
    places = torch.arange(x.shape[1], dtype=torch.float32)[:, None] / 10.0
    waves = torch.cat([torch.sin(places * 2.0), torch.cos(places / 3.0)], 1)
    return m.norm(x) * waves.sum(1)[:, None] + x[:, -1:] / x.shape[1]


def _halves(m: Any, x: torch.Tensor) -> Any:
    half = x.shape[1] // 2 + 1
    return x[:, :half].cumsum(1), x.flip(1)[:, half - 1 :].amax(1), torch.arange(half)


SUBJECTS = (
    *(Subject(twin.name, twin.module, twin.make) for twin in TWINS),
    Subject("rnn", lambda: Recurrent(nn.RNN), floats("b", "s", 8)),
    Subject("lstm", lambda: Recurrent(nn.LSTM, num_layers=2), floats("b", "s", 8)),
    Subject("gru both ways", lambda: Recurrent(nn.GRU, bidirectional=True), floats("b", "s", 8)),
    Subject("cell loop", CellLoop, floats("b", "s", 8)),
    Subject("encoder", Encoder, both(ids(20, "b", "s"), mask("b", "s"))),
    Subject("images", Images, floats("b", 3, "s", 10)),
    Subject("masked heads", Heads, both(floats("b", "s", 8), mask("b", "s"))),
    Subject("branch", lambda: Of(_branch, w=nn.Linear(8, 8)), floats("b", "s", 8)),
    Subject("windows", lambda: Of(_windows, w=nn.Linear(8, 8)), floats("b", "s", 8)),
    Subject("positions", lambda: Of(_positions, norm=nn.LayerNorm(8)), floats("b", "s", 8)),
    Subject("halves", lambda: Of(_halves), floats("b", "s", 4)),
)


def check(subject: Subject, path: Path, options: VerifyOptions) -> Verdict:
    """What `anyshape check` compares, at the sizes that it would choose."""
    module = subject.build()
    declared = subject.declared(module)
    with Reference(module, flatten_outputs) as reference:
        cost = Cost(costing(module, declared), CHEAP, AFFORDABLE)
        request = request_for(path, [value.name for value in onnx.load(path).graph.output], declared, reference)
        return verify(replace(request, sizes=plan_check(declared, cost, options.seed).sizes, options=options))
