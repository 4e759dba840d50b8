"""Small modules put together at random, for counting: each is a chain of blocks over a tensor [b, s, 8].

The seed decides everything, so a case can be made again by its number.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}
WIDTH = 8


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(x).chunk(3, -1)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))


class Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(2, 1, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        split = x.view(x.shape[0], x.shape[1], 2, 4).transpose(1, 2)
        return (split * self.scale).transpose(1, 2).reshape(x.shape)


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.transpose(1, 2)).transpose(1, 2)


class Of(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


def _distances(x: torch.Tensor) -> torch.Tensor:
    return x + torch.cdist(x, x).mean(-1, keepdim=True)


FUNCTIONS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    torch.tanh,
    F.gelu,
    F.silu,
    F.softplus,
    lambda x: x.softmax(-1),
    lambda x: x.cumsum(1) / (1 + torch.arange(x.shape[1], dtype=x.dtype)[:, None]),
    lambda x: x - x.mean(1, keepdim=True),
    lambda x: x / (1 + x.abs().amax(-1, keepdim=True)),
    lambda x: torch.cat([x[:, 1:], x[:, :1]], 1),
    lambda x: F.pad(x, (0, 0, 1, 0))[:, :-1] + x,
    lambda x: x.flip(1) * 0.5 + x,
    lambda x: torch.where(x > 0, x, 0.1 * x),
    lambda x: x.sort(-1).values,
    lambda x: x.clamp(-1, 1) * x.shape[1] / 8,
    lambda x: F.normalize(x, dim=-1),
    lambda x: x.pow(2).mean(-1, keepdim=True).add(1e-3).rsqrt() * x,
    lambda x: torch.logsumexp(x, -1, keepdim=True) - x,
)
MODULES: tuple[Callable[[], nn.Module], ...] = (
    lambda: nn.Linear(WIDTH, WIDTH),
    lambda: nn.LayerNorm(WIDTH),
    lambda: nn.Sequential(nn.Linear(WIDTH, 3 * WIDTH), nn.ReLU(), nn.Linear(3 * WIDTH, WIDTH)),
    Attention,
    Heads,
    Convolution,
)
HEADS: tuple[Callable[[torch.Tensor], Any], ...] = (
    lambda x: x,
    lambda x: x.mean(1),
    lambda x: (x, x.argmax(-1)),
    lambda x: {"best": x.topk(3, -1).values, "mask": x > 0},
    lambda x: x[:, -1],
    lambda x: x.std(1, correction=0),
)


class RandomModule(nn.Module):
    """Three to six blocks and a head."""

    def __init__(self, seed: int, dtype: torch.dtype) -> None:
        super().__init__()
        torch.manual_seed(seed)
        drawn = random.Random(seed)
        blocks: list[nn.Module] = []
        for _ in range(drawn.randint(3, 6)):
            own = drawn.random() < 0.5
            blocks.append(drawn.choice(MODULES)() if own else Of(drawn.choice(FUNCTIONS)))
        if dtype is torch.float64 and seed % 4 == 0:
            blocks.append(Of(_distances))
        self.blocks = nn.ModuleList(blocks)
        self.head = drawn.choice(HEADS)
        self.to(dtype).eval()

    def forward(self, x: torch.Tensor) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def random_inputs(dtype: torch.dtype) -> Callable[..., torch.Tensor]:
    """A function of sizes."""

    def inputs(b: int = 2, s: int = 5) -> torch.Tensor:
        return torch.randn(b, s, WIDTH).to(dtype)

    return inputs
