"""Speech, audio and text models as people write them for their jobs."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

model = Registry("speech and text")


def frames(batch=2, seq=9):
    return torch.randn(batch, seq, 8), torch.randint(1, seq + 1, (batch,))


def full(batch=2, seq=9):
    return torch.randn(batch, seq, 8), torch.full((batch,), seq)


def ones(batch=2, seq=9):
    return torch.randn(batch, seq, 8), torch.ones(batch, dtype=torch.long)


def tokens(batch=2, seq=9):
    return (torch.randint(1, 50, (batch, seq)),)


def features(batch=2, seq=9):
    return (torch.randn(batch, seq, 8),)


def make_pad_mask(lengths, max_len=0):
    batch_size = lengths.size(0)
    max_len = max_len if max_len > 0 else lengths.max().item()
    seq_range = torch.arange(0, max_len, dtype=torch.int64, device=lengths.device)
    seq_range_expand = seq_range.unsqueeze(0).expand(batch_size, max_len)
    return seq_range_expand >= lengths.unsqueeze(-1)


@model(
    "the output is cut to the longest utterance of the batch, a size that only the values know",
    frames,
    far={"seq": (1, 2, 33, 64), "batch": (1, 7)},
    rare={"full": full, "ones": ones},
    unproved=True,
)
class EncoderTrimmed(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 16)
        self.attn = nn.MultiheadAttention(16, 4, batch_first=True)
        self.norm = nn.LayerNorm(16)

    def forward(self, x, lengths):
        max_len = int(lengths.max())
        x = self.proj(x[:, :max_len])
        mask = make_pad_mask(lengths)
        y, _ = self.attn(x, x, x, key_padding_mask=mask)
        return self.norm(x + y), ~mask


@model(
    "packed bidirectional LSTM; padding comes back only to the longest of the batch, and the states are unsorted",
    frames,
    far={"seq": (1, 2, 16, 40), "batch": (1, 5)},
    rare={"full": full, "ones": ones},
)
class PackedTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 6, batch_first=True, bidirectional=True)
        self.out = nn.Linear(12, 5)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        packed, (h, _) = self.rnn(packed)
        y, out_lengths = pad_packed_sequence(packed, batch_first=True)
        logits = self.out(F.dropout(y, 0.3, self.training))
        sentence = torch.cat([h[-2], h[-1]], dim=-1)
        return logits, sentence, out_lengths


@model(
    "CTC greedy: collapse repeats, drop blanks, pad the ragged rows; a row may be empty",
    features,
    far={"seq": (1, 2, 33), "batch": (1, 4)},
    rare={"same": lambda batch=2, seq=9: (torch.zeros(batch, seq, 8),)},
    unproved=True,
)
class CtcGreedy(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 6)
        self.blank = 0

    def forward(self, x):
        best = self.head(x).log_softmax(-1).argmax(-1)
        rows = []
        for row in best:
            row = torch.unique_consecutive(row)
            rows.append(row[row != self.blank])
        lengths = torch.tensor([len(r) for r in rows])
        return pad_sequence(rows, batch_first=True, padding_value=-1), lengths


def durations(batch=2, phones=6):
    return torch.randn(batch, phones, 8), torch.randint(0, 4, (batch, phones)), 1.0


def slow(batch=2, phones=6):
    return torch.randn(batch, phones, 8), torch.randint(1, 4, (batch, phones)), 1.7


@model(
    "FastSpeech length regulator: rows are repeated by rounded durations and padded; all-zero rows become one frame each",
    durations,
    far={"phones": (1, 2, 17), "batch": (1, 3)},
    rare={
        "slow": slow,
        "zeros": lambda batch=2, phones=6: (
            torch.randn(batch, phones, 8),
            torch.zeros(batch, phones, dtype=torch.long),
            1.0,
        ),
    },
    unproved=True,
)
class LengthRegulator(nn.Module):
    def __init__(self):
        super().__init__()
        self.post = nn.Conv1d(8, 4, 3, padding=1)

    def forward(self, xs, ds, alpha: float = 1.0):
        if alpha != 1.0:
            ds = torch.round(ds.float() * alpha).long()
        if ds.sum() == 0:
            ds = ds.clone()
            ds[ds.sum(dim=1).eq(0)] = 1
        repeated = [torch.repeat_interleave(x, d, dim=0) for x, d in zip(xs, ds)]
        out = pad_sequence(repeated, batch_first=True, padding_value=0.0)
        return self.post(out.transpose(1, 2)).transpose(1, 2)


@model(
    "conv subsampling by 4: lengths go through float ceil, the mask is made of the new lengths",
    frames,
    where=["seq >= 7"],
    far={"seq": (7, 8, 10, 11, 12, 13, 64), "batch": (1, 3)},
)
class ConvSubsampling(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 4, 3, 2, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, 2, padding=1), nn.ReLU()
        )
        self.out = nn.Linear(8, 16)

    @staticmethod
    def calc_length(lengths, repeat_num=2, kernel=3, stride=2, padding=2):
        add = padding - kernel
        for _ in range(repeat_num):
            lengths = torch.div(lengths.to(torch.float) + add, stride) + 1.0
            lengths = torch.floor(lengths)
        return lengths.to(torch.int)

    def forward(self, x, lengths):
        lengths = self.calc_length(lengths)
        x = self.conv(x.unsqueeze(1))
        b, c, t, f = x.size()
        x = self.out(x.transpose(1, 2).reshape(b, t, -1))
        mask = torch.arange(t, device=x.device)[None, :] < lengths[:, None]
        return x * mask.unsqueeze(-1), lengths


def with_memory(batch=2, seq=5, mem=3):
    return torch.randn(batch, seq, 8), torch.randn(batch, mem, 8)


@model(
    "Transformer-XL rel_shift: pad a column, view, drop a row; the lower triangle uses seq and memory",
    with_memory,
    far={"seq": (1, 2, 16), "mem": (1, 9)},
    points=({"seq": 1, "mem": 1}, {"batch": 1, "seq": 12, "mem": 2}),
)
class RelShift(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv, self.r = nn.Linear(8, 8), nn.Linear(8, 16), nn.Linear(8, 8)
        self.u = nn.Parameter(torch.randn(2, 4))
        self.v = nn.Parameter(torch.randn(2, 4))
        self.register_buffer("inv_freq", 1 / (10000 ** (torch.arange(0.0, 8.0, 2.0) / 8)))

    def _rel_shift(self, x):
        b, h, q, k = x.shape
        zero_pad = x.new_zeros(b, h, q, 1)
        x = torch.cat([zero_pad, x], dim=-1).view(b, h, k + 1, q)
        return x[:, :, 1:].view(b, h, q, k)

    def forward(self, x, mem):
        b, n, _ = x.shape
        cat = torch.cat([mem, x], 1)
        klen = cat.size(1)
        pos = torch.arange(klen - 1, -1, -1.0)
        s = torch.outer(pos, self.inv_freq)
        r = self.r(torch.cat([s.sin(), s.cos()], -1)).view(klen, 2, 4)
        q = self.q(x).view(b, n, 2, 4)
        k, v = self.kv(cat).view(b, klen, 2, 8).chunk(2, -1)
        ac = torch.einsum("bind,bjnd->bnij", q + self.u, k)
        bd = self._rel_shift(torch.einsum("bind,jnd->bnij", q + self.v, r))
        mask = torch.triu(torch.ones(n, klen, dtype=torch.bool), diagonal=1 + klen - n)
        p = ((ac + bd) / 2).masked_fill(mask, float("-inf")).softmax(-1)
        return torch.einsum("bnij,bjnd->bind", p, v).reshape(b, n, 8)


@model(
    "ESPnet's positional table is rebuilt in forward when the input is longer than it",
    features,
    far={"seq": (1, 49, 50, 51, 120)},
)
class ExtendingPositions(nn.Module):
    def __init__(self, d_model=8, max_len=50):
        super().__init__()
        self.d_model, self.xscale, self.pe = d_model, math.sqrt(d_model), None
        self.extend_pe(torch.zeros(1, max_len))
        self.ff = nn.Linear(8, 8)

    def extend_pe(self, x):
        if self.pe is not None and self.pe.size(1) >= x.size(1):
            if self.pe.dtype != x.dtype or self.pe.device != x.device:
                self.pe = self.pe.to(dtype=x.dtype, device=x.device)
            return
        pe = torch.zeros(x.size(1), self.d_model)
        position = torch.arange(0, x.size(1), dtype=torch.float32).unsqueeze(1)
        div = torch.exp(torch.arange(0, self.d_model, 2, dtype=torch.float32) * -(math.log(10000.0) / self.d_model))
        pe[:, 0::2] = torch.sin(position * div)
        pe[:, 1::2] = torch.cos(position * div)
        self.pe = pe.unsqueeze(0)

    def forward(self, x):
        self.extend_pe(x)
        return self.ff(x * self.xscale + self.pe[:, : x.size(1)])


def waves(batch=2, samples=400):
    return torch.randn(batch, samples), (
        torch.arange(samples)[None] < torch.randint(60, samples + 1, (batch, 1))
    ).long()


@model(
    "wav2vec2: the frame mask is made by a 1 at the last frame, flip, cumsum, flip",
    waves,
    where=["samples >= 60"],
    far={"samples": (60, 61, 64, 99, 640), "batch": (1, 3)},
)
class WaveEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernels, self.strides = (10, 3, 2), (5, 2, 2)
        dims = (1, 8, 8, 8)
        self.convs = nn.ModuleList(
            nn.Conv1d(dims[i], dims[i + 1], k, s) for i, (k, s) in enumerate(zip(self.kernels, self.strides))
        )
        self.norm = nn.LayerNorm(8)

    def _out_lengths(self, lengths):
        for k, s in zip(self.kernels, self.strides):
            lengths = torch.div(lengths - k, s, rounding_mode="floor") + 1
        return lengths

    def forward(self, wave, attention_mask):
        h = wave.unsqueeze(1)
        for conv in self.convs:
            h = F.gelu(conv(h))
        h = self.norm(h.transpose(1, 2))
        lengths = self._out_lengths(attention_mask.cumsum(-1)[:, -1]).long()
        mask = torch.zeros(h.shape[:2], dtype=attention_mask.dtype)
        mask[(torch.arange(mask.shape[0]), lengths - 1)] = 1
        mask = mask.flip([-1]).cumsum(-1).flip([-1]).bool()
        h = h.masked_fill(~mask.unsqueeze(-1), 0)
        return h.sum(1) / mask.sum(-1, keepdim=True)


@model(
    "WeNet's chunk mask is filled row by row; chunk size and left chunks are numbers of the caller",
    lambda batch=2, seq=11: (torch.randn(batch, seq, 8), 4, 2),
    far={"seq": (1, 3, 4, 5, 8, 13, 33)},
)
class StreamingAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)

    def subsequent_chunk_mask(self, size, chunk_size, num_left_chunks=-1):
        ret = torch.zeros(size, size, dtype=torch.bool)
        for i in range(size):
            if num_left_chunks < 0:
                start = 0
            else:
                start = max((i // chunk_size - num_left_chunks) * chunk_size, 0)
            ending = min((i // chunk_size + 1) * chunk_size, size)
            ret[i, start:ending] = True
        return ret

    def forward(self, x, chunk: int, left: int):
        mask = self.subsequent_chunk_mask(x.size(1), chunk, left)
        return self.attn(x, x, x, attn_mask=~mask)[0]


@model(
    "local attention: pad to a multiple of the window only if needed, look one window back and ahead",
    features,
    far={"seq": (1, 3, 4, 5, 8, 15, 16, 17, 64)},
)
class LocalAttention(nn.Module):
    def __init__(self, window=4):
        super().__init__()
        self.window = window
        self.qkv = nn.Linear(8, 24)

    def look_around(self, x, pad_value):
        t = x.shape[1]
        dims = (len(x.shape) - 2) * (0, 0)
        padded = F.pad(x, (*dims, 1, 1), value=pad_value)
        return torch.cat([padded[:, i : i + t] for i in range(3)], dim=2)

    def forward(self, x):
        b, orig, d = x.shape
        remainder = orig % self.window
        if remainder != 0:
            x = F.pad(x, (0, 0, 0, self.window - remainder))
        n = x.shape[1]
        windows = n // self.window
        q, k, v = (t.reshape(b, windows, self.window, d) for t in self.qkv(x).chunk(3, -1))
        ticker = torch.arange(n).view(1, windows, self.window)
        ticker = ticker.masked_fill(ticker >= orig, -1)
        k, v = self.look_around(k, 0.0), self.look_around(v, 0.0)
        bk = self.look_around(ticker.unsqueeze(-1), -1).squeeze(-1)
        dots = torch.einsum("bwid,bwjd->bwij", q, k) * d**-0.5
        dots = dots.masked_fill((bk == -1)[:, :, None, :], torch.finfo(dots.dtype).min)
        out = dots.softmax(-1) @ v
        return out.reshape(b, n, d)[:, :orig]


def clips(batch=2, samples=300):
    return torch.randn(batch, samples), torch.randint(40, samples + 1, (batch,))


@model(
    "NeMo's log-mel: centre padding by reflection, statistics over each row's valid frames, pad to a multiple of 8",
    clips,
    where=["samples >= 40"],
    far={"samples": (40, 63, 64, 159, 160, 161, 1000), "batch": (1, 3)},
)
class LogMel(nn.Module):
    def __init__(self, n_fft=64, hop=20, mels=10, pad_to=8):
        super().__init__()
        self.n_fft, self.hop, self.pad_to = n_fft, hop, pad_to
        self.register_buffer("window", torch.hann_window(n_fft))
        self.register_buffer("fb", torch.rand(mels, n_fft // 2 + 1))

    def forward(self, wave, lengths):
        seq_len = torch.floor_divide(lengths, self.hop) + 1
        wave = torch.cat((wave[:, :1], wave[:, 1:] - 0.97 * wave[:, :-1]), dim=1)
        s = torch.stft(wave, self.n_fft, self.hop, window=self.window, center=True, return_complex=True)
        x = torch.log(self.fb @ s.abs().pow(2) + 2**-24)
        max_len = x.shape[-1]
        valid = torch.arange(max_len)[None] < seq_len[:, None]
        mean = torch.where(valid[:, None], x, 0.0).sum(-1) / seq_len[:, None]
        var = torch.where(valid[:, None], x - mean[..., None], 0.0).pow(2).sum(-1) / (seq_len[:, None] - 1.0)
        x = (x - mean[..., None]) / (var.sqrt()[..., None] + 1e-5)
        x = x.masked_fill(~valid[:, None], 0.0)
        pad_amt = x.size(-1) % self.pad_to
        if pad_amt != 0:
            x = F.pad(x, (0, self.pad_to - pad_amt))
        return x, seq_len


@model(
    "Tacotron decoder: as many steps as memory // r, cumulative location attention, output fed back",
    lambda batch=2, phones=6: (torch.randn(batch, phones, 8),),
    where=["2 <= phones <= 40"],
    far={"phones": (2, 3, 7, 16, 39, 40), "batch": (1, 3)},
)
class TacotronDecoder(nn.Module):
    def __init__(self, r=2, mels=4):
        super().__init__()
        self.r, self.mels = r, mels
        self.prenet = nn.Sequential(nn.Linear(mels, 6), nn.ReLU())
        self.cell = nn.GRUCell(6 + 8, 8)
        self.loc = nn.Conv1d(1, 8, 3, padding=1)
        self.query, self.memory, self.score = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 1)
        self.proj = nn.Linear(16, mels * r)

    def forward(self, memory):
        b, t, _ = memory.size()
        keys = self.memory(memory)
        h = memory.new_zeros(b, 8)
        context = memory.new_zeros(b, 8)
        cum = memory.new_zeros(b, t)
        frame = memory.new_zeros(b, self.mels)
        outputs, alignments = [], []
        while len(outputs) < t // self.r:
            h = self.cell(torch.cat([self.prenet(frame), context], -1), h)
            loc = self.loc(cum.unsqueeze(1)).transpose(1, 2)
            e = self.score(torch.tanh(self.query(h).unsqueeze(1) + keys + loc)).squeeze(-1)
            a = e.softmax(-1)
            cum = cum + a
            context = torch.bmm(a.unsqueeze(1), memory).squeeze(1)
            out = self.proj(torch.cat([h, context], -1))
            frame = out[:, -self.mels :]
            outputs.append(out)
            alignments.append(a)
        mel = torch.stack(outputs, 1).view(b, -1, self.mels)
        return mel, torch.stack(alignments, 1)


@model(
    "T5 buckets: the log branch starts at distance 8, saturates at 32",
    lambda batch=2, query=5, key=7: (torch.randn(batch, query, 8), torch.randn(batch, key, 8)),
    far={"query": (1, 8, 9, 31, 33, 70), "key": (1, 8, 15, 16, 17, 80)},
)
class T5Bias(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Embedding(16, 2)
        self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def bucket(self, relative, num_buckets=16, max_distance=32):
        num_buckets //= 2
        ret = (relative > 0).to(torch.long) * num_buckets
        n = torch.abs(relative)
        max_exact = num_buckets // 2
        is_small = n < max_exact
        large = max_exact + (
            torch.log(n.float() / max_exact) / math.log(max_distance / max_exact) * (num_buckets - max_exact)
        ).to(torch.long)
        large = torch.min(large, torch.full_like(large, num_buckets - 1))
        return ret + torch.where(is_small, n, large)

    def forward(self, x, memory):
        rel = torch.arange(memory.shape[1])[None, :] - torch.arange(x.shape[1])[:, None]
        bias = self.bias(self.bucket(rel)).permute(2, 0, 1)
        split = lambda t: t.unflatten(-1, (2, 4)).transpose(1, 2)
        q, k, v = split(self.q(x)), split(self.k(memory)), split(self.v(memory))
        p = (q @ k.mT + bias).softmax(-1)
        return (p @ v).transpose(1, 2).flatten(2)


@model(
    "SpeechBrain: lengths are fractions, round(l * T) frames are counted; a fraction may round to none",
    lambda batch=2, seq=9: (torch.randn(batch, seq, 8), torch.rand(batch) * 0.5 + 0.5),
    far={"seq": (1, 2, 3, 5, 50), "batch": (1, 4)},
    rare={"halves": lambda batch=2, seq=9: (torch.randn(batch, seq, 8), torch.full((batch,), 0.5))},
)
class AttentiveStatistics(nn.Module):
    def __init__(self):
        super().__init__()
        self.tdnn, self.conv = nn.Conv1d(24, 6, 1), nn.Conv1d(6, 8, 1)

    def forward(self, x, lengths):
        x = x.transpose(1, 2)
        t = x.shape[-1]
        mask = (torch.arange(t)[None] < torch.round(lengths * t)[:, None]).float().unsqueeze(1)
        total = mask.sum(2, keepdim=True).clamp(min=1)
        mean = (mask / total * x).sum(2)
        std = torch.sqrt((mask / total * (x - mean.unsqueeze(2)).pow(2)).sum(2).clamp(1e-12))
        attn = torch.cat([x, mean.unsqueeze(2).repeat(1, 1, t), std.unsqueeze(2).repeat(1, 1, t)], 1)
        attn = self.conv(torch.tanh(self.tdnn(attn))).masked_fill(mask == 0, -1e4)
        attn = attn.softmax(2)
        mean = (attn * x).sum(2)
        std = torch.sqrt((attn * (x - mean.unsqueeze(2)).pow(2)).sum(2).clamp(1e-12))
        return torch.cat([mean, std], 1)


@model(
    "text CNN: sentences shorter than the widest kernel are padded up to it",
    tokens,
    far={"seq": (1, 2, 4, 5, 6, 33), "batch": (1, 3)},
)
class TextCnn(nn.Module):
    def __init__(self, kernels=(2, 3, 5)):
        super().__init__()
        self.emb = nn.Embedding(50, 8, padding_idx=0)
        self.kernels = kernels
        self.convs = nn.ModuleList(nn.Conv1d(8, 4, k) for k in kernels)
        self.fc = nn.Linear(12, 3)

    def forward(self, ids):
        if ids.size(1) < max(self.kernels):
            pad = ids.new_zeros(ids.size(0), max(self.kernels) - ids.size(1))
            ids = torch.cat([ids, pad], dim=1)
        x = self.emb(ids).transpose(1, 2)
        pooled = [F.max_pool1d(F.relu(c(x)), c(x).shape[2]).squeeze(2) for c in self.convs]
        return self.fc(torch.cat(pooled, dim=1))


@model(
    "pyramidal listener: an odd frame is dropped at each level, lengths are halved with it",
    frames,
    where=["seq >= 4"],
    far={"seq": (4, 5, 6, 7, 11, 32, 33), "batch": (1, 3)},
)
class PyramidalListener(nn.Module):
    def __init__(self, levels=2):
        super().__init__()
        self.rnns = nn.ModuleList(nn.GRU(16, 4, batch_first=True, bidirectional=True) for _ in range(levels))

    def forward(self, x, lengths):
        for rnn in self.rnns:
            b, t, d = x.shape
            if t % 2 != 0:
                x = x[:, :-1, :]
            x = x.contiguous().view(b, t // 2, d * 2)
            lengths = torch.div(lengths, 2, rounding_mode="trunc").clamp(min=1)
            x, _ = rnn(x)
        mask = torch.arange(x.size(1)).unsqueeze(0) < lengths.unsqueeze(1)
        return (x * mask.unsqueeze(-1)).sum(1) / lengths.unsqueeze(1), lengths


@model(
    "Glow-TTS monotonic alignment: dynamic programme over frames, then backtracking with the index of the row",
    lambda batch=2, text=4, mel=9: (torch.randn(batch, text, mel),),
    where=["text <= mel", "mel <= 40"],
    far={"mel": (4, 5, 16, 40), "text": (1, 2, 9), "batch": (1, 3)},
)
class MonotonicSearch(nn.Module):
    def forward(self, value):
        b, t_x, t_y = value.shape
        direction = torch.zeros(b, t_x, t_y, dtype=torch.long)
        v = torch.full((b, t_x), -1e9)
        v[:, 0] = 0
        x_range = torch.arange(t_x).view(1, -1)
        for j in range(t_y):
            v0 = F.pad(v, (1, 0), value=-1e9)[:, :-1] if j > 0 else torch.full_like(v, -1e9)
            v1 = v
            max_mask = v1 >= v0
            direction[:, :, j] = max_mask.long()
            v = torch.where(max_mask, v1, v0) + value[:, :, j]
            v = torch.where(x_range <= j, v, torch.full_like(v, -1e9))
        path = torch.zeros_like(value)
        index = torch.full((b,), t_x - 1, dtype=torch.long)
        rows = torch.arange(b)
        for j in reversed(range(t_y)):
            path[rows, index, j] = 1
            index = (index + direction[rows, index, j] - 1).clamp(min=0)
        return path, path.sum(-1)


@model(
    "position table of 32 rows is stretched linearly only when the text is longer",
    features,
    far={"seq": (1, 31, 32, 33, 64, 100)},
)
class StretchedPositions(nn.Module):
    def __init__(self, n=32):
        super().__init__()
        self.pos = nn.Parameter(torch.randn(1, n, 8))
        self.mix = nn.Conv1d(8, 8, 3, padding=1)

    def forward(self, x):
        n = x.size(1)
        if n <= self.pos.size(1):
            pos = self.pos[:, :n]
        else:
            pos = F.interpolate(self.pos.transpose(1, 2), size=n, mode="linear", align_corners=False).transpose(1, 2)
        return self.mix((x + pos).transpose(1, 2)).transpose(1, 2)


@model(
    "blockwise encoder: hop and block are not divisors of the length, the last block is what is left",
    features,
    where=["seq <= 64"],
    far={"seq": (1, 3, 4, 5, 8, 9, 10, 33, 64)},
)
class BlockwiseEncoder(nn.Module):
    def __init__(self, block=6, hop=4, look_ahead=2):
        super().__init__()
        self.block, self.hop, self.look_ahead = block, hop, look_ahead
        self.enc = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x):
        total = x.size(1)
        block_num = math.ceil(max(total - self.look_ahead, 1) / self.hop)
        context = x.new_zeros(x.size(0), 1, 8)
        outs, cur = [], 0
        for i in range(block_num):
            chunk = x[:, cur : cur + self.block]
            y = self.enc(torch.cat([context, chunk], 1))
            context = y[:, :1]
            last = i == block_num - 1
            outs.append(y[:, 1:] if last else y[:, 1 : 1 + self.hop])
            cur += self.hop
        return torch.cat(outs, 1)


def words(batch=2, seq=9):
    ids = torch.randint(1, 50, (batch, seq))
    return ids, (torch.randint(0, 2, (batch, seq)).cumsum(1) - 0).clamp(max=seq - 1)


@model(
    "subwords are averaged into words; the number of words is the largest id of the batch plus one",
    words,
    far={"seq": (1, 2, 16, 33), "batch": (1, 3)},
    rare={
        "one word": lambda batch=2, seq=9: (
            torch.randint(1, 50, (batch, seq)),
            torch.zeros(batch, seq, dtype=torch.long),
        )
    },
    unproved=True,
)
class WordPooling(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 8)
        self.tag = nn.Linear(8, 4)

    def forward(self, ids, word_ids):
        x = self.emb(ids)
        n_words = int(word_ids.max()) + 1
        out = x.new_zeros(x.size(0), n_words, x.size(2))
        out.scatter_add_(1, word_ids.unsqueeze(-1).expand_as(x), x)
        count = x.new_zeros(x.size(0), n_words).scatter_add_(1, word_ids, torch.ones_like(word_ids, dtype=x.dtype))
        return self.tag(out / count.clamp(min=1).unsqueeze(-1))


@model(
    "continuous integrate-and-fire: the weight wraps at 1, fired frames are picked by a mask per row",
    features,
    where=["seq <= 48"],
    far={"seq": (1, 2, 16, 48), "batch": (1, 3)},
    unproved=True,
)
class IntegrateAndFire(nn.Module):
    def __init__(self, threshold=1.0):
        super().__init__()
        self.alpha = nn.Linear(8, 1)
        self.threshold = threshold

    def forward(self, hidden):
        b, t, d = hidden.shape
        alphas = torch.sigmoid(self.alpha(hidden)).squeeze(-1)
        integrate, frame = hidden.new_zeros(b), hidden.new_zeros(b, d)
        fires, acoustic = [], []
        for i in range(t):
            alpha = alphas[:, i]
            completion = self.threshold - integrate
            integrate = integrate + alpha
            fires.append(integrate)
            fire = integrate >= self.threshold
            integrate = torch.where(fire, integrate - self.threshold, integrate)
            cur = torch.where(fire, completion, alpha)
            frame = frame + cur[:, None] * hidden[:, i]
            acoustic.append(frame)
            frame = torch.where(fire[:, None], (alpha - cur)[:, None] * hidden[:, i], frame)
        fires, acoustic = torch.stack(fires, 1), torch.stack(acoustic, 1)
        n_tokens = torch.round(alphas.sum(-1)).int()
        max_label = max(int(n_tokens.max()), 1)
        rows = []
        for j in range(b):
            picked = torch.index_select(acoustic[j], 0, torch.nonzero(fires[j] >= self.threshold).squeeze(1))[
                :max_label
            ]
            rows.append(torch.cat([picked, hidden.new_zeros(max_label - picked.size(0), d)], 0))
        return torch.stack(rows, 0), n_tokens


@model(
    "silence is trimmed from the first loud frame to the last; an all-silent clip is returned as it is",
    lambda samples=200: (torch.randn(samples) * torch.linspace(0, 1, samples),),
    where=["samples >= 20"],
    far={"samples": (20, 29, 30, 31, 64, 400)},
    rare={"silence": lambda samples=200: (torch.zeros(samples),)},
    unproved=True,
)
class TrimSilence(nn.Module):
    def __init__(self, frame=20, hop=10, top_db=20.0):
        super().__init__()
        self.frame, self.hop, self.top_db = frame, hop, top_db

    def forward(self, wave):
        frames = wave.unfold(0, self.frame, self.hop)
        power = frames.pow(2).mean(-1)
        db = 10 * torch.log10(power.clamp(min=1e-10) / power.max().clamp(min=1e-10))
        loud = torch.nonzero(power.gt(1e-8) & (db > -self.top_db)).flatten()
        if loud.numel() == 0:
            return wave
        start = int(loud[0]) * self.hop
        end = min(wave.shape[0], int(loud[-1] + 1) * self.hop)
        return wave[start:end]


@model(
    "demucs-style separation in overlapping segments with triangular weights; the last segment is short",
    lambda batch=1, samples=90: (torch.randn(batch, 2, samples),),
    where=["samples <= 400"],
    far={"samples": (1, 30, 31, 32, 33, 64, 200, 400)},
)
class OverlapSeparator(nn.Module):
    def __init__(self, segment=32, overlap=0.25):
        super().__init__()
        self.segment, self.stride = segment, int((1 - overlap) * segment)
        self.net = nn.Conv1d(2, 4, 5, padding=2)

    def forward(self, mix):
        batch, channels, length = mix.shape
        out = torch.zeros(batch, 2, channels, length)
        sum_weight = torch.zeros(length)
        weight = torch.cat(
            [torch.arange(1, self.segment // 2 + 1), torch.arange(self.segment - self.segment // 2, 0, -1)]
        )
        weight = weight / weight.max()
        for offset in range(0, length, self.stride):
            chunk = mix[..., offset : offset + self.segment]
            chunk_out = self.net(chunk).view(batch, 2, channels, -1)
            n = chunk_out.shape[-1]
            out[..., offset : offset + self.segment] += weight[:n] * chunk_out
            sum_weight[offset : offset + self.segment] += weight[:n]
        return out / sum_weight


@model(
    "rows are sorted by length, means are taken row by row over tolist() lengths, then unsorted",
    frames,
    far={"seq": (1, 2, 16, 33), "batch": (1, 3, 5)},
    rare={"full": full, "ones": ones},
    unproved=True,
)
class SortedMeans(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 8, batch_first=True)
        self.fc = nn.Linear(24, 2)

    def forward(self, x, lengths):
        lengths, order = torch.sort(lengths, descending=True)
        y, _ = self.rnn(x[order])
        mean = torch.stack([y[i, :n].mean(0) for i, n in enumerate(lengths.tolist())])
        top = torch.stack([y[i, :n].max(0).values for i, n in enumerate(lengths.tolist())])
        last = y[torch.arange(y.size(0)), lengths - 1]
        inverse = torch.argsort(order)
        return self.fc(torch.cat([mean, top, last], -1))[inverse]


@model(
    "sentence embedding of the text between two separator tokens found by value",
    lambda batch=2, seq=9: (torch.randint(3, 50, (batch, seq)),),
    far={"seq": (1, 2, 3, 33), "batch": (1, 3)},
    rare={
        "separated": lambda batch=2, seq=9: (
            torch.randint(3, 50, (batch, seq)).index_fill(1, torch.tensor([seq // 2]), 2),
        )
    },
)
class SegmentPooling(nn.Module):
    def __init__(self, sep=2):
        super().__init__()
        self.sep = sep
        self.emb, self.segment = nn.Embedding(50, 8), nn.Embedding(2, 8)

    def forward(self, ids):
        is_sep = ids == self.sep
        has_sep = is_sep.any(dim=1)
        first = torch.where(has_sep, is_sep.int().argmax(dim=1), torch.full_like(ids[:, 0], ids.size(1)))
        types = (torch.arange(ids.size(1))[None] > first[:, None]).long()
        x = self.emb(ids) + self.segment(types)
        a, b = (types == 0) & ~is_sep, (types == 1) & ~is_sep
        pool = lambda m: (x * m.unsqueeze(-1)).sum(1) / m.sum(1, keepdim=True).clamp(min=1)
        u, v = pool(a), pool(b)
        return torch.cat([u, v, (u - v).abs()], -1), first
