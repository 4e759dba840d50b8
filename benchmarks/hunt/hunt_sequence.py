"""Recurrent nets, sorting, scans, einsum and indices along sequences."""

# ruff: noqa: C408
from __future__ import annotations

import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

model = Registry("sequence")


def steps(batch=3, seq=5):
    return (torch.randn(batch, seq, 4),)


def flat(batch=3, seq=6):
    return (torch.randn(batch, seq),)


def with_lengths(batch=3, seq=5):
    return (torch.randn(batch, seq, 4), torch.full((batch,), seq))


def mixed_lengths(batch=3, seq=5):
    lengths = torch.randint(1, seq + 1, (batch,))
    lengths[0] = seq
    return (torch.randn(batch, seq, 4), lengths)


def falling_lengths(batch=3, seq=5):
    x, lengths = mixed_lengths(batch, seq)
    return (x, lengths.sort(descending=True).values)


def ones(batch=3, seq=5):
    return (torch.randn(batch, seq, 4), torch.ones(batch, dtype=torch.int64))


FAR = {"seq": (1, 2, 7, 64, 127, 255, 256, 257, 300)}
MIXED = {"mixed": mixed_lengths, "falling": falling_lengths}


@model("GRU over packed rows, unsorted lengths", with_lengths, rare=MIXED)
class PackedGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 3, batch_first=True)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, last = self.gru(packed)
        return pad_packed_sequence(out, batch_first=True, total_length=x.shape[1])[0], last


@model("bidirectional LSTM over packed rows, last states of both directions", with_lengths, rare=MIXED)
class PackedLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 3, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        _, (h, c) = self.lstm(packed)
        return torch.cat([h[0], h[1]], -1), c


@model(
    "two layers, bidirectional, initial states as inputs",
    lambda batch=2, seq=5: (torch.randn(batch, seq, 4), torch.randn(4, batch, 3), torch.randn(4, batch, 3)),
    far=FAR,
)
class DeepLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 3, 2, batch_first=True, bidirectional=True)

    def forward(self, x, h, c):
        return self.lstm(x, (h, c))


@model("LSTM with projection", steps, far=FAR)
class ProjectedLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 5, proj_size=2, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


@model("RNN with relu, without biases, without a batch axis", lambda seq=5: (torch.randn(seq, 4),), far=FAR)
class UnbatchedRnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(4, 3, nonlinearity="relu", bias=False)

    def forward(self, x):
        return self.rnn(x)


@model("GRU read backwards by flip, added to the forward one", steps, far=FAR)
class FlippedGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        return self.gru(x)[0] + self.gru(x.flip(1))[0].flip(1)


@model("a row is reversed up to its own length only", with_lengths, rare=MIXED | {"ones": ones}, far=FAR)
def reversed_to_length(self, x, lengths):
    place = torch.arange(x.shape[1])
    order = torch.where(place < lengths[:, None], lengths[:, None] - 1 - place, place)
    return x.gather(1, order[..., None].expand_as(x))


@model(
    "a convolutional encoder halves the lengths, then a GRU takes the last valid step",
    with_lengths,
    rare=MIXED,
    where=["seq >= 2"],
)
class HalvedLengths(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.gru = nn.Conv1d(4, 4, 3, 2, 1), nn.GRU(4, 3, batch_first=True)

    def forward(self, x, lengths):
        y = self.gru(self.conv(x.transpose(1, 2)).transpose(1, 2))[0]
        last = (lengths + 1) // 2 - 1
        return y[torch.arange(x.shape[0]), last]


@model(
    "pad_sequence of three inputs with lengths of their own",
    lambda a=3, b=5, c=2: ([torch.randn(a, 2), torch.randn(b, 2), torch.randn(c, 2)],),
    points=[dict(a=1, b=1, c=1), dict(a=300, b=2, c=7), dict(a=2, b=7, c=300)],
    unproved=True,
)
def padded_list(self, parts):
    return pad_sequence(parts, batch_first=True, padding_value=-1.0)


@model("cumulative sums in three directions", flat, far=FAR)
def running_sums(self, x):
    return x.cumsum(1), x.flip(1).cumsum(1).flip(1), x.cumsum(0)


@model(
    "cumulative product through zeros",
    flat,
    far={"seq": (1, 2, 64, 257)},
    rare={"zeros": lambda batch=3, seq=6: (torch.randint(0, 2, (batch, seq)).float(),)},
)
def running_product(self, x):
    return x.cumprod(1), torch.logcumsumexp(x, 1)


@model(
    "cumulative sum of integers overflows int32 but not int64",
    lambda n=6: (torch.randint(0, 9, (n,), dtype=torch.int32),),
    rare={"large": lambda n=6: (torch.full((n,), 2**30, dtype=torch.int32),)},
    far={"n": (1, 255, 256, 300)},
)
def integer_sums(self, x):
    return x.cumsum(0), x.sum(), x.float().mean()


@model("argsort of argsort: ranks", flat, far=FAR)
def ranks(self, x):
    return torch.argsort(torch.argsort(x, dim=1, stable=True), dim=1, stable=True)


@model("sort, difference, and back to the old order", flat, far=FAR)
def sorted_and_back(self, x):
    values, order = torch.sort(x, dim=1, stable=True)
    return torch.zeros_like(x).scatter(1, order, values.cumsum(1))


@model("top-k over a dim that may be smaller than k", flat, far={"seq": (1, 2, 3, 4, 5, 256)})
def topk_at_most(self, x):
    return x.topk(min(4, x.shape[1]), 1).values.sum(1)


@model(
    "nucleus: the smallest set of probability 0.9",
    lambda batch=2, vocab=7: (torch.randn(batch, vocab),),
    far={"vocab": (1, 2, 255, 256, 257, 1000)},
    rare={"sure": lambda batch=2, vocab=7: (50 * torch.eye(max(batch, vocab))[:batch, :vocab],)},
)
def nucleus(self, logits):
    p, order = torch.sort(logits.softmax(-1), dim=-1, descending=True, stable=True)
    drop = p.cumsum(-1) - p > 0.9
    return torch.zeros_like(p).scatter(-1, order, p.masked_fill(drop, 0.0))


@model(
    "einsum with a repeated index and an ellipsis",
    lambda batch=2, n=3: (torch.randn(batch, n, n), torch.randn(n, 4)),
    points=[dict(batch=1, n=1), dict(batch=7, n=33)],
)
def einsum_trace(self, x, y):
    return torch.einsum("...ii->...", x), torch.einsum("bij,jk->bik", x, y), torch.einsum("bij->bji", x)


@model(
    "einsum over four dims at once",
    lambda a=2, b=3, c=4, d=5: (torch.randn(a, b, c), torch.randn(c, d), torch.randn(a, d)),
    points=[dict(a=1, b=1, c=1, d=1), dict(a=5, b=1, c=7, d=2), dict(a=2, b=64, c=3, d=1)],
)
def einsum_four(self, x, y, z):
    return torch.einsum("abc,cd,ad->bd", x, y, z)


@model(
    "baddbmm, bmm and tensordot",
    lambda batch=2, n=3, m=4: (torch.randn(batch, n, m), torch.randn(batch, m, n)),
    points=[dict(batch=1, n=1, m=1), dict(batch=3, n=17, m=2)],
)
def products(self, x, y):
    return torch.baddbmm(torch.ones(1, 1, 1), x, y, beta=0.5, alpha=2.0), torch.tensordot(x, y, dims=([0, 1], [0, 2]))


@model("matrix powers and a chain of products", lambda n=3: (torch.randn(n, n) / 3,), far={"n": (1, 2, 16, 33)})
def matrix_powers(self, x):
    return torch.linalg.matrix_power(x, 5), torch.linalg.multi_dot([x, x, x])


@model(
    "kronecker product and block diagonal",
    lambda n=2, m=3: (torch.randn(n, n), torch.randn(m, m)),
    points=[dict(n=1, m=1), dict(n=5, m=2)],
)
def block_matrices(self, x, y):
    return torch.kron(x, y), torch.block_diag(x, y)


@model(
    "outer sums by broadcasting, upper triangle taken out by indices",
    lambda n=4: (torch.randn(n),),
    where=["n >= 2"],
    far={"n": (2, 3, 40, 128)},
)
def upper_pairs(self, x):
    i, j = torch.triu_indices(x.shape[0], x.shape[0], 1)
    return (x[i] - x[j]).abs()


@model(
    "combinations of two by torch.combinations",
    lambda n=4: (torch.randn(n),),
    where=["n >= 2"],
    far={"n": (2, 3, 20)},
    unproved=True,
)
def pairs(self, x):
    return torch.combinations(x, 2).prod(1)


@model("roll by half of the length", flat, far=FAR)
def rolled_half(self, x):
    return x.roll(x.shape[1] // 2, 1) - x.roll(-(x.shape[1] // 3), 1)


@model("interleave two sequences", lambda batch=2, seq=4: (torch.randn(batch, seq), torch.randn(batch, seq)), far=FAR)
def interleaved(self, x, y):
    return torch.stack([x, y], -1).flatten(1)


@model("shift by one with a start token", lambda batch=2, seq=4: (torch.randint(0, 9, (batch, seq)),), far=FAR)
def shifted_right(self, ids):
    return F.one_hot(F.pad(ids, (1, 0), value=9)[:, :-1], 10)


@model(
    "run lengths by comparing neighbours",
    lambda n=8: (torch.randint(0, 3, (n,)),),
    far={"n": (1, 2, 256, 300)},
    rare={"constant": lambda n=8: (torch.ones(n, dtype=torch.int64),)},
    unproved=True,
)
def run_lengths(self, ids):
    change = torch.cat([torch.ones(1, dtype=torch.bool), ids[1:] != ids[:-1]])
    run = change.cumsum(0) - 1
    return torch.zeros_like(ids).scatter_add(0, run, torch.ones_like(ids))


@model(
    "CTC collapse: repeats and blanks are dropped",
    lambda n=8: (torch.randint(0, 3, (n,)),),
    far={"n": (1, 2, 256, 300)},
    rare={"blanks": lambda n=8: (torch.zeros(n, dtype=torch.int64),)},
    unproved=True,
)
def collapsed(self, ids):
    keep = torch.cat([ids[:1] == ids[:1], ids[1:] != ids[:-1]]) & (ids != 0)
    return ids[keep]


@model(
    "beam scores: the top of a flattened product of two dims",
    lambda beams=3, vocab=5: (torch.randn(beams, vocab), torch.randn(beams)),
    points=[dict(beams=1, vocab=1), dict(beams=2, vocab=300), dict(beams=64, vocab=3)],
)
def best_beams(self, logits, scores):
    uneven = torch.arange(logits.shape[1]) * 0.01 + torch.arange(logits.shape[0])[:, None] * 0.37  # no ties
    total = (scores[:, None] + logits.log_softmax(-1) + uneven).flatten()
    best, index = total.topk(logits.shape[0])
    return best, index // logits.shape[1], index % logits.shape[1]


@model(
    "Viterbi-like maximum over a Python loop",
    lambda batch=2, seq=5: (torch.randn(batch, seq, 3),),
    where=["1 <= seq <= 300"],
    far={"seq": (1, 2, 256, 257, 300)},
    unproved=True,
)
class Viterbi(nn.Module):
    def __init__(self):
        super().__init__()
        self.transition = nn.Parameter(torch.randn(3, 3))

    def forward(self, x):
        score = x[:, 0]
        for t in range(1, x.shape[1]):
            score = (score[:, :, None] + self.transition).amax(1) + x[:, t]
        return score.amax(-1)
