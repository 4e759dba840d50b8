"""Models of the benchmark in plain torch."""

from __future__ import annotations

import torch
from torch import nn


class Linear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(10, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


class Recurrent(nn.Module):
    """A recurrent layer, and a linear one on its last step."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.RNN(10, 20, batch_first=True)
        self.linear = nn.Linear(20, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.rnn(x)[0][:, -1, :])


class Reshape(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.shape[0], x.shape[1])


class Tagger(nn.Module):
    """Words -> tags: an embedding, two bidirectional LSTM layers, a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5000, 128)
        self.lstm = nn.LSTM(128, 128, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(256, 17)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(self.embed(ids))[0])


def _double_convolution(channels: int, width: int) -> nn.Sequential:
    layers = []
    for taken in (channels, width):
        layers += [nn.Conv2d(taken, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Four levels down, four up, joined by concatenation."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(5)]
        self.down = nn.ModuleList(
            _double_convolution(taken, given) for taken, given in zip([3, *widths], widths, strict=False)
        )
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * given, given, 2, stride=2) for given in widths[-2::-1])
        self.joined = nn.ModuleList(_double_convolution(2 * given, given) for given in widths[-2::-1])
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        skipped, x = [], image
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else nn.functional.max_pool2d(x, 2))
            skipped.append(x)
        skipped.pop()
        for up, block in zip(self.up, self.joined, strict=True):
            x = block(torch.cat([skipped.pop(), up(x)], 1))
        return self.head(x)
