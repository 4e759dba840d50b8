"""Rows with values that matter: indices, lengths, raises by value. No size is refused, unless the row has a rule."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from rows import Row, distinct, integers, lengths, mask, row, unit
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

ROWS: list[Row] = []


@row(ROWS, {"x": "n 3", "index": "m"}, "True", fills={"index": integers("n")}, n=5, m=3)
class Picked(nn.Module):
    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        return x[index]


@row(ROWS, {"x": "n 3", "index": "m", "y": "m 3"}, "True", fills={"index": integers("n")}, n=6, m=4)
class Put(nn.Module):
    def forward(self, x: Tensor, index: Tensor, y: Tensor) -> Tensor:
        return x.index_put((index,), y, accumulate=True)


@row(ROWS, {"x": "n 3", "index": "m", "y": "m 3"}, "True", fills={"index": distinct("n")}, n=6, m=4)
class Copied(nn.Module):
    def forward(self, x: Tensor, index: Tensor, y: Tensor) -> Tensor:
        return x.clone().index_copy_(0, index, y)


@row(ROWS, {"x": "n 3", "index": "m", "y": "k 3"}, "m == k", fills={"index": integers("n")}, n=6, m=4, k=4)
class SegmentSum(nn.Module):
    def forward(self, x: Tensor, index: Tensor, y: Tensor) -> Tensor:
        return x.index_add(0, index, y)


@row(ROWS, {"x": "n 3", "repeats": "n"}, "True", fills={"repeats": integers(4, 1)}, n=4)
class Repeated(nn.Module):
    def forward(self, x: Tensor, repeats: Tensor) -> Tensor:
        return x.repeat_interleave(repeats, dim=0)


@row(ROWS, {"x": "b n", "index": "b m"}, "m <= n", fills={"index": integers("n")}, b=2, n=6, m=3)
class Scattered(nn.Module):
    """Votes are counted. The votes come from the scores, of which there must be enough."""

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        return torch.zeros_like(x).scatter_add(1, index, x)


@row(ROWS, {"x": "b n", "index": "b m"}, "True", fills={"index": integers("n")}, b=2, n=6, m=3)
class Gathered(nn.Module):
    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        return x.gather(1, index)


@row(ROWS, {"x": "p n 3", "index": "q"}, "p == q or p == 1 or q == 1", fills={"index": integers("n")}, p=3, q=3, n=5)
class LastOfEach(nn.Module):
    """One step of each sequence; the numbers of the sequences broadcast against the index."""

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        return x[torch.arange(x.shape[0]), index]


@row(ROWS, {"x": "b seq 4", "lengths": "b"}, "True", fills={"lengths": lengths("seq")}, b=3, seq=5)
class PackedLSTM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 3, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed, _ = self.lstm(pack_padded_sequence(x, lengths, batch_first=True))
        return pad_packed_sequence(packed, batch_first=True)[0]


@row(ROWS, {"x": "seq b 4", "lengths": "b"}, "True", fills={"lengths": lengths("seq", False)}, b=3, seq=5)
class PackedGRU(nn.Module):
    """The final state of each sequence, in any order of lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(4, 3, bidirectional=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        return self.gru(pack_padded_sequence(x, lengths, enforce_sorted=False))[1]


@row(
    ROWS,
    {"x": "b seq 4", "lengths": "c"},
    "b == c or b == 1 or c == 1",
    fills={"lengths": lengths("seq")},
    b=3,
    c=3,
    seq=5,
)
class MeanOfLengths(nn.Module):
    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        inside = torch.arange(x.shape[1]) < lengths[:, None]
        return (x * inside[..., None]).sum(1) / lengths[:, None]


@row(ROWS, {"x": "b seq 4"}, "True", b=3, seq=5)
class PlainGRU(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(4, 3, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.gru(x)[0][:, -1]


@row(ROWS, {"x": "b seq 4", "state": "1 c 3"}, "b == c", b=3, c=3, seq=5)
class GivenState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(4, 3, batch_first=True)

    def forward(self, x: Tensor, state: Tensor) -> Tensor:
        return self.gru(x, state)[0]


@row(ROWS, {"x": "b n"}, "True", fills={"x": unit}, b=2, n=6)
class RaisesByValue(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if (x > 2.5).any():
            raise ValueError("too loud")
        return x.cumsum(1)


@row(ROWS, {"x": "n 3"}, "True", n=6)
class Logarithm(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sum(0) * int(np.log2(x.shape[0]) * 10)


@row(ROWS, {"x": "n"}, "True", n=5)
class Combinations(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.combinations(x).prod(1)


@row(ROWS, {"x": "b n"}, "True", b=2, n=5)
class Conditional(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda y: y * 2, lambda y: y - 1, (x,))


@row(
    ROWS,
    {"scores": "n", "boxes": "n 4"},
    "True",
    fills={"scores": unit, "boxes": unit},
    options={"values": {"scores": "0 <= scores <= 1", "boxes": "0 <= boxes <= 1"}},
    n=12,
)
class DetectionHead(nn.Module):
    """The best boxes with a score above a half; scores are probabilities."""

    def forward(self, scores: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor]:
        if scores.max() > 1 or scores.min() < 0:
            raise ValueError("scores are probabilities")
        order = scores.argsort(descending=True)[:10]
        kept = order[scores[order] > 0.5]
        return scores[kept], boxes[kept]


@row(ROWS, {"ids": "b seq"}, "True", fills={"ids": integers(30)}, b=2, seq=6)
class BagOfTokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(30, 4, mode="mean")

    def forward(self, ids: Tensor) -> Tensor:
        return self.bag(ids)


@row(
    ROWS, {"ids": "b seq", "kinds": "b seq"}, "seq <= 20", fills={"ids": integers(30), "kinds": integers(2)}, b=2, seq=6
)
class TokensAndKinds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.kinds, self.positions = nn.Embedding(30, 4), nn.Embedding(2, 4), nn.Embedding(20, 4)

    def forward(self, ids: Tensor, kinds: Tensor) -> Tensor:
        return self.tokens(ids) + self.kinds(kinds) + self.positions(torch.arange(ids.shape[1]))


@row(ROWS, {"x": "b n"}, "n >= 5", b=2, n=9)
class FiveBest(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.topk(5, dim=1).values


@row(ROWS, {"x": "b n"}, "n >= 7", b=2, n=9)
class SeventhStep(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:, 6] - x[:, -7]


@row(ROWS, {"x": "n 3", "mask": "m"}, "n == m", fills={"mask": mask}, n=5, m=5)
class Masked(nn.Module):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return x[mask]


@row(ROWS, {"labels": "n"}, "True", fills={"labels": integers(6)}, n=5)
class OneHot(nn.Module):
    def forward(self, labels: Tensor) -> Tensor:
        return F.one_hot(labels, 6).float().mean(0)


@row(ROWS, {"edges": "2 e", "x": "n 3"}, "True", fills={"edges": integers("n")}, e=7, n=5)
class Graph(nn.Module):
    """Messages along edges, added at their ends."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, edges: Tensor, x: Tensor) -> Tensor:
        source, target = edges
        return x.index_add(0, target, self.linear(x)[source])


@row(ROWS, {"pixels": "n m"}, "True", fills={"pixels": lambda *made: integers(256)(*made).to(torch.uint8)}, n=5, m=4)
class NegatedBytes(nn.Module):
    def forward(self, pixels: Tensor) -> Tensor:
        return -pixels
