"""Tables that numpy makes from sizes are computed in the file, from the sizes of the call."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
import torch
from numpy import cos, pi
from torch import nn

import anyshape


@functools.lru_cache(maxsize=8)
def remembered_table(length, channels):
    turns = np.arange(length)[:, None] / np.power(10000, np.arange(0, channels, 2) / channels)
    return torch.from_numpy(np.stack([np.sin(turns), np.cos(turns)], -1).reshape(length, channels)).float()


class Remembered(nn.Module):
    def forward(self, x):
        return x + remembered_table(x.shape[1], x.shape[2])


class Positions(nn.Module):
    def forward(self, x):
        length, channels = x.shape[1:]
        table = np.zeros((length, channels))
        place, rate = (
            np.arange(0, length)[:, np.newaxis],
            np.exp(np.arange(0, channels, 2) * -(math.log(1e4) / channels)),
        )
        table[:, 0::2] = np.sin(place * rate)
        table[:, 1::2] = np.cos(place * rate)
        return x + torch.FloatTensor(table)


class Windows(nn.Module):
    def forward(self, x):
        length = x.shape[1]
        window = np.hanning(length + 2)[1:-1].astype(np.float32)
        own = 0.5 * (1 - cos(2 * pi * np.arange(length) / length))
        return x * torch.from_numpy(window)[:, None], torch.tensor(np.hamming(length)), torch.as_tensor(own)


class Masks(nn.Module):
    def forward(self, x):
        length = x.shape[1]
        later = torch.from_numpy(np.triu(np.ones((1, length, length)), k=1).astype("uint8")) == 1
        apart = np.abs(np.arange(length)[None] - np.arange(length)[:, None])
        scores = (x @ x.transpose(1, 2)).masked_fill(later, -1e9) + torch.tensor(np.where(apart < 3, 0.0, -1.0)).float()
        return scores.softmax(-1) @ x, torch.LongTensor(np.clip(apart, 0, 4))


class Numbers(nn.Module):
    def forward(self, x):
        half = int(np.ceil(x.shape[1] / 2))
        flat = x.reshape(x.shape[0], int(np.prod(x.shape[1:])))
        return x[:, :half], flat, torch.from_numpy(np.array([x.shape[0], x.shape[1] * 2]))


class Indices(nn.Module):
    def forward(self, x):
        last_first = np.arange(x.shape[1])[::-1].copy()
        return x[:, last_first], x * np.arange(x.shape[1], dtype=np.float32)[:, None]


class Samples(nn.Module):
    def forward(self, x):
        length = x.shape[1]
        written = x.clone()
        written[:, np.linspace(0, length, 4, endpoint=False).astype(int)] = 0
        return x[:, np.linspace(0, length - 1, 10).astype(int)], written, torch.tensor(np.linspace(0, 1, length))


class Ramp(nn.Module):
    def forward(self, x):
        length = x.shape[1]
        ramp = np.interp(np.arange(length), [0, length / 2, length], [0, 1, 0])
        return x * torch.from_numpy(ramp).float()[:, None], torch.tensor(np.interp(length, [0, 5, 10], [0.0, 1.0, 3.0]))


class Classes(nn.Module):
    def forward(self, x):
        places = x.abs().type(torch.LongTensor) + torch.from_numpy(np.arange(x.shape[1]))[:, None]
        return places if x.sum() > 0 else places + 1


class ThereAndBack(nn.Module):
    def forward(self, x):
        array = x.detach().cpu().numpy()
        return torch.from_numpy(np.sort(array, axis=1) - array.mean(axis=1, keepdims=True))


@pytest.mark.parametrize(
    "model", [Remembered, Positions, Windows, Masks, Numbers, Indices, Samples, Ramp, ThereAndBack]
)
@pytest.mark.long_table
def test_what_numpy_makes_of_sizes_follows_the_sizes(model) -> None:
    result = anyshape.export(model().eval(), lambda batch=2, seq=5: torch.randn(batch, seq, 8), None)
    assert result.strategy == "symbolic"


def test_torch_s_classes_are_taken_for_themselves_beside_numpy() -> None:
    result = anyshape.export(Classes(), lambda batch=2, seq=5: torch.randn(batch, seq, 8), None)
    assert result.strategy == "decided"


class Checked(nn.Module):
    """Sizes are checked as an array is."""

    def forward(self, x):
        rest = (np.array(x.shape[1:]) % np.power(2, 3)) > 0
        if rest.any():
            raise ValueError(f"axes {(np.where(rest)[0] + 1).tolist()} must be divisible by 8")
        return x * 2


def test_a_check_of_sizes_in_an_array_is_followed() -> None:
    result = anyshape.export(Checked(), (torch.randn(2, 16, 24),), None, dynamic={"x": "batch h w"})
    assert result.strategy == "symbolic"
    assert result.contract.domain.dim("h").max is None


def test_afterwards_numpy_and_torch_are_themselves() -> None:
    before = (np, cos, remembered_table, torch.from_numpy, torch.tensor, torch.FloatTensor)
    anyshape.export(Remembered().eval(), lambda batch=2, seq=5: torch.randn(batch, seq, 8), None)
    assert before == (globals()["np"], cos, remembered_table, torch.from_numpy, torch.tensor, torch.FloatTensor)
