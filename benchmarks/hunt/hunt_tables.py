"""Tabular, time series, recommender, graph and reinforcement models as people write them for their jobs."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("tables and graphs")


def series(batch=2, seq=12):
    return (torch.randn(batch, seq, 3),)


def table(batch=4):
    cats = torch.stack([torch.randint(0, n, (batch,)) for n in (4, 7, 12)], 1)
    return cats, torch.randn(batch, 5)


def graph(nodes=6, edges=10):
    return torch.randn(nodes, 8), torch.randint(0, nodes, (2, edges))


@model(
    "categories by column with their own tables; unknown values above the cardinality go to the last row, NaNs in numbers to a mean",
    table,
    far={"batch": (1, 2, 33)},
    rare={
        "unknown": lambda batch=4: (torch.full((batch, 3), 99), torch.randn(batch, 5)),
        "missing": lambda batch=4: (
            torch.zeros(batch, 3, dtype=torch.long),
            torch.randn(batch, 5).masked_fill(torch.rand(batch, 5) < 0.5, float("nan")),
        ),
    },
)
class EntityEmbeddings(nn.Module):
    def __init__(self, cards=(4, 7, 12)):
        super().__init__()
        self.cards = cards
        self.tables = nn.ModuleList(nn.Embedding(n + 1, min(50, (n + 1) // 2)) for n in cards)
        self.register_buffer("mean", torch.randn(5))
        self.bn = nn.BatchNorm1d(5)
        self.fc = nn.Linear(sum(t.embedding_dim for t in self.tables) + 10, 2)

    def forward(self, cats, nums):
        embs = []
        for i, (table, n) in enumerate(zip(self.tables, self.cards)):
            col = cats[:, i]
            col = torch.where((col < 0) | (col >= n), torch.full_like(col, n), col)
            embs.append(table(col))
        missing = torch.isnan(nums)
        nums = torch.where(missing, self.mean, nums)
        return self.fc(torch.cat([*embs, self.bn(nums), missing.float()], 1))


@model(
    "hash embedding: ids times large primes overflow 64 bits on purpose, xor, then a remainder that is never negative",
    lambda batch=3, items=4: (torch.randint(0, 2**40, (batch, items)),),
    far={"batch": (1, 9), "items": (1, 33)},
    rare={
        "huge": lambda batch=3, items=4: (torch.full((batch, items), 2**62 + 12345),),
        "zero": lambda batch=3, items=4: (torch.zeros(batch, items, dtype=torch.long),),
    },
)
class HashEmbedding(nn.Module):
    def __init__(self, buckets=101, hashes=2):
        super().__init__()
        self.buckets = buckets
        self.register_buffer("a", torch.tensor([2654435761, 40503 * 65537 + 7])[:hashes])
        self.emb = nn.Embedding(buckets, 6)
        self.importance = nn.Embedding(buckets, hashes)

    def forward(self, ids):
        h = ids.unsqueeze(-1) * self.a
        h = h ^ (h >> 15)
        idx = h % self.buckets
        w = self.importance(ids % self.buckets)
        x = (self.emb(idx) * w.unsqueeze(-1)).sum(-2)
        return F.normalize(x.mean(1), dim=-1)


@model(
    "GCN: self loops are added with arange, degrees by index_add, isolated nodes keep only themselves",
    graph,
    far={"nodes": (1, 2, 33), "edges": (1, 7, 64)},
    points=({"nodes": 1, "edges": 5}, {"nodes": 20, "edges": 2}),
)
class Gcn(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.l2 = nn.Linear(8, 6), nn.Linear(6, 3)

    def propagate(self, x, edge_index):
        n = x.size(0)
        loops = torch.arange(n, dtype=torch.long).unsqueeze(0).repeat(2, 1)
        keep = edge_index[0] != edge_index[1]
        edge_index = torch.cat([edge_index[:, keep], loops], dim=1)
        row, col = edge_index
        deg = torch.zeros(n).index_add_(0, col, torch.ones(col.numel()))
        inv = deg.pow(-0.5)
        inv[inv == float("inf")] = 0
        norm = inv[row] * inv[col]
        return torch.zeros_like(x).index_add_(0, col, norm.unsqueeze(1) * x[row])

    def forward(self, x, edge_index):
        x = F.relu(self.propagate(self.l1(x), edge_index))
        return F.log_softmax(self.propagate(self.l2(x), edge_index), dim=1)


@model(
    "GAT: softmax by target node with scatter_reduce amax, over nodes that may have no edge",
    graph,
    far={"nodes": (1, 3, 40), "edges": (1, 2, 50)},
    rare={
        "one target": lambda nodes=6, edges=10: (
            torch.randn(nodes, 8),
            torch.stack([torch.arange(edges) % nodes, torch.zeros(edges, dtype=torch.long)]),
        )
    },
)
class Gat(nn.Module):
    def __init__(self, heads=2):
        super().__init__()
        self.heads = heads
        self.lin = nn.Linear(8, 4 * heads, bias=False)
        self.a_src, self.a_dst = nn.Parameter(torch.randn(1, heads, 4)), nn.Parameter(torch.randn(1, heads, 4))

    def forward(self, x, edge_index):
        src, dst = edge_index[0], edge_index[1]
        h = self.lin(x).view(-1, self.heads, 4)
        e = F.leaky_relu(((h * self.a_src).sum(-1))[src] + ((h * self.a_dst).sum(-1))[dst], 0.2)
        index = dst.unsqueeze(-1).expand_as(e)
        emax = e.new_zeros(x.size(0), self.heads).scatter_reduce(0, index, e, reduce="amax", include_self=False)
        p = (e - emax[dst]).exp()
        total = p.new_zeros(x.size(0), self.heads).scatter_add(0, index, p)
        p = p / (total[dst] + 1e-16)
        out = torch.zeros_like(h).index_add(0, dst, p.unsqueeze(-1) * h[src])
        return F.elu(out.flatten(1)), p


@model(
    "lags of the target are cut from the history with negative slices that need seq of at least the longest lag",
    lambda batch=2, seq=40: (torch.randn(batch, seq), torch.randn(batch, seq, 2)),
    where=["seq > 28"],
    far={"seq": (29, 30, 33, 64, 100), "batch": (1, 5)},
)
class LaggedForecaster(nn.Module):
    def __init__(self, lags=(1, 2, 7, 14, 28)):
        super().__init__()
        self.lags = lags
        self.rnn = nn.GRU(len(lags) + 2, 6, batch_first=True)
        self.out = nn.Linear(6, 2)

    def forward(self, past_target, feats):
        n = past_target.shape[1] - max(self.lags)
        lagged = []
        for lag in self.lags:
            begin = -lag - n
            end = -lag if lag > 0 else None
            lagged.append(past_target[:, begin:end])
        scale = past_target.abs().mean(1, keepdim=True).clamp(min=1e-5)
        x = torch.cat([torch.stack(lagged, -1) / scale.unsqueeze(-1), feats[:, -n:]], -1)
        h, _ = self.rnn(x)
        mu, sigma = self.out(h).chunk(2, -1)
        return (mu.squeeze(-1) * scale, F.softplus(sigma).squeeze(-1) * scale)


@model(
    "seasonal index from the first timestamp's number: (t0 + arange) % 7 and // 24 % 12 pick rows of tables",
    lambda batch=2, seq=12, start=3: (torch.randn(batch, seq, 3), start),
    far={"seq": (1, 7, 8, 100), "start": (1, 6, 7, 23, 24, 1000)},
)
class SeasonalEmbeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.day, self.month = nn.Embedding(7, 4), nn.Parameter(torch.randn(12, 4))
        self.fc = nn.Linear(11, 1)

    def forward(self, x, start: int):
        t = start + torch.arange(x.size(1), device=x.device)
        day = self.day((t // 24) % 7)
        month = self.month[(t // (24 * 30)) % 12]
        hour = torch.stack(
            [
                torch.sin(2 * math.pi * (t % 24) / 24),
                torch.cos(2 * math.pi * (t % 24) / 24),
                (start + x.size(1)) / 24 * torch.ones(len(t)),
            ],
            -1,
        )
        extra = torch.cat([day, month, hour], -1) if start >= 24 else torch.cat([month, day, hour], -1)
        w = self.fc(extra).squeeze(-1)
        return (x * w[None, :, None]).cumsum(1)


@model(
    "quantiles of the history scale the series, a monotone head gives non-crossing quantiles; interpolation depends on seq - 1",
    series,
    far={"seq": (1, 2, 3, 4, 5, 33), "batch": (1, 4)},
    rare={"constant": lambda batch=2, seq=12: (torch.ones(batch, seq, 3),)},
)
class QuantileHead(nn.Module):
    def __init__(self, quantiles=(0.1, 0.25, 0.5, 0.75, 0.9)):
        super().__init__()
        self.register_buffer("q", torch.tensor(quantiles))
        self.fc = nn.Linear(6, 5)

    def forward(self, x):
        stats = torch.quantile(x, self.q[[1, 2, 3]], dim=1)
        iqr = (stats[2] - stats[0]).clamp(min=1e-3)
        med = x.median(dim=1).values
        z = (x - med.unsqueeze(1)) / iqr.unsqueeze(1)
        raw = self.fc(torch.cat([z.mean(1), z[:, -1]], -1))
        q = torch.cat([raw[:, :1], raw[:, :1] + F.softplus(raw[:, 1:]).cumsum(-1)], -1)
        return q * iqr[:, :1] + med[:, :1], stats


def emissions(batch=2, seq=7):
    lengths = torch.randint(1, seq + 1, (batch,))
    return torch.randn(batch, seq, 5), torch.arange(seq)[None] < lengths[:, None]


@model(
    "CRF partition function: a loop over time with a mask, and the score of a path by gather",
    lambda batch=2, seq=7: (*emissions(batch, seq), torch.randint(0, 5, (batch, seq))),
    where=["seq <= 64"],
    far={"seq": (1, 2, 33, 64), "batch": (1, 3)},
)
class CrfLoss(nn.Module):
    def __init__(self, tags=5):
        super().__init__()
        self.start, self.end, self.trans = (
            nn.Parameter(torch.randn(tags)),
            nn.Parameter(torch.randn(tags)),
            nn.Parameter(torch.randn(tags, tags)),
        )

    def forward(self, emissions, mask, tags):
        emissions, tags = emissions.transpose(0, 1), tags.transpose(0, 1)
        m = mask.transpose(0, 1)
        seq, batch = tags.shape
        score = self.start[tags[0]] + emissions[0, torch.arange(batch), tags[0]]
        alpha = self.start + emissions[0]
        for i in range(1, seq):
            score = score + (self.trans[tags[i - 1], tags[i]] + emissions[i, torch.arange(batch), tags[i]]) * m[i]
            nxt = torch.logsumexp(alpha.unsqueeze(2) + self.trans + emissions[i].unsqueeze(1), dim=1)
            alpha = torch.where(m[i].unsqueeze(1), nxt, alpha)
        last = tags[m.long().sum(0) - 1, torch.arange(batch)]
        return torch.logsumexp(alpha + self.end, 1) - score - self.end[last]


@model(
    "Viterbi as in torchcrf: histories in a list, backtracking per row with .item(), rows of different length",
    emissions,
    where=["seq <= 33"],
    far={"seq": (1, 2, 33), "batch": (1, 3)},
    unproved=True,
    rare={"all": lambda batch=2, seq=7: (torch.randn(batch, seq, 5), torch.ones(batch, seq, dtype=torch.bool))},
)
class CrfDecode(nn.Module):
    def __init__(self, tags=5):
        super().__init__()
        self.start, self.end, self.trans = (
            nn.Parameter(torch.randn(tags)),
            nn.Parameter(torch.randn(tags)),
            nn.Parameter(torch.randn(tags, tags)),
        )

    def forward(self, emissions, mask):
        emissions, mask = emissions.transpose(0, 1), mask.transpose(0, 1)
        seq, batch = mask.shape
        score = self.start + emissions[0]
        history = []
        for i in range(1, seq):
            nxt, idx = (score.unsqueeze(2) + self.trans + emissions[i].unsqueeze(1)).max(dim=1)
            score = torch.where(mask[i].unsqueeze(1), nxt, score)
            history.append(idx)
        score = score + self.end
        ends = mask.long().sum(dim=0) - 1
        out = torch.full((batch, seq), -1, dtype=torch.long)
        for b in range(batch):
            _, best_last = score[b].max(dim=0)
            best = [best_last.item()]
            for hist in reversed(history[: ends[b]]):
                best.append(hist[b][best[-1]].item())
            best.reverse()
            out[b, : len(best)] = torch.tensor(best)
        return out


@model(
    "beam search of fixed steps over batch x beam rows: topk over beams * vocab, // and % by the vocabulary, gather of beams",
    lambda batch=2, seq=5: (torch.randn(batch, seq, 8),),
    far={"batch": (1, 3, 7), "seq": (1, 2, 33)},
)
class BeamSearch(nn.Module):
    def __init__(self, vocab=9, beam=3, steps=5, eos=1):
        super().__init__()
        self.vocab, self.beam, self.steps, self.eos = vocab, beam, steps, eos
        self.emb, self.cell, self.out = nn.Embedding(vocab, 8), nn.GRUCell(8, 8), nn.Linear(8, vocab)

    def forward(self, memory):
        b, k = memory.size(0), self.beam
        h = memory.mean(1).repeat_interleave(k, 0)
        tokens = torch.zeros(b * k, 1, dtype=torch.long)
        scores = torch.full((b, k), -1e9)
        scores[:, 0] = 0
        done = torch.zeros(b * k, dtype=torch.bool)
        only_eos = torch.full((self.vocab,), -1e9)
        only_eos[self.eos] = 0
        for _ in range(self.steps):
            h = self.cell(self.emb(tokens[:, -1]), h)
            logp = self.out(h).log_softmax(-1)
            logp = torch.where(done.unsqueeze(1), only_eos, logp)
            total = (scores.view(-1, 1) + logp).view(b, k * self.vocab)
            scores, flat = total.topk(k, dim=1)
            origin = (flat // self.vocab + torch.arange(b).unsqueeze(1) * k).view(-1)
            nxt = (flat % self.vocab).view(-1)
            tokens = torch.cat([tokens[origin], nxt.unsqueeze(1)], 1)
            h, done = h[origin], done[origin] | (nxt == self.eos)
        lengths = (tokens != self.eos).sum(1).view(b, k)
        best = (scores / lengths.float().pow(0.6)).argmax(1)
        return tokens.view(b, k, -1)[torch.arange(b), best], scores


@model(
    "policy over legal actions: illegal logits are -inf; a row with no legal action falls back to all of them",
    lambda batch=3, actions=6: (
        torch.randn(batch, 8),
        torch.randn(batch, actions, 4),
        torch.rand(batch, actions) > 0.3,
    ),
    far={"batch": (1, 33), "actions": (1, 2, 64)},
    rare={
        "none legal": lambda batch=3, actions=6: (
            torch.randn(batch, 8),
            torch.randn(batch, actions, 4),
            torch.zeros(batch, actions, dtype=torch.bool),
        ),
        "one legal": lambda batch=3, actions=6: (
            torch.randn(batch, 8),
            torch.randn(batch, actions, 4),
            (torch.arange(actions) == actions - 1).expand(batch, -1).clone(),
        ),
    },
)
class MaskedPolicy(nn.Module):
    def __init__(self):
        super().__init__()
        self.state, self.action, self.value = nn.Linear(8, 4), nn.Linear(4, 4), nn.Linear(8, 1)

    def forward(self, obs, candidates, legal):
        logits = torch.einsum("bd,bad->ba", torch.tanh(self.state(obs)), self.action(candidates))
        stuck = ~legal.any(dim=1)
        if stuck.any():
            legal = legal.clone()
            legal[stuck] = True
        logits = logits.masked_fill(~legal, float("-inf"))
        logp = F.log_softmax(logits, -1)
        p = logp.exp()
        entropy = -torch.where(legal, p * logp, torch.zeros_like(p)).sum(-1)
        return logits.argmax(-1), logp.amax(-1), entropy, self.value(obs).squeeze(-1)


def sessions(batch=2, seq=8):
    lengths = torch.randint(1, seq + 1, (batch,))
    items = torch.randint(1, 30, (batch, seq)) * (torch.arange(seq)[None] < lengths[:, None])
    return (items,)


@model(
    "SASRec: items are left-padded by a roll per row, the causal mask and the padding mask meet; scores over the whole catalogue, seen items removed",
    sessions,
    far={"seq": (1, 2, 33), "batch": (1, 3)},
    where=["seq <= 50"],
    rare={"full": lambda batch=2, seq=8: (torch.randint(1, 30, (batch, seq)),)},
)
class SessionRecommender(nn.Module):
    def __init__(self, n_items=200, max_len=50):
        super().__init__()
        self.items, self.pos = nn.Embedding(n_items, 8, padding_idx=0), nn.Embedding(max_len, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)

    def forward(self, seqs):
        b, n = seqs.shape
        lengths = (seqs != 0).sum(1)
        shift = n - lengths
        idx = torch.arange(n)[None] - shift[:, None]
        left = torch.where(idx >= 0, seqs.gather(1, idx.clamp(min=0)), 0)
        x = self.items(left) * 8**0.5 + self.pos(torch.arange(n))
        x = x * (left != 0).unsqueeze(-1)
        h = self.block(x, src_mask=~torch.tril(torch.ones(n, n, dtype=torch.bool)))
        scores = h[:, -1] @ self.items.weight.t()
        scores = scores.scatter(1, seqs, float("-inf"))
        scores[:, 0] = float("-inf")
        return scores.topk(5, dim=1)


@model(
    "SR-GNN: unique items of each session become nodes, padded to the largest node count; the adjacency counts transitions",
    lambda batch=2, seq=6: (torch.randint(1, 12, (batch, seq)),),
    where=["seq <= 33"],
    far={"seq": (1, 2, 16), "batch": (1, 3)},
    unproved=True,
    rare={"one item": lambda batch=2, seq=6: (torch.full((batch, seq), 5),)},
)
class SessionGraph(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.gate = nn.Embedding(12, 8), nn.GRUCell(16, 8)

    def forward(self, seqs):
        uniques = [torch.unique(s) for s in seqs]
        max_n = max(len(u) for u in uniques)
        items, alias, adj = [], [], []
        for s, u in zip(seqs, uniques):
            items.append(F.pad(u, (0, max_n - len(u))))
            a = torch.searchsorted(u, s)
            m = torch.zeros(max_n, max_n)
            for i in range(len(s) - 1):
                m[a[i], a[i + 1]] = 1
            alias.append(a)
            adj.append(m)
        items, alias, adj = torch.stack(items), torch.stack(alias), torch.stack(adj)
        h = self.emb(items)
        into = adj / adj.sum(1, keepdim=True).clamp(min=1)
        out = adj.mT / adj.mT.sum(1, keepdim=True).clamp(min=1)
        msg = torch.cat([into.mT @ h, out.mT @ h], -1)
        h = self.gate(msg.flatten(0, 1), h.flatten(0, 1)).view_as(h)
        return h.gather(1, alias.unsqueeze(-1).expand(-1, -1, 8))[:, -1], items


@model(
    "point cloud: k nearest with k = min(k, n), edge features centred at the point, max over neighbours",
    lambda batch=2, n=10: (torch.rand(batch, n, 3),),
    far={"n": (1, 3, 4, 5, 33), "batch": (1, 3)},
)
class EdgeConv(nn.Module):
    def __init__(self, k=4):
        super().__init__()
        self.k = k
        self.m1, self.m2 = nn.Linear(6, 8), nn.Linear(16, 8)

    def edge(self, x, mlp):
        b, n, c = x.shape
        k = min(self.k, n)
        inner = -2 * x @ x.transpose(2, 1)
        xx = (x**2).sum(2, keepdim=True)
        idx = (-xx - inner - xx.transpose(2, 1)).topk(k=k, dim=-1)[1]
        idx = (idx + torch.arange(b).view(-1, 1, 1) * n).view(-1)
        nb = x.reshape(b * n, c)[idx].view(b, n, k, c)
        center = x.unsqueeze(2).expand(-1, -1, k, -1)
        return F.leaky_relu(mlp(torch.cat([nb - center, center], -1)), 0.2).max(dim=2)[0]

    def forward(self, x):
        h = self.edge(x, self.m1)
        g = self.edge(h, self.m2)
        return torch.cat([h, g], -1).amax(1)


@model(
    "PointNet++: farthest points in a loop of n // 4 + 1, a ball query that repeats the first neighbour",
    lambda batch=2, n=12: (torch.rand(batch, n, 3),),
    where=["n <= 64"],
    far={"n": (1, 3, 4, 5, 33, 64), "batch": (1, 3)},
)
class SetAbstraction(nn.Module):
    def __init__(self, radius=0.4, nsample=4):
        super().__init__()
        self.radius, self.nsample = radius, nsample
        self.mlp = nn.Sequential(nn.Linear(3, 8), nn.ReLU())

    def forward(self, xyz):
        b, n, _ = xyz.shape
        npoint = n // 4 + 1
        centroids = torch.zeros(b, npoint, dtype=torch.long)
        distance = torch.ones(b, n) * 1e10
        farthest = torch.zeros(b, dtype=torch.long)
        rows = torch.arange(b)
        for i in range(npoint):
            centroids[:, i] = farthest
            dist = ((xyz - xyz[rows, farthest].view(b, 1, 3)) ** 2).sum(-1)
            mask = dist < distance
            distance[mask] = dist[mask]
            farthest = distance.max(-1)[1]
        new_xyz = xyz[rows[:, None], centroids]
        sq = ((new_xyz[:, :, None] - xyz[:, None]) ** 2).sum(-1)
        group = torch.arange(n).view(1, 1, n).repeat(b, npoint, 1)
        group[sq > self.radius**2] = n
        group = group.sort(dim=-1)[0][:, :, : self.nsample]
        first = group[:, :, 0:1].expand_as(group)
        group = torch.where(group == n, first, group)
        nb = xyz[rows.view(b, 1, 1), group]
        return new_xyz, self.mlp(nb - new_xyz.unsqueeze(2)).amax(2)


@model(
    "N-BEATS: residual blocks over a window, a Fourier basis of length // 2 harmonics made from the sizes of the call",
    lambda batch=2, horizon=6: (torch.randn(batch, 16), horizon),
    far={"horizon": (1, 2, 3, 7, 33), "batch": (1, 4)},
)
class NBeats(nn.Module):
    def __init__(self, back=16, harmonics=3):
        super().__init__()
        self.back, self.h = back, harmonics
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(back, 12), nn.ReLU(), nn.Linear(12, 2 * harmonics + 3)) for _ in range(2)
        )

    def forward(self, x, horizon: int):
        t = torch.arange(-self.back, horizon, dtype=torch.float32) / self.back
        k = torch.arange(1, self.h + 1).unsqueeze(1)
        seasonal = torch.cat([torch.cos(2 * math.pi * k * t), torch.sin(2 * math.pi * k * t)])
        trend = torch.stack([t**p for p in range(3)])
        forecast = x.new_zeros(x.size(0), horizon)
        level = x[:, -1:]
        residual = x
        for block in self.blocks:
            theta = block(residual)
            basis = theta[:, : 2 * self.h] @ seasonal + theta[:, 2 * self.h :] @ trend
            residual = residual - basis[:, : self.back]
            forecast = forecast + basis[:, self.back :]
        return forecast + level, residual


@model(
    "Autoformer: moving average by repeated edges, top int(factor * log(L)) delays from an FFT, rolls by the mean delay",
    lambda batch=2, seq=16: (torch.randn(batch, seq, 4),),
    where=["seq >= 3"],
    far={"seq": (3, 7, 8, 20, 21, 33, 64), "batch": (1, 3)},
)
class AutoCorrelation(nn.Module):
    def __init__(self, factor=1, kernel=5):
        super().__init__()
        self.factor, self.kernel = factor, kernel
        self.q, self.k, self.v = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        front, end = x[:, :1].repeat(1, (self.kernel - 1) // 2, 1), x[:, -1:].repeat(1, (self.kernel - 1) // 2, 1)
        trend = F.avg_pool1d(torch.cat([front, x, end], 1).permute(0, 2, 1), self.kernel, 1).permute(0, 2, 1)
        s = x - trend
        b, L, c = s.shape
        qf, kf = torch.fft.rfft(self.q(s).permute(0, 2, 1), dim=-1), torch.fft.rfft(self.k(s).permute(0, 2, 1), dim=-1)
        corr = torch.fft.irfft(qf * torch.conj(kf), n=L, dim=-1)
        values = self.v(s).permute(0, 2, 1)
        top_k = int(self.factor * math.log(L))
        mean = corr.mean(1)
        weights, delay = torch.topk(mean, top_k, dim=-1)
        weights = weights.softmax(-1)
        init = torch.arange(L).view(1, 1, -1).expand(b, c, -1)
        doubled = values.repeat(1, 1, 2)
        agg = torch.zeros_like(values)
        for i in range(top_k):
            idx = init + delay[:, i].view(-1, 1, 1)
            agg = agg + doubled.gather(-1, idx) * weights[:, i].view(-1, 1, 1)
        return agg.permute(0, 2, 1) + trend


@model(
    "Informer: the number of active queries is factor * ceil(log L), capped by L; the rest get the mean of the values",
    lambda batch=2, seq=12, keys=9: (torch.randn(batch, seq, 8), torch.randn(batch, keys, 8)),
    far={"seq": (1, 2, 3, 7, 8, 20, 21, 54, 55), "keys": (1, 2, 33)},
)
class ProbSparse(nn.Module):
    def __init__(self, factor=2):
        super().__init__()
        self.factor = factor
        self.q, self.kv = nn.Linear(8, 8), nn.Linear(8, 16)

    def forward(self, x, memory):
        q = self.q(x)
        k, v = self.kv(memory).chunk(2, -1)
        b, L, d = q.shape
        S = k.shape[1]
        u = self.factor * int(math.ceil(math.log(L + 1)))
        u = u if u < L else L
        scores = q @ k.transpose(1, 2)
        M = scores.max(-1)[0] - scores.sum(-1) / S
        top = M.topk(u, sorted=False)[1].sort(-1)[0]
        context = v.mean(1, keepdim=True).expand(b, L, d).clone()
        rows = torch.arange(b)[:, None]
        context[rows, top] = (scores[rows, top] / math.sqrt(d)).softmax(-1) @ v
        return context


@model(
    "reversible normalisation, exponential smoothing in a loop whose factor is clipped by 2 / (seq + 1)",
    series,
    where=["seq <= 100"],
    far={"seq": (1, 2, 9, 33, 100), "batch": (1, 3)},
    rare={"constant": lambda batch=2, seq=12: (torch.full((batch, seq, 3), 4.0),)},
)
class SmoothingForecast(nn.Module):
    def __init__(self, horizon=4):
        super().__init__()
        self.horizon = horizon
        self.alpha, self.beta = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(3))

    def forward(self, x):
        n = x.size(1)
        mean = x.mean(1, keepdim=True)
        std = torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5)
        x = (x - mean) / std
        alpha = torch.sigmoid(self.alpha).clamp(min=2 / (n + 1))
        beta = torch.sigmoid(self.beta)
        level, trend = x[:, 0], (x[:, 1] - x[:, 0] if n > 1 else torch.zeros_like(x[:, 0]))
        for t in range(1, n):
            prev = level
            level = alpha * x[:, t] + (1 - alpha) * (level + trend)
            trend = beta * (level - prev) + (1 - beta) * trend
        steps = torch.arange(1, self.horizon + 1).view(1, -1, 1)
        return (level.unsqueeze(1) + steps * trend.unsqueeze(1)) * std + mean


def bags(rows=3, values=10):
    cut = torch.sort(torch.randint(0, values, (rows - 1,)))[0] if rows > 1 else torch.empty(0, dtype=torch.long)
    return torch.randint(0, 40, (values,)), torch.cat([torch.zeros(1, dtype=torch.long), cut])


@model(
    "EmbeddingBag with offsets: bags may be empty, weights are counted back from the offsets",
    bags,
    far={"rows": (1, 2, 33), "values": (1, 3, 64)},
    points=({"rows": 7, "values": 2},),
)
class SparseTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.sum, self.mean = nn.EmbeddingBag(40, 6, mode="sum"), nn.EmbeddingBag(40, 6, mode="mean")
        self.fc = nn.Linear(13, 4)

    def forward(self, values, offsets):
        ends = torch.cat([offsets[1:], offsets.new_full((1,), values.numel())])
        counts = (ends - offsets).float()
        x = torch.cat([self.sum(values, offsets), self.mean(values, offsets), torch.log1p(counts).unsqueeze(1)], 1)
        return F.normalize(self.fc(x), dim=1)


@model(
    "factorisation machine with a variable number of fields: pairs by triu_indices of the fields, plus the sum-square trick",
    lambda batch=3, fields=5: (torch.randint(0, 40, (batch, fields)), torch.rand(batch, fields)),
    where=["fields >= 2"],
    far={"fields": (2, 3, 16, 33), "batch": (1, 7)},
)
class FieldInteractions(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.bias = nn.Embedding(40, 6), nn.Embedding(40, 1)
        self.attn = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 1))
        self.p = nn.Linear(6, 1)

    def forward(self, ids, values):
        x = self.emb(ids) * values.unsqueeze(-1)
        linear = (self.bias(ids).squeeze(-1) * values).sum(1)
        fm = 0.5 * (x.sum(1) ** 2 - (x**2).sum(1)).sum(1)
        n = ids.size(1)
        row, col = torch.triu_indices(n, n, offset=1)
        inner = x[:, row] * x[:, col]
        a = self.attn(inner).softmax(1)
        return torch.sigmoid(linear + fm + self.p((a * inner).sum(1)).squeeze(1)), inner.sum(-1)


@model(
    "generalised advantages: reversed loop over steps with done flags and a bootstrap value, standardised over all with an unbiased std",
    lambda steps=6, envs=2: (
        torch.randn(steps, envs),
        torch.randn(steps, envs),
        torch.rand(steps, envs) < 0.2,
        torch.randn(envs),
        0.99,
        0.95,
    ),
    where=["steps <= 64"],
    far={"steps": (1, 2, 33, 64), "envs": (2, 7)},
    points=({"steps": 2, "envs": 1},),
)
class Advantages(nn.Module):
    def forward(self, rewards, values, dones, last_value, gamma: float, lam: float):
        steps = rewards.shape[0]
        adv = torch.zeros_like(rewards)
        lastgaelam = torch.zeros_like(last_value)
        for t in reversed(range(steps)):
            if t == steps - 1:
                nextvalues = last_value
            else:
                nextvalues = values[t + 1]
            nonterminal = 1.0 - dones[t].float()
            delta = rewards[t] + gamma * nextvalues * nonterminal - values[t]
            adv[t] = lastgaelam = delta + gamma * lam * nonterminal * lastgaelam
        returns = adv + values
        if adv.numel() > 1:
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        return adv, returns


def batched_graph(nodes=9, graphs=3):
    ids = torch.sort(torch.cat([torch.arange(graphs)[:nodes], torch.randint(0, graphs, (max(nodes - graphs, 0),))]))[0]
    return torch.randn(nodes, 8), ids


@model(
    "graph pooling: the number of graphs is batch.max() + 1; the best ceil(ratio * n) nodes of each graph are kept",
    batched_graph,
    where=["nodes >= graphs"],
    far={"nodes": (3, 4, 33), "graphs": (1, 2, 9)},
    unproved=True,
)
class TopKPooling(nn.Module):
    def __init__(self, ratio=0.5):
        super().__init__()
        self.ratio = ratio
        self.score, self.fc = nn.Linear(8, 1), nn.Linear(16, 3)

    def forward(self, x, batch):
        num_graphs = int(batch.max()) + 1
        s = torch.tanh(self.score(x)).squeeze(-1)
        num_nodes = torch.zeros(num_graphs, dtype=torch.long).scatter_add(0, batch, torch.ones_like(batch))
        k = (self.ratio * num_nodes.float()).ceil().long()
        order = torch.argsort(s.detach(), descending=True)
        order = order[torch.argsort(batch[order], stable=True)]
        start = torch.cumsum(num_nodes, 0) - num_nodes
        rank = torch.arange(x.size(0)) - start[batch[order]]
        keep = order[rank < k[batch[order]]]
        x, batch = x[keep] * s[keep].unsqueeze(1), batch[keep]
        index = batch.unsqueeze(1).expand_as(x)
        total = torch.zeros(num_graphs, 8).scatter_add(0, index, x)
        top = torch.full((num_graphs, 8), float("-inf")).scatter_reduce(0, index, x, "amax")
        return self.fc(torch.cat([total / k.unsqueeze(1).clamp(min=1), top], 1)), keep


@model(
    "PatchTST: the end is replicated by a stride, patches by unfold, the count from the length; forward fill of gaps by cummax of indices",
    lambda batch=2, seq=20: (torch.randn(batch, seq, 3).masked_fill(torch.rand(batch, seq, 3) < 0.2, float("nan")),),
    where=["seq >= 8"],
    far={"seq": (8, 11, 12, 13, 16, 33, 64), "batch": (1, 3)},
    rare={"all missing": lambda batch=2, seq=20: (torch.full((batch, seq, 3), float("nan")),)},
)
class PatchForecaster(nn.Module):
    def __init__(self, patch=8, stride=4, dim=8):
        super().__init__()
        self.patch, self.stride = patch, stride
        self.embed, self.pos = nn.Linear(patch, dim), nn.Parameter(torch.randn(40, dim))
        self.enc, self.head = nn.TransformerEncoderLayer(dim, 2, 16, batch_first=True, dropout=0.0), nn.Linear(dim, 4)

    def forward(self, x):
        b, n, c = x.shape
        ok = ~torch.isnan(x)
        idx = torch.where(ok, torch.arange(n).view(1, -1, 1), -1).cummax(1).values
        filled = torch.nan_to_num(x).gather(1, idx.clamp(min=0))
        x = torch.where(idx >= 0, filled, torch.zeros_like(filled))
        z = F.pad(x.transpose(1, 2), (0, self.stride), mode="replicate")
        z = z.unfold(-1, self.patch, self.stride)
        count = (n - self.patch) // self.stride + 2
        z = self.embed(z).reshape(b * c, count, -1) + self.pos[:count]
        z = self.enc(z)
        return self.head(z[:, -1] + z.mean(1)).view(b, c, 4).transpose(1, 2)


def world(states=5, actions=2):
    return torch.rand(states, actions, states).softmax(-1), torch.rand(states, actions)


@model(
    "value iteration stops when the largest change is below a tolerance, at most 60 sweeps; then the policy is read off",
    world,
    far={"states": (1, 2, 16), "actions": (1, 7)},
    unproved=True,
    rare={"no reward": lambda states=5, actions=2: (world(states, actions)[0], torch.zeros(states, actions))},
)
class ValueIteration(nn.Module):
    def __init__(self, gamma=0.8, tol=1e-3, sweeps=60):
        super().__init__()
        self.gamma, self.tol, self.sweeps = gamma, tol, sweeps

    def forward(self, transition, reward):
        v = torch.zeros(transition.size(0))
        for i in range(self.sweeps):
            q = reward + self.gamma * torch.einsum("sat,t->sa", transition, v)
            new_v = q.max(dim=1).values
            delta = (new_v - v).abs().max().item()
            v = new_v
            if delta < self.tol:
                break
        return v, q, torch.tensor(i + 1)
