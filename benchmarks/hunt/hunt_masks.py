"""Attention in its variants, masks that are true in part, embeddings with padding and offsets."""

# ruff: noqa: C408
from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("masks")
WIDTH = 8


def plain(batch=2, seq=5):
    return (torch.randn(batch, seq, WIDTH),)


def kept(batch=2, seq=5):
    return dict(x=torch.randn(batch, seq, WIDTH), keep=torch.ones(batch, seq, dtype=torch.bool))


def kept_prefix(batch=2, seq=5):
    return dict(x=torch.randn(batch, seq, WIDTH), keep=torch.arange(seq) < torch.randint(1, seq + 1, (batch, 1)))


def kept_holes(batch=2, seq=5):
    return dict(
        x=torch.randn(batch, seq, WIDTH),
        keep=(torch.rand(batch, seq) < 0.5).index_fill(1, torch.tensor([seq - 1]), True),
    )


def kept_none(batch=2, seq=5):
    keep = torch.ones(batch, seq, dtype=torch.bool)
    keep[0] = False
    return dict(x=torch.randn(batch, seq, WIDTH), keep=keep)


PARTIAL = {"prefix": kept_prefix, "holes": kept_holes}
WITH_EMPTY = PARTIAL | {"empty row": kept_none}
FAR = {"seq": (1, 2, 7, 64, 127, 255, 256, 257, 300)}


class Heads(nn.Module):
    """Projections shared by several models below."""

    def __init__(self, heads=2):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def split(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return [part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (q, k, v)]

    def join(self, y):
        return self.out(y.transpose(1, 2).flatten(2))


@model("SDPA with a boolean mask, an empty row gives NaN or zero by the version of torch", kept, rare=PARTIAL, far=FAR)
class SdpaBoolean(Heads):
    def forward(self, x, keep):
        q, k, v = self.split(x)
        return self.join(F.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None, None]))


@model("SDPA with a float mask made of minus infinities", kept, rare=PARTIAL, far=FAR)
class SdpaInfinite(Heads):
    def forward(self, x, keep):
        q, k, v = self.split(x)
        bias = torch.zeros(keep.shape).masked_fill(~keep, -math.inf)
        return self.join(F.scaled_dot_product_attention(q, k, v, attn_mask=bias[:, None, None]))


@model("finfo.min as a mask: an empty row is the mean", kept, rare=WITH_EMPTY, far=FAR)
class MaskedByMinimum(Heads):
    def forward(self, x, keep):
        q, k, v = self.split(x)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~keep[:, None, None], torch.finfo(scores.dtype).min)
        return self.join(scores.softmax(-1) @ v)


@model("causal and padding masks joined", kept, rare=PARTIAL, far=FAR)
class CausalAndPadding(Heads):
    def forward(self, x, keep):
        q, k, v = self.split(x)
        causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        eye = torch.eye(x.shape[1], dtype=torch.bool)
        allowed = (causal & keep[:, None, None]) | eye
        return self.join(F.scaled_dot_product_attention(q, k, v, attn_mask=allowed))


@model("sliding window of 100 tokens", plain, far={"seq": (99, 100, 101, 102, 255, 256, 300)})
class SlidingWindow(Heads):
    def forward(self, x):
        q, k, v = self.split(x)
        place = torch.arange(x.shape[1])
        distance = place[:, None] - place
        return self.join(F.scaled_dot_product_attention(q, k, v, attn_mask=(distance >= 0) & (distance < 100)))


@model(
    "causal SDPA with more keys than queries: aligned top left",
    lambda queries=3, keys=5: (torch.randn(1, queries, 4), torch.randn(1, keys, 4)),
    points=[dict(queries=1, keys=1), dict(queries=5, keys=3), dict(queries=1, keys=300), dict(queries=257, keys=300)],
)
def causal_rectangle(self, q, k):
    return F.scaled_dot_product_attention(q, k, k, is_causal=True)


@model("grouped-query attention with repeated keys", plain, far=FAR)
class GroupedQueries(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(WIDTH, 8), nn.Linear(WIDTH, 4), nn.Linear(WIDTH, 4)

    def forward(self, x):
        q = self.q(x).unflatten(-1, (4, 2)).transpose(1, 2)
        k, v = (layer(x).unflatten(-1, (2, 2)).transpose(1, 2).repeat_interleave(2, 1) for layer in (self.k, self.v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)


@model("MultiheadAttention with weights per head and a key mask", kept, rare=PARTIAL, far={"seq": (1, 2, 33, 256)})
class MultiheadWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)

    def forward(self, x, keep):
        return self.attention(x, x, x, key_padding_mask=~keep, average_attn_weights=False)


@model("MultiheadAttention with extra zero and bias keys", kept, rare=WITH_EMPTY, far={"seq": (1, 2, 33, 256)})
class MultiheadExtraKeys(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True, add_bias_kv=True, add_zero_attn=True)

    def forward(self, x, keep):
        return self.attention(x, x, x, key_padding_mask=~keep, need_weights=False)[0]


@model(
    "MultiheadAttention, sequence first, key and value of other widths",
    lambda queries=3, keys=5, batch=2: (
        torch.randn(queries, batch, WIDTH),
        torch.randn(keys, batch, 6),
        torch.zeros(batch, keys, dtype=torch.bool),
    ),
    rare={
        "prefix": lambda queries=3, keys=5, batch=2: (
            torch.randn(queries, batch, WIDTH),
            torch.randn(keys, batch, 6),
            torch.arange(keys) >= torch.randint(1, keys + 1, (batch, 1)),
        )
    },
)
class CrossAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, kdim=6, vdim=6)

    def forward(self, q, kv, mask):
        return self.attention(q, kv, kv, key_padding_mask=mask)[0]


@model("encoder with both a causal mask and padding", kept, rare={"prefix": kept_prefix})
class EncoderCausal(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, x, keep):
        causal = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.encoder(x, mask=causal, src_key_padding_mask=torch.zeros(keep.shape).masked_fill(~keep, -math.inf))


@model(
    "decoder layer with a target mask of booleans",
    lambda batch=2, target=4, memory=5: (
        torch.randn(batch, target, WIDTH),
        torch.randn(batch, memory, WIDTH),
        torch.zeros(batch, memory, dtype=torch.bool),
    ),
    rare={
        "prefix": lambda batch=2, target=4, memory=5: (
            torch.randn(batch, target, WIDTH),
            torch.randn(batch, memory, WIDTH),
            torch.arange(memory) >= torch.randint(1, memory + 1, (batch, 1)),
        )
    },
)
class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(WIDTH, 2, 16, batch_first=True)

    def forward(self, x, memory, mask):
        causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return self.layer(x, memory, tgt_mask=causal, memory_key_padding_mask=mask)


@model("mean over kept places, with a guard against none", kept, rare=WITH_EMPTY, far=FAR)
def masked_mean(self, x, keep):
    weight = keep[..., None].float()
    return (x * weight).sum(1) / weight.sum(1).clamp(min=1)


@model("maximum over kept places; an empty row is minus infinity, made zero", kept, rare=WITH_EMPTY, far=FAR)
def masked_maximum(self, x, keep):
    best = x.masked_fill(~keep[..., None], -math.inf).amax(1)
    return torch.where(best.isinf(), torch.zeros_like(best), best)


@model("last kept place of each row by argmax of a flipped mask", kept, rare=PARTIAL, far=FAR)
def last_kept(self, x, keep):
    last = keep.shape[1] - 1 - keep.flip(1).int().argmax(1)
    return x[torch.arange(x.shape[0]), last]


@model(
    "positions counted by a cumulative sum of the mask",
    kept,
    rare=WITH_EMPTY,
    far={"seq": (1, 2, 255, 256, 257, 300)},
    where=["seq <= 300"],
)
class MaskPositions(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(301, WIDTH, padding_idx=0)

    def forward(self, x, keep):
        return x + self.table(keep.long().cumsum(1) * keep)


@model("boolean indexing over batch and time, then a statistic", kept, rare=WITH_EMPTY, unproved=True)
def indexed_by_mask(self, x, keep):
    return x[keep].sum(0)


@model("masked_select, masked_scatter back", kept, rare=WITH_EMPTY)
def scattered_back(self, x, keep):
    mask = keep[..., None].expand_as(x)
    return torch.zeros_like(x).masked_scatter(mask, x.masked_select(mask) * 2)


@model("in-place assignment by mask", kept, rare=WITH_EMPTY, far=FAR)
def assigned_by_mask(self, x, keep):
    x = x.clone()
    x[~keep] = -1.0
    return x.cumsum(1)


@model("logical operators on masks, xor with a shifted one", kept, rare=WITH_EMPTY, far=FAR)
def shifted_masks(self, x, keep):
    edge = keep ^ F.pad(keep, (1, 0))[:, :-1]
    return x * edge[..., None], edge.sum(1), edge.any(1), keep.all(1)


@model("attention sinks: four first tokens, and a window of 60", plain, far={"seq": (4, 5, 60, 61, 63, 64, 65, 300)})
class Sinks(Heads):
    def forward(self, x):
        q, k, v = self.split(x)
        place = torch.arange(x.shape[1])
        distance = place[:, None] - place
        allowed = (distance >= 0) & ((distance < 60) | (place < 4))
        return self.join(F.scaled_dot_product_attention(q, k, v, attn_mask=allowed))


@model(
    "block-diagonal attention by segment ids",
    lambda batch=2, seq=6: (torch.randn(batch, seq, 4), torch.zeros(batch, seq, dtype=torch.int64)),
    rare={
        "segments": lambda batch=2, seq=6: (torch.randn(batch, seq, 4), torch.randint(0, 3, (batch, seq))),
        "negative": lambda batch=2, seq=6: (torch.randn(batch, seq, 4), torch.randint(-2, 2, (batch, seq))),
    },
    far=FAR,
)
def segments(self, x, ids):
    same = ids[:, :, None] == ids[:, None]
    return F.scaled_dot_product_attention(x, x, x, attn_mask=same)


@model("linear attention with a running normalizer", plain, far=FAR)
def linear_attention(self, x):
    q, k = F.elu(x) + 1, F.elu(x.flip(-1)) + 1
    state = torch.einsum("bsd,bse->bsde", k, x).cumsum(1)
    return torch.einsum("bsd,bsde->bse", q, state) / (q * k.cumsum(1)).sum(-1, keepdim=True)


@model("talking heads: attention maps mixed across heads before the softmax", plain, far={"seq": (1, 2, 64, 257)})
class TalkingHeads(Heads):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(2, 2, bias=False)

    def forward(self, x):
        q, k, v = self.split(x)
        scores = self.mix((q @ k.transpose(-1, -2)).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return self.join(scores.softmax(-1) @ v)


@model(
    "EmbeddingBag with offsets, empty bags among them",
    lambda ids=7, bags=3: (torch.randint(0, 9, (ids,)), torch.arange(bags) * (ids // bags)),
    where=["bags <= ids"],
    points=[dict(ids=1, bags=1), dict(ids=9, bags=9), dict(ids=300, bags=7)],
    rare={
        "empty bags": lambda ids=7, bags=3: (torch.randint(0, 9, (ids,)), torch.zeros(bags, dtype=torch.int64)),
        "last empty": lambda ids=7, bags=3: (torch.randint(0, 9, (ids,)), torch.tensor([0] + [ids] * (bags - 1))),
    },
)
class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(9, 3, mode="sum")

    def forward(self, ids, offsets):
        return self.bag(ids, offsets)


@model(
    "EmbeddingBag of the mean with padding",
    lambda batch=3, width=4: (torch.randint(0, 9, (batch, width)),),
    rare={
        "padding": lambda batch=3, width=4: (torch.randint(0, 2, (batch, width)),),
        "all padding": lambda batch=3, width=4: (torch.zeros(batch, width, dtype=torch.int64),),
    },
)
class PaddedBags(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(9, 3, mode="mean", padding_idx=0)

    def forward(self, ids):
        return self.bag(ids)


@model(
    "negative ids count from the back by Python's indexing",
    lambda batch=2, seq=4: (torch.randint(0, 7, (batch, seq)),),
    rare={"negative": lambda batch=2, seq=4: (torch.randint(-7, 7, (batch, seq)),)},
)
class NegativeIds(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(7, 3))

    def forward(self, ids):
        return self.table[ids]


@model(
    "gather along time with indices that may repeat",
    lambda batch=2, seq=5, picks=3: (torch.randn(batch, seq), torch.randint(0, seq, (batch, picks))),
    rare={"same": lambda batch=2, seq=5, picks=3: (torch.randn(batch, seq), torch.full((batch, picks), seq - 1))},
    points=[dict(seq=1, picks=1), dict(seq=257, picks=300)],
)
def gathered(self, x, index):
    return x.gather(1, index), torch.zeros_like(x).scatter_add(1, index, x.gather(1, index))


@model(
    "index_add with repeated indices, and scatter_reduce of the maximum",
    lambda n=6, rows=4: (torch.randn(n), torch.randint(0, rows, (n,)), torch.zeros(rows)),
    rare={"one target": lambda n=6, rows=4: (torch.randn(n), torch.zeros(n, dtype=torch.int64), torch.zeros(rows))},
    points=[dict(n=1, rows=1), dict(n=300, rows=2), dict(n=2, rows=300)],
)
def reduced_by_index(self, x, index, base):
    return base.index_add(0, index, x), base.scatter_reduce(0, index, x, "amax", include_self=False)


@model(
    "index_put with accumulate and with negative indices",
    lambda n=5, m=4: (torch.randn(m), torch.randint(0, n, (m,)), torch.zeros(n)),
    rare={
        "negative": lambda n=5, m=4: (torch.randn(m), torch.randint(-n, 0, (m,)), torch.zeros(n)),
        "same": lambda n=5, m=4: (torch.randn(m), torch.full((m,), n - 1), torch.zeros(n)),
    },
)
def accumulated_put(self, x, index, base):
    return base.index_put((index,), x, accumulate=True)
