"""Models with masks: attention of torch's own layers, pooling and positions by hand. Each takes x and one mask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

WIDTH = 8


@dataclass(frozen=True)
class Masked:
    """A module of (x, mask), and how a pattern of hidden positions is written as its mask."""

    module: Callable[[], nn.Module]
    as_mask: Callable[[torch.Tensor], torch.Tensor] = lambda hidden: hidden


class Padded(nn.Module):
    """nn.TransformerEncoder, then the mean of all positions: eager has zeros at padded ones."""

    def __init__(self, **more: Any) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, batch_first=True, **more)
        nests = not layer.norm_first  # else torch warns that it cannot
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(WIDTH), enable_nested_tensor=nests)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.encoder(x, src_key_padding_mask=mask).mean(1)


class Causal(nn.Module):
    """A causal mask beside the padding: rows that begin with padding have no key at all."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(WIDTH, 4, 16, batch_first=True, norm_first=True, activation="gelu")

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        size = x.shape[1]
        causal = torch.ones(size, size, dtype=torch.bool).triu(1)
        return self.layer(x, src_mask=causal, src_key_padding_mask=mask)


class Translating(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.transformer = nn.Transformer(WIDTH, 2, 1, 1, 16, batch_first=True)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.transformer(x, x.flip(1), src_key_padding_mask=mask, memory_key_padding_mask=mask)


class Decoding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(WIDTH, 2, 16, batch_first=True), 1)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.decoder(x, x * 0.5, tgt_key_padding_mask=mask)


class Attending(nn.Module):
    """nn.MultiheadAttention on its own, with its weights or without."""

    def __init__(self, need_weights: bool) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.need_weights = need_weights

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> Any:
        found = self.attention(x, x, x, key_padding_mask=mask, need_weights=self.need_weights)
        return found if self.need_weights else found[0]


class Hiding(nn.Module):
    """Attention by hand, with a mask that is added."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = x @ x.mT + mask[:, None, :]
        return scores.softmax(-1) @ x


class Pooling(nn.Module):
    """A softmax over the positions that are not hidden: NaN for a row without one."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(WIDTH, 1)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        weights = self.score(x).squeeze(-1).masked_fill(mask, -torch.inf).softmax(1)
        return (weights[..., None] * x).sum(1)


class Highest(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, places = x.masked_fill(mask[..., None], -torch.inf).max(1)
        return values, places


class LastShown(nn.Module):
    """The last position that is shown; of an empty row, by index -1, the last one."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        lengths = (~mask).sum(1)
        return x[torch.arange(x.shape[0]), lengths - 1]


class Positions(nn.Module):
    """Positions that count shown elements alone, as of padding on the left; an integer mask."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(64, WIDTH)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        shown = 1 - mask
        return x + self.table((shown.cumsum(1) - 1).masked_fill(mask == 1, 0))


class Falling(nn.Module):
    """The mean of what is shown; of a row where nothing is, the mean of all."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        shown = (~mask).to(x.dtype)[..., None]
        mean = (x * shown).sum(1) / shown.sum(1)
        return torch.where(mask.all(1, keepdim=True), x.mean(1), mean)


def added(hidden: torch.Tensor) -> torch.Tensor:
    return torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf)


MASKED = {
    "padded": Masked(Padded),
    "padded, a norm first": Masked(lambda: Padded(norm_first=True)),
    "causal and padded": Masked(Causal),
    "translating": Masked(Translating),
    "decoding": Masked(Decoding),
    "attention with weights": Masked(lambda: Attending(True)),
    "attention without weights": Masked(lambda: Attending(False)),
    "a mask that is added": Masked(Hiding, added),
    "pooling": Masked(Pooling),
    "the highest": Masked(Highest),
    "the last that is shown": Masked(LastShown),
    "positions": Masked(Positions, lambda hidden: hidden.to(torch.int64)),
    "falling back": Masked(Falling),
}
