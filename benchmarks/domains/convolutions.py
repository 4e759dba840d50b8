"""Rows whose rule comes from convolutions, poolings, paddings and norms: multiples, least sizes, ranges."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from rows import Row, row
from torch import Tensor, nn

ROWS: list[Row] = []
_WIDE = {"b": 2, "h": 140, "w": 140}


@row(
    ROWS,
    {"x": "b 3 h w"},
    "h % 32 == 0 and w % 32 == 0",
    name="five-poolings",
    arguments=(5,),
    b=1,
    h=64,
    w=64,
    upto=_WIDE,
)
@row(ROWS, {"x": "b 3 h w"}, "h % 8 == 0 and w % 8 == 0", name="u-net-depth-3", arguments=(3,), b=2, h=16, w=24)
@row(ROWS, {"x": "b 3 h w"}, "h % 4 == 0 and w % 4 == 0", name="u-net-depth-2", arguments=(2,), b=2, h=8, w=12)
@row(ROWS, {"x": "b 3 h w"}, "h % 2 == 0 and w % 2 == 0", name="u-net-depth-1", arguments=(1,), b=2, h=8, w=8)
class UNet(nn.Module):
    """Poolings by 2, and as many upsamplings, each joined with what was there before the pooling."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, 4, 3, padding=1)
        self.down = nn.ModuleList(nn.Conv2d(4, 4, 3, padding=1) for _ in range(depth))
        self.up = nn.ModuleList(nn.Conv2d(8, 4, 3, padding=1) for _ in range(depth))

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        skips = []
        for conv in self.down:
            skips.append(x)
            x = F.relu(conv(F.max_pool2d(x, 2)))
        for conv in self.up:
            x = F.interpolate(x, scale_factor=2.0, mode="nearest")
            x = F.relu(conv(torch.cat([x, skips.pop()], 1)))
        return x


@row(ROWS, {"x": "b 2 n"}, "n % 2 == 0", b=2, n=10)
class TransposedSkip(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv1d(2, 4, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose1d(4, 2, 2, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.up(self.down(x))], 1)


@row(ROWS, {"x": "b 2 n"}, "n % 4 == 0", b=2, n=8)
class UpsampledResidual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        small = self.conv(F.avg_pool1d(x, 4))
        return x + small.repeat_interleave(4, dim=2)


@row(ROWS, {"x": "b 1 h w"}, "h >= 7 and w >= 7", b=2, h=12, w=12)
class ThreeValidConvolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Conv2d(2, 2, 3), nn.ReLU(), nn.Conv2d(2, 1, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


@row(ROWS, {"x": "b 2 n"}, "n >= 15", b=2, n=20, upto={"n": 40})
class DilatedChain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Conv1d(2, 2, 3, dilation=dilation) for dilation in (1, 2, 4)))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


@row(ROWS, {"x": "b 2 h w"}, "h >= 9 and w >= 9", b=2, h=17, w=20)
class StridedStem(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 3, 5, stride=2)
        self.second = nn.Conv2d(3, 3, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(F.relu(self.first(x))).mean((2, 3))


@row(ROWS, {"x": "b 2 h w"}, "h >= 8 and w >= 8", b=2, h=16, w=20)
class ThreePoolings(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool2d(F.max_pool2d(F.max_pool2d(x, 2), 2), 2)


@row(ROWS, {"x": "b 2 n"}, "n >= 4", b=2, n=9)
class AveragedBlocks(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.avg_pool1d(x, 4)


@row(ROWS, {"x": "b 1 s s"}, "32 <= s <= 35", b=2, s=32, upto={"s": 48})
class LeNet(nn.Module):
    """The classifier takes 16 maps of 5 x 5."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 6, 5)
        self.second = nn.Conv2d(6, 16, 5)
        self.classifier = nn.Linear(16 * 5 * 5, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.first(x)), 2)
        x = F.max_pool2d(F.relu(self.second(x)), 2)
        return self.classifier(x.flatten(1))


@row(ROWS, {"x": "b 3 h w"}, "True", b=2, h=9, w=11)
class AdaptiveHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.classifier = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(F.adaptive_avg_pool2d(F.relu(self.conv(x)), 1).flatten(1))


@row(ROWS, {"x": "b 2 h w"}, "h % 2 == 0 and w % 2 == 0", b=2, h=8, w=10)
class TwoBranches(nn.Module):
    """A strided convolution rounds up, a pooling rounds down."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.conv(x), F.max_pool2d(x, 2)], 1)


@row(ROWS, {"x": "b 2 n"}, "n >= 4", name="reflected", arguments=("reflect", 3), b=2, n=8)
@row(ROWS, {"x": "b 2 n"}, "n >= 5", name="wrapped", arguments=("circular", 5), b=2, n=8)
class Padded(nn.Module):
    def __init__(self, mode: str, width: int) -> None:
        super().__init__()
        self.mode, self.width = mode, width

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x, (self.width, self.width), mode=self.mode)


@row(ROWS, {"x": "b 2 n"}, "n >= 5", b=2, n=9)
class CroppedResidual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 5)

    def forward(self, x: Tensor) -> Tensor:
        return x[:, :, 2:-2] + self.conv(x)


@row(ROWS, {"x": "b 4 n"}, "n // 3 % 2 == 0 and n >= 3", b=2, n=12)
class PairsOfStrides(nn.Module):
    """A convolution of stride 3, then pairs of what it gives: its n // 3 steps must be even."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 3, stride=3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        return x.view(x.shape[0], 4, x.shape[2] // 2, 2).amax(-1)


@row(ROWS, {"x": "b c n"}, "c % 4 == 0 and b * c * n > 4", b=2, c=8, n=6)
class GroupNormed(nn.Module):
    """torch refuses groups of a single value."""

    def forward(self, x: Tensor) -> Tensor:
        return F.group_norm(x, 4)


@row(ROWS, {"x": "b 3 n"}, "n >= 2", b=2, n=6)
class InstanceNormed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.InstanceNorm1d(3)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x)


@row(ROWS, {"x": "b c n", "weight": "o i k"}, "c == i and n >= k", b=2, c=3, n=9, o=4, i=3, k=3)
class GivenWeights(nn.Module):
    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.conv1d(x, weight)


@row(ROWS, {"signal": "b n"}, "n >= 16", b=2, n=40, upto={"n": 48})
class Spectrum(nn.Module):
    """Frames of 16 samples, each 8 after the last, through a cosine basis."""

    def __init__(self) -> None:
        super().__init__()
        steps = torch.arange(16.0)
        self.register_buffer("basis", torch.cos(torch.outer(steps, steps + 0.5) * torch.pi / 16))

    def forward(self, signal: Tensor) -> Tensor:
        return (signal.unfold(1, 16, 8) @ self.basis).square().log1p()
