"""Transformers, recurrent networks and other models of sequences."""

from __future__ import annotations

import math

import torch
from repair_rows import Row, batches, image, pixels, sequence, steps, tokens
from torch import Tensor, nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width: int = 16, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        b, s, width = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        if mask is not None:
            scores = scores.masked_fill(mask, -1e9)
        return self.out((torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, s, width))


class Encoder(nn.Module):
    def __init__(self, depth: int = 2) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Attention() for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(depth))
        self.feed = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x: Tensor) -> Tensor:
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + layer(norm(x))
            x = x + self.feed(x)
        return x


class Causal(nn.Module):
    """A causal mask built from the length, and an embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.attention, self.head = nn.Embedding(50, 16), Attention(), nn.Linear(16, 50)

    def forward(self, ids: Tensor) -> Tensor:
        mask = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
        return self.head(self.attention(self.embed(ids), mask))


class Positions(nn.Module):
    """Positions counted along the length, of a table of 64."""

    def __init__(self, length: int = 64) -> None:
        super().__init__()
        self.embed, self.places, self.attention = nn.Embedding(50, 16), nn.Embedding(length, 16), Attention()

    def forward(self, ids: Tensor) -> Tensor:
        places = torch.arange(ids.shape[1]).unsqueeze(0)
        return self.attention(self.embed(ids) + self.places(places))


class LearnedTable(nn.Module):
    """A table of as many rows as the sequence has."""

    def __init__(self) -> None:
        super().__init__()
        self.places, self.attention = nn.Parameter(torch.randn(1, 10, 16)), Attention()

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x + self.places)


class Masked(nn.Module):
    """Padding masked by an input."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.attention, self.head = nn.Embedding(50, 16), Attention(), nn.Linear(16, 3)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        x = self.attention(self.embed(ids), (mask == 0)[:, None, None, :])
        weight = mask.float().unsqueeze(-1)
        return self.head((x * weight).sum(1) / weight.sum(1).clamp(min=1e-6))


class CrossAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, query: Tensor, memory: Tensor) -> Tensor:
        return self.attention(query, memory, memory, need_weights=False)[0]


class Torch(nn.Module):
    def __init__(self, *, batch_first: bool) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=batch_first, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)


class Vit(nn.Module):
    """Patches, a class token, learned positions."""

    def __init__(self) -> None:
        super().__init__()
        self.patch, self.first = nn.Conv2d(3, 16, 8, 8), nn.Parameter(torch.randn(1, 1, 16))
        self.places, self.body, self.head = nn.Parameter(torch.randn(1, 17, 16)), Encoder(1), nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.body(x)[:, 0])


class Windows(nn.Module):
    """Attention in windows of 4 x 4 with a table of biases, as in Swin."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.attention = nn.Conv2d(3, 16, 1), Attention()
        self.bias = nn.Parameter(torch.randn(16, 16))

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        b, c, h, w = x.shape
        x = x.view(b, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 3, 5, 1).reshape(-1, 16, c)
        x = self.attention(x) + self.bias
        return x.view(b, h // 4, w // 4, 4, 4, c).permute(0, 5, 1, 3, 2, 4).reshape(b, c, h, w)


class Recurrent(nn.Module):
    def __init__(self, kind: str, *, both: bool = False, layers: int = 1) -> None:
        super().__init__()
        self.cell = getattr(nn, kind)(16, 8, layers, batch_first=True, bidirectional=both)
        self.head = nn.Linear(16 if both else 8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cell(x)[0])


class LastStep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTM(16, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        out, _ = self.cell(x.transpose(0, 1))
        return self.head(out[-1])


class Unrolled(nn.Module):
    """A Python loop over time: the file holds as many copies as the sequence has steps."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        state = torch.zeros(x.shape[0], 8)
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
        return state


class Mixer(nn.Module):
    """A matrix over positions: the length really is fixed."""

    def __init__(self) -> None:
        super().__init__()
        self.places, self.channels = nn.Linear(10, 10), nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.places(x.transpose(1, 2)).transpose(1, 2)
        return x + self.channels(x)


class SumPool(nn.Module):
    """A mean written as a sum over the length."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x.sum(1) / x.shape[1])


class MeanPool(SumPool):
    def forward(self, x: Tensor) -> Tensor:
        return self.head(x.mean(1))


class Halves(nn.Module):
    """The first half of a sequence."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, : x.shape[1] // 2].cumsum(1)


class Shifted(nn.Module):
    """A difference of neighbours, and the last step."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x[:, 1:] - x[:, :-1], x[:, -1]


class Repeated(nn.Module):
    """Keys shared by heads, as in grouped attention."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k = nn.Linear(16, 16), nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        b, s, _ = x.shape
        q = self.q(x).view(b, s, 4, 4).transpose(1, 2)
        k = self.k(x).view(b, s, 2, 4).transpose(1, 2)
        k = k[:, :, None].expand(b, 2, 2, s, 4).reshape(b, 4, s, 4)
        return torch.softmax(q @ k.transpose(-1, -2) * 0.3, -1)


class Rotary(nn.Module):
    """Angles computed from the length."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 16)
        self.register_buffer("rates", 1.0 / 100 ** (torch.arange(0, 16, 2).float() / 16))

    def forward(self, x: Tensor) -> Tensor:
        angles = torch.outer(torch.arange(x.shape[1]).float(), self.rates)
        angles = torch.cat([angles, angles], -1)
        x = self.linear(x)
        turned = torch.cat([-x[..., 8:], x[..., :8]], -1)
        return x * angles.cos() + turned * angles.sin()


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.cell, self.head = (
            nn.Embedding(50, 16),
            nn.LSTM(16, 8, bidirectional=True, batch_first=True),
            nn.Linear(16, 7),
        )

    def forward(self, ids: Tensor) -> Tensor:
        return F.log_softmax(self.head(self.cell(self.embed(ids))[0]), -1)


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 4))

    def forward(self, x: Tensor) -> Tensor:
        return F.softmax(self.body(x), -1)


class TwoTowers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(16, 8), nn.Linear(16, 8)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return F.normalize(self.one(a), dim=-1) @ F.normalize(self.two(b), dim=-1).T


class Centred(nn.Module):
    """Rows that are not independent: the mean of the batch is taken away."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(0, keepdim=True)


class FlatTokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        b, s, width = x.shape
        return self.linear(x.reshape(b * s, width)).view(b, s, 8)


class Relative(nn.Module):
    """Distances of positions, clipped, pick biases."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Embedding(9, 1)

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[1])
        near = (places[None, :] - places[:, None]).clamp(-4, 4) + 4
        return torch.softmax(x @ x.transpose(1, 2) + self.bias(near).squeeze(-1), -1) @ x


SEQ = {"x": "batch seq 16"}
IDS = {"ids": "batch seq"}


def pair(batch: int = 1, seq: int = 10) -> dict[str, Tensor]:
    return {
        "ids": torch.randint(0, 50, (batch, seq)),
        "mask": (torch.arange(seq) < seq - 1).long().expand(batch, seq).clone(),
    }


def cross(batch: int = 1, seq: int = 10, past: int = 6) -> dict[str, Tensor]:
    return {"query": torch.randn(batch, seq, 16), "memory": torch.randn(batch, past, 16)}


def towers(n: int = 5, m: int = 7) -> dict[str, Tensor]:
    return {"a": torch.randn(n, 16), "b": torch.randn(m, 16)}


CROSS = ({"query": "batch seq 16", "memory": "batch past 16"}, {"batch": 1, "seq": 10, "past": 6})
FAR = [{"batch": 3, "seq": 4, "past": 9}, {"batch": 2, "seq": 11, "past": 3}]

ROWS = (
    Row("encoder", Encoder, sequence(), SEQ, **steps()),
    Row("encoder-batch-3", Encoder, sequence(), SEQ, **steps(batch=3)),
    Row("encoder-equal", Encoder, sequence(), SEQ, {"batch": 10, "seq": 10}, steps()["others"]),
    Row("encoder-batch", Encoder, sequence(), {"x": "batch 10 16"}, **batches()),
    Row("causal", Causal, tokens(), IDS, **steps()),
    Row("causal-batch-2", Causal, tokens(), IDS, **steps(batch=2)),
    Row("positions", Positions, tokens(), IDS, **steps()),
    Row("positions-batch", Positions, tokens(), {"ids": "batch 10"}, **batches()),
    Row("learned-table", LearnedTable, sequence(), {"x": "batch 10 16"}, **batches()),
    Row("masked", Masked, pair, {"ids": "batch seq", "mask": "batch seq"}, **steps()),
    Row("masked-batch-4", Masked, pair, {"ids": "batch seq", "mask": "batch seq"}, **steps(batch=4)),
    Row("cross-attention", CrossAttention, cross, *CROSS, FAR),
    Row("torch-encoder", lambda: Torch(batch_first=True), sequence(), SEQ, **steps()),
    Row(
        "torch-encoder-seq-first",
        lambda: Torch(batch_first=False),
        lambda batch=3, seq=10: {"x": torch.randn(seq, batch, 16)},
        {"x": "seq batch 16"},
        **steps(batch=3),
    ),
    Row("vit-batch", Vit, image(), {"x": "batch 3 32 32"}, **batches()),
    Row("vit-batch-2", Vit, image(), {"x": "batch 3 32 32"}, **batches(batch=2)),
    Row("windows", Windows, image(h=24, w=32), {"x": "batch 3 h w"}, **pixels(h=24, w=32, step=4)),
    Row("windows-batch", Windows, image(), {"x": "batch 3 32 32"}, **batches()),
    *(
        Row(
            f"{kind.lower()}-batch",
            lambda kind=kind: Recurrent(kind),
            sequence(),
            {"x": "batch 10 16"},
            **batches(batch=2),
        )
        for kind in ("LSTM", "GRU", "RNN")
    ),
    Row("lstm", lambda: Recurrent("LSTM"), sequence(), SEQ, **steps()),
    Row("lstm-two-layers", lambda: Recurrent("LSTM", layers=2), sequence(), {"x": "batch 10 16"}, **batches()),
    Row("gru-both-ways", lambda: Recurrent("GRU", both=True), sequence(), {"x": "batch 10 16"}, **batches(batch=3)),
    Row("last-step", LastStep, sequence(), {"x": "batch 10 16"}, **batches(batch=2)),
    Row("unrolled-batch", Unrolled, sequence(seq=4), {"x": "batch 4 16"}, {"batch": 2}, [{"batch": 1}, {"batch": 5}]),
    Row("mixer-batch", Mixer, sequence(), {"x": "batch 10 16"}, **batches()),
    Row("mean-pool", MeanPool, sequence(), SEQ, **steps()),
    Row("shifted", Shifted, sequence(), SEQ, **steps(batch=3)),
    Row("grouped-keys", Repeated, sequence(), SEQ, **steps(batch=3)),
    Row("rotary-batch", Rotary, sequence(), {"x": "batch 10 16"}, **batches(batch=2)),
    Row("tagger", Tagger, tokens(), {"ids": "batch 10"}, **batches(batch=2)),
    Row("mlp", Mlp, lambda batch=1: {"x": torch.randn(batch, 16)}, {"x": "batch 16"}, **batches()),
    Row(
        "two-towers",
        TwoTowers,
        towers,
        {"a": "n 16", "b": "m 16"},
        {"n": 5, "m": 7},
        [{"n": 3, "m": 11}, {"n": 8, "m": 1}],
    ),
    Row(
        "centred",
        Centred,
        lambda batch=4: {"x": torch.randn(batch, 16)},
        {"x": "batch 16"},
        {"batch": 4},
        [{"batch": 3}, {"batch": 9}],
    ),
    Row("flat-tokens", FlatTokens, sequence(), SEQ, **steps(batch=3)),
    Row("relative", Relative, sequence(), SEQ, **steps(batch=2)),
)

# The size is in the file in a way that nothing in the file shows, or really is fixed: refused by node is the right answer.
HARD_ROWS = (
    Row("sum-pool", SumPool, sequence(), SEQ, **steps()),
    Row("halves", Halves, sequence(), SEQ, **steps(batch=3)),
    Row("unrolled", Unrolled, sequence(), SEQ, **steps(batch=2)),
    Row("mixer", Mixer, sequence(), SEQ, **steps()),
    Row("learned-table-seq", LearnedTable, sequence(), SEQ, **steps()),
    Row("vit", Vit, image(), {"x": "batch 3 h w"}, **pixels(step=8)),
    Row("rotary", Rotary, sequence(), SEQ, **steps()),
)
