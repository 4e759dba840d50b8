"""Rows whose rule relates dims of several inputs: equal sizes, broadcasts, sums, and dims that are free."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from rows import Row, mask, row
from torch import Tensor, nn

ROWS: list[Row] = []


@row(
    ROWS,
    {"x": "a b", "y": "c d"},
    "(a == c or a == 1 or c == 1) and (b == d or b == 1 or d == 1)",
    a=3,
    b=5,
    c=3,
    d=5,
    upto={"b": 24},
)
class AddedMatrices(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y


@row(ROWS, {"x": "a", "y": "b"}, "a == b or a == 1 or b == 1", a=4, b=4)
class AddedVectors(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x * 2 + y


@row(ROWS, {"x": "a", "y": "b"}, "a == b or a == 1 or b == 1", fills={"x": mask, "y": mask}, a=4, b=4)
class AddedBooleans(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y


@row(ROWS, {"x": "n 3", "y": "m 3"}, "n == m", n=4, m=4)
class Stacked(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.stack([x, y], 1)


@row(ROWS, {"x": "p n 4", "y": "q m 4"}, "p == q", p=2, q=2, n=3, m=5)
class Joined(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.cat([x, y], 1)


@row(ROWS, {"x": "n k", "y": "l m"}, "k == l", n=3, k=4, l=4, m=5)
class Multiplied(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x @ y


@row(ROWS, {"x": "p n 4", "y": "q 4 m"}, "p == q or p == 1 or q == 1", p=2, q=2, n=3, m=5)
class MultipliedBatches(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.matmul(x, y)


@row(ROWS, {"x": "p n k", "y": "q l m"}, "p == q and k == l", p=2, q=2, n=3, k=4, l=4, m=5)
class ExactBatches(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.bmm(x, y)


@row(
    ROWS,
    {"x": "p i k", "y": "q j l"},
    "(p == q or p == 1 or q == 1) and (k == l or k == 1 or l == 1)",
    p=2,
    i=3,
    k=4,
    q=2,
    j=5,
    l=4,
)
class Summed(nn.Module):
    """einsum broadcasts axes of size 1."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.einsum("bik,bjk->bij", x, y)


@row(ROWS, {"x": "n 4", "y": "m 5"}, "n == m", n=3, m=3)
class Bilinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.form = nn.Bilinear(4, 5, 2)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.form(x, y)


@row(
    ROWS,
    {"query": "b q 8", "memory": "b k 8", "mask": "m n"},
    "(m == q or m == 1 or q == 1) and (n == k or n == 1)",
    fills={"mask": mask},
    b=2,
    q=3,
    k=5,
    m=3,
    n=5,
)
class CrossAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, query: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        scores = query @ self.key(memory).transpose(1, 2)
        return scores.masked_fill(~mask, -1e4).softmax(-1) @ self.value(memory)


@row(
    ROWS,
    {"query": "b q 8", "memory": "b k 8", "mask": "m n"},
    "m == q and n == k",
    b=2,
    q=3,
    k=5,
    m=3,
    n=5,
)
class MultiheadMask(nn.Module):
    """torch's own layer takes a mask of exactly (q, k)."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, query: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        return self.attention(query, memory, memory, attn_mask=mask, need_weights=False)[0]


@row(ROWS, {"x": "n 8", "y": "m 8"}, "n == m or n == 1 or m == 1", n=4, m=4)
class Similarity(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.cosine_similarity(x, y)


@row(ROWS, {"x": "p n 3", "y": "q m 3"}, "p == q or p == 1 or q == 1", p=2, q=2, n=4, m=5)
class Distances(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (x[:, :, None] - y[:, None]).square().sum(-1)


@row(
    ROWS,
    {"mask": "p", "x": "q", "y": "r"},
    "(p == q or p == 1 or q == 1) and (p == r or p == 1 or r == 1) and (q == r or q == 1 or r == 1)",
    fills={"mask": mask},
    p=4,
    q=4,
    r=4,
)
class Chosen(nn.Module):
    def forward(self, mask: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return torch.where(mask, x, y)


@row(ROWS, {"x": "a", "y": "b"}, "2 * a == b", a=3, b=6)
class TwiceAsLong(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.stack([x.repeat(2), y])


@row(ROWS, {"x": "n", "y": "m"}, "n - 1 == m", n=6, m=5)
class Differences(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.stack([x[1:] - x[:-1], y])


@row(ROWS, {"x": "n 2", "y": "m 2", "z": "k 2"}, "n + m == k", n=3, m=4, k=7)
class JoinedAndCompared(nn.Module):
    def forward(self, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        return torch.stack([torch.cat([x, y]), z]).amax(0)


@row(
    ROWS,
    {"x": "b seq 4", "cache": "b past 4", "mask": "b total"},
    "total == past + seq or total == 1",
    fills={"mask": mask},
    b=2,
    seq=2,
    past=3,
    total=5,
)
class MaskedCache(nn.Module):
    def forward(self, x: Tensor, cache: Tensor, mask: Tensor) -> Tensor:
        keys = torch.cat([cache, x], 1)
        scores = x @ keys.transpose(1, 2)
        return scores.masked_fill(~mask[:, None], -1e4).softmax(-1) @ keys


@row(ROWS, {"x": "n", "y": "m"}, "n == m", n=5, m=5)
class Dot(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.dot(x, y)


@row(ROWS, {"x": "n", "y": "m"}, "True", n=3, m=5)
class Outer(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.outer(x, y).tanh()


@row(ROWS, {"x": "n 3", "y": "m 3"}, "m == n or m == 1", n=4, m=4)
class Expanded(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.cat([x, y.expand_as(x)], 1)


@row(ROWS, {"q": "b heads s 4", "k": "b groups t 4"}, "heads % groups == 0", b=2, heads=4, groups=2, s=3, t=5)
class GroupedQueries(nn.Module):
    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        batch, heads, steps, width = q.shape
        groups = k.shape[1]
        q = q.view(batch, groups, heads // groups, steps, width)
        scores = q @ k[:, :, None].transpose(3, 4)
        return scores.reshape(batch, heads, steps, -1).softmax(-1)


@row(ROWS, {"x": "n m"}, "n == m or n == 1 or m == 1", n=4, m=4)
class Symmetric(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + x.T


@row(ROWS, {"x": "b n m"}, "n == m", b=2, n=4, m=4)
class Squared(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x @ x


@row(ROWS, {"x": "n k", "y": "m k"}, "True", n=3, m=4, k=5)
class Attended(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (x @ y.T).softmax(-1) @ y


@row(ROWS, {"x": "b n 6"}, "True", b=2, n=5)
class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(6, 2, 12, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)
