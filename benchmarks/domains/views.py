"""Rows whose rule comes from views, reshapes, splits and windows: mostly multiples."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from rows import Row, row
from torch import Tensor, nn

ROWS: list[Row] = []


@row(ROWS, {"x": "b h w 3"}, "h % 4 == 0 and w % 4 == 0", name="windows-of-4", arguments=(4,), b=2, h=4, w=8)
@row(ROWS, {"x": "b h w 3"}, "h % 7 == 0 and w % 7 == 0", name="windows-of-7", arguments=(7,), b=2, h=14, w=14)
class WindowPartition(nn.Module):
    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window
        self.linear = nn.Linear(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        batch, height, width, channels = x.shape
        size = self.window
        x = x.view(batch, height // size, size, width // size, size, channels)
        windows = x.permute(0, 1, 3, 2, 4, 5).reshape(-1, size * size, channels)
        return self.linear(windows)


@row(ROWS, {"x": "b tokens 6"}, "isqrt(tokens)**2 == tokens", b=2, tokens=16, upto={"tokens": 110})
class SquareTokens(nn.Module):
    """Tokens of a square image, back to the image."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(6, 4, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, channels = x.shape
        side = int(math.sqrt(tokens))
        return self.conv(x.transpose(1, 2).reshape(batch, channels, side, side))


@row(ROWS, {"x": "n"}, "n % 20 == 0", name="view-20", arguments=(20,), n=40, upto={"n": 130})
@row(ROWS, {"x": "n"}, "n % 11 == 0", name="view-11", arguments=(11,), n=33, upto={"n": 80})
@row(ROWS, {"x": "n"}, "n % 64 == 0", name="view-64", arguments=(64,), n=128, upto={"n": 270})
@row(ROWS, {"x": "n 3"}, "n % 7 == 0", name="view-7-of-3", arguments=(7,), n=14, upto={"n": 60})
@row(ROWS, {"x": "n 8"}, "n % 3 == 0", name="view-12-of-8", arguments=(12,), n=6)
@row(ROWS, {"x": "n m"}, "n * m % 6 == 0", name="view-6-of-a-product", arguments=(6,), n=4, m=9)
class Lines(nn.Module):
    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length
        self.linear = nn.Linear(length, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x.reshape(-1, self.length))


@row(ROWS, {"x": "b n"}, "n % 2 == 0", name="frames-of-2", arguments=(2,), b=2, n=6)
@row(ROWS, {"x": "b n"}, "n % 3 == 0", name="frames-of-3", arguments=(3,), b=2, n=12)
@row(ROWS, {"x": "b n"}, "n % 5 == 0", name="frames-of-5", arguments=(5,), b=3, n=5)
@row(ROWS, {"x": "b n"}, "n % 13 == 0", name="frames-of-13", arguments=(13,), b=2, n=26, upto={"n": 80})
@row(ROWS, {"x": "b n"}, "n % 24 == 0", name="frames-of-24", arguments=(24,), b=2, n=48, upto={"n": 120})
@row(ROWS, {"x": "b n"}, "n % 48 == 0", name="frames-of-48", arguments=(48,), b=2, n=48, upto={"n": 200})
class Frames(nn.Module):
    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length

    def forward(self, x: Tensor) -> Tensor:
        batch, steps = x.shape
        frames = x.view(batch, steps // self.length, self.length)
        return frames.mean(-1) + frames.amax(-1)


@row(ROWS, {"x": "b 2 h w"}, "h % 2 == 0 and w % 3 == 0", name="patches-2-3", arguments=(2, 3), b=2, h=4, w=6)
@row(ROWS, {"x": "b 2 h w"}, "h % 6 == 0 and w % 10 == 0", name="patches-6-10", arguments=(6, 10), b=2, h=12, w=10)
@row(
    ROWS,
    {"x": "b 2 h w"},
    "h % 8 == 0 and w % 32 == 0",
    name="patches-8-32",
    arguments=(8, 32),
    b=2,
    h=16,
    w=32,
    upto={"h": 34, "w": 100},
)
@row(
    ROWS,
    {"x": "b 2 h w"},
    "h % 16 == 0 and w % 16 == 0",
    name="patches-16-16",
    arguments=(16, 16),
    b=1,
    h=32,
    w=32,
    upto={"h": 66, "w": 66},
)
class Patches(nn.Module):
    """An image cut into patches, each of them projected."""

    def __init__(self, tall: int, wide: int) -> None:
        super().__init__()
        self.tall, self.wide = tall, wide
        self.project = nn.Linear(2 * tall * wide, 5)

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        rows, columns = height // self.tall, width // self.wide
        x = x.reshape(batch, channels, rows, self.tall, columns, self.wide)
        return self.project(x.permute(0, 2, 4, 1, 3, 5).reshape(batch, rows * columns, -1))


@row(ROWS, {"x": "b s c"}, "c % 4 == 0", b=2, s=5, c=8)
class FourHeads(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        batch, steps, width = x.shape
        heads = x.view(batch, steps, 4, width // 4).transpose(1, 2)
        weights = (heads @ heads.transpose(2, 3)).softmax(-1)
        return (weights @ heads).transpose(1, 2).reshape(batch, steps, width)


@row(ROWS, {"x": "b n 4"}, "n % 3 == 0", b=2, n=6)
class Unflattened(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.unflatten(1, (3, -1)).softmax(1).sum(2)


@row(ROWS, {"x": "b n"}, "n % 2 == 0", b=2, n=8)
class GatedUnit(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.glu(x, dim=1)


@row(ROWS, {"x": "b n"}, "n % 2 == 0 or n == 3", b=2, n=8)
class ChunkedGate(nn.Module):
    """At 3 the chunks are 2 and 1 wide, and the product broadcasts."""

    def forward(self, x: Tensor) -> Tensor:
        value, gate = x.chunk(2, dim=1)
        return value * gate.sigmoid()


@row(ROWS, {"x": "b n"}, "n % 3 == 0", b=2, n=9)
class SplitThirds(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        query, key, value = x.split(x.shape[1] // 3, dim=1)
        return (query * key).softmax(1) * value


@row(ROWS, {"x": "b c h w"}, "c % 4 == 0", b=2, c=8, h=3, w=5)
class Shuffled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_shuffle(x, 2).tanh()


@row(ROWS, {"x": "b 2 h w"}, "h % 3 == 0 and w % 3 == 0", b=2, h=6, w=9)
class Unshuffled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_unshuffle(x, 3).tanh()


@row(ROWS, {"x": "b c 6"}, "c % 4 == 0", b=2, c=8)
class ChannelsShuffled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        batch, channels, length = x.shape
        return x.view(batch, 4, channels // 4, length).transpose(1, 2).reshape(batch, channels, length)


@row(ROWS, {"x": "b n"}, "n >= 5", b=2, n=11)
class SlidingWindows(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.unfold(1, 5, 3).amax(-1)


@row(ROWS, {"x": "b 2 h w"}, "h >= 3 and w >= 4", b=2, h=6, w=7)
class Unfolded(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.unfold(x, (3, 4)).mean(1)


@row(ROWS, {"x": "b 8 l"}, "l == 16", pinned=("16",), b=2, l=16)
class Folded(nn.Module):
    """Sixteen blocks make the 8 x 8 image, no other number does."""

    def forward(self, x: Tensor) -> Tensor:
        return F.fold(x, (8, 8), (2, 2), stride=2)


@row(ROWS, {"x": "n 4"}, "n == 1 or n % 2 == 0", n=6)
class OneOrPairs(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] == 1:
            return x.unsqueeze(0)
        return x.view(-1, 2, 4)


@row(ROWS, {"x": "b n"}, "n % 2 == 0 or n == 1 or n == 3", b=2, n=8)
class Haar(nn.Module):
    """Neighbours averaged. At 3 the halves are 2 and 1 wide and broadcast; at 1 they are 1 and 0 wide: an empty result."""

    def forward(self, x: Tensor) -> Tensor:
        return (x[:, 0::2] + x[:, 1::2]) / 2


@row(ROWS, {"x": "b h w 2"}, "h % 2 == 0 and w % 2 == 0", b=2, h=6, w=4)
class PatchMerging(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.reduce = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        corners = [x[:, i::2, j::2] for i in (0, 1) for j in (0, 1)]
        return self.reduce(torch.cat(corners, -1))
