"""Models whose file shows nothing of a size that matters: a naive reading is wrong at other sizes. None may come out wrong."""

from __future__ import annotations

import torch
from repair_rows import Row, image, pixels, sequence, steps
from torch import Tensor, nn
from torch.nn import functional as F


class Function(nn.Module):
    """A function of one input as a model."""

    def __init__(self, function: object) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)  # type: ignore[operator]


def fill_up(x: Tensor) -> Tensor:
    return F.pad(x, (0, 0, 0, -x.shape[1] % 4)).cumsum(1)


def fill_up_evenly(x: Tensor) -> Tensor:
    missing = -x.shape[1] % 8
    return F.pad(x, (0, 0, missing // 2, missing - missing // 2)).cumsum(1)


def places(x: Tensor) -> Tensor:
    return x * torch.linspace(0, 1, x.shape[1])[None, :, None]


def shares(x: Tensor) -> Tensor:
    return x * (torch.arange(x.shape[1]) / x.shape[1])[None, :, None]


def backwards(x: Tensor) -> Tensor:
    return x + (x.shape[1] - 1 - torch.arange(x.shape[1]))[None, :, None]


def weighted(x: Tensor) -> Tensor:
    return torch.full((1, x.shape[1]), 1 / x.shape[1]) @ x


def made_axis(x: Tensor) -> Tensor:
    return x.mean(1)[:, :, None] * torch.arange(x.shape[1])


def grid(x: Tensor) -> Tensor:
    h, w = x.shape[2:]
    y = torch.linspace(-1, 1, h)[:, None].expand(h, w)
    at = torch.stack([torch.linspace(-1, 1, w).expand(h, w), y], -1)
    return F.grid_sample(x, at.expand(x.shape[0], h, w, 2), align_corners=True)


def coordinates(x: Tensor) -> Tensor:
    h = torch.linspace(-1, 1, x.shape[2])[None, None, :, None].expand(x.shape[0], 1, -1, x.shape[3])
    return torch.cat([x, h], 1)


def spread(x: Tensor) -> Tensor:
    return x.var(1) + x.std(1)


def spread_of_pixels(x: Tensor) -> Tensor:
    return x.var((1, 2, 3))


def most(x: Tensor) -> Tensor:
    return x.topk(x.shape[1], 1).values.cumsum(1)


def shares_of_rows(x: Tensor) -> Tensor:
    return x.sum(0, keepdim=True) / x.shape[0]


STEPS = {"x": "batch seq 16"}
PIXELS = {"x": "batch 3 h w"}


def _of_steps(name: str, function: object, seq: int = 10) -> Row:
    return Row(f"trap-{name}", lambda: Function(function), sequence(seq=seq), STEPS, **steps(batch=3, seq=seq))


def _of_pixels(name: str, function: object, h: int = 20, w: int = 28) -> Row:
    return Row(f"trap-{name}", lambda: Function(function), image(h=h, w=w), PIXELS, **pixels(h=h, w=w, step=4))


ROWS = (
    _of_steps("fill-up", fill_up),
    _of_steps("fill-up-evenly", fill_up_evenly, 14),
    _of_steps("fixed-length", lambda x: F.pad(x, (0, 0, 0, 32 - x.shape[1])).cumsum(1)),
    _of_steps("joined-length", lambda x: torch.cat([x, torch.zeros(x.shape[0], 16 - x.shape[1], 16)], 1).cumsum(1), 11),
    _of_steps("linspace", places),
    _of_steps("shares", shares),
    _of_steps("backwards", backwards),
    _of_steps("weighted", weighted),
    _of_steps("made-axis", made_axis),
    _of_steps("roll", lambda x: x.roll(3, 1)),
    _of_steps("roll-long", lambda x: x.roll(4, 1), 24),
    _of_steps("chunks", lambda x: x.chunk(2, 1)[1]),
    _of_steps("two-fifths", lambda x: x[:, : int(0.4 * x.shape[1])].cumsum(1)),
    _of_steps("middle", lambda x: x[:, x.shape[1] // 2]),
    _of_steps("before-last", lambda x: x[:, x.shape[1] - 3]),
    _of_steps("scaled-by-length", lambda x: x * x.shape[1] ** -0.5),
    _of_steps("logarithm", lambda x: x * torch.log(torch.tensor(float(x.shape[1])))),
    _of_steps("spread", spread),
    _of_steps("sorted", most),
    _of_steps("mean-of-rows", shares_of_rows),
    _of_steps("clipped", lambda x: x * torch.arange(x.shape[1]).clamp(max=x.shape[1] - 3)[None, :, None]),
    _of_steps("every-length", lambda x: x.reshape(x.shape[0], 8, -1).cumsum(1), 12),
    _of_steps("wave", lambda x: torch.sin(x * (2 * torch.pi / x.shape[1]))),
    _of_steps("centre", lambda x: x - (x.shape[1] - 1) / 2),
    _of_steps("expanded", lambda x: x.mean(1, keepdim=True).expand(-1, x.shape[1], -1).cumsum(1)),
    _of_steps("repeated", lambda x: x[:, :1].repeat(1, x.shape[1], 1).cumsum(1)),
    _of_steps("classes", lambda x: F.one_hot(x.argmax(2) % x.shape[1], x.shape[1]).sum(1)),
    _of_steps("parts", lambda x: x.view(x.shape[0], 2, x.shape[1] // 2, 16).cumsum(2)),
    _of_steps("parts-of-five", lambda x: x.view(x.shape[0], -1, 5, 16).cumsum(2), 15),
    _of_steps("pooled", lambda x: F.avg_pool1d(x.transpose(1, 2), x.shape[1])),
    _of_steps("counted-down", lambda x: x * torch.arange(x.shape[1], 0, -1)[None, :, None]),
    _of_steps("plus-length", lambda x: torch.softmax(x, 1) + x.shape[1]),
    _of_steps("identity", lambda x: torch.eye(x.shape[1]) @ x),
    Row(
        "trap-rows",
        lambda: Function(lambda x: x * x.shape[0] ** -0.5),
        lambda batch=5: {"x": torch.randn(batch, 16)},
        {"x": "batch 16"},
        {"batch": 5},
        [{"batch": 3}, {"batch": 9}],
    ),
    _of_pixels("adaptive", lambda x: F.adaptive_avg_pool2d(x, (5, 7))),
    _of_pixels("adaptive-two", lambda x: F.adaptive_avg_pool2d(x, (2, 2)), 4, 8),
    _of_pixels("adaptive-max", lambda x: F.adaptive_max_pool2d(x, (5, 7))),
    _of_pixels("global-window", lambda x: F.avg_pool2d(x, (x.shape[2], x.shape[3]))),
    _of_pixels("fixed-size", lambda x: F.interpolate(x, size=(40, 56), mode="nearest")),
    _of_pixels("half-size", lambda x: F.interpolate(x, size=(x.shape[2] // 2, x.shape[3] // 2), mode="nearest")),
    _of_pixels("grid", grid),
    _of_pixels("coordinates", coordinates),
    _of_pixels("spread-of-pixels", spread_of_pixels),
    _of_pixels(
        "crop", lambda x: x[:, :, 2 : x.shape[2] - 2, (x.shape[3] - 12) // 2 : (x.shape[3] + 12) // 2].cumsum(2)
    ),
)
