"""Models of every kind that a report shows, each with its inputs and its rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.kinds = nn.Embedding(100, 32), nn.Embedding(2, 32)
        self.head = nn.Linear(32, 5)

    def forward(self, ids, mask, kinds):
        x = (self.words(ids) + self.kinds(kinds)) * mask[..., None]
        return {"logits": self.head(x), "pooled": x.mean(1)}


def encoder_inputs(batch=3, seq=5):
    shape = (batch, seq)
    return {"ids": torch.randint(0, 100, shape), "mask": torch.ones(shape), "kinds": torch.randint(0, 2, shape)}


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(50, 16), nn.Linear(16, 50)
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))

    def forward(self, ids, past_key, past_value):
        x = self.words(ids)
        key = torch.cat([past_key, self.key(x)], 1)
        value = torch.cat([past_value, self.value(x)], 1)
        scores = self.query(x) @ key.transpose(1, 2) / 4
        return {"logits": self.head(scores.softmax(-1) @ value), "key": key, "value": value}


def decoder_inputs(batch=2, past=4, seq=3):
    cache = {"past_key": torch.randn(batch, past, 16), "past_value": torch.randn(batch, past, 16)}
    return {"ids": torch.randint(0, 50, (batch, seq)), **cache}


class Regions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.small, self.large = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        if x.shape[1] > 16:
            return self.large(x).sum(1)
        return self.small(x).mean(1)


def regions_inputs(batch=2, seq=5):
    return {"x": torch.randn(batch, seq, 8)}


class Looped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(8, 8)

    def forward(self, x):
        state = torch.zeros(x.shape[1], 8)
        outputs = []
        for step in range(x.shape[0]):
            state = torch.tanh(self.cell(x[step] + state))
            outputs.append(state)
        return torch.stack(outputs)


def looped_inputs(steps=4, batch=2):
    return {"x": torch.randn(steps, batch, 8)}


class Baked(nn.Module):
    def forward(self, x, mask):
        return (x * mask[..., None]).sum(1).view(3, 8)


def baked_inputs(batch=3, seq=5):
    return {"x": torch.randn(batch, seq, 8), "mask": torch.ones(batch, seq)}


@dataclass(frozen=True)
class Kind:
    """A model, its inputs, and how it is exported."""

    model: Callable[[], nn.Module]
    inputs: Callable[..., dict[str, torch.Tensor]]
    where: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)


KINDS = {
    "encoder": Kind(Encoder, encoder_inputs, ("1 <= batch <= 64", "1 <= seq <= 512")),
    "decoder": Kind(Decoder, decoder_inputs, ("1 <= batch <= 8", "0 <= past", "past + seq <= 1024")),
    "regions": Kind(Regions, regions_inputs, ("1 <= batch <= 32", "1 <= seq <= 64")),
    "loop": Kind(Looped, looped_inputs, ("1 <= batch <= 4", "steps <= 9"), {"strategy": "rerolled", "verify": "quick"}),
    "refusal": Kind(Baked, baked_inputs, ("1 <= batch <= 64",)),
}
