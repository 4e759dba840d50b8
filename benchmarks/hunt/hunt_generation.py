"""Decoders, generation, caches, diffusion and quantised code as people write them for their jobs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Optional

import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("generation")


def hidden(batch=2, seq=6):
    return (torch.randn(batch, seq, 16),)


def ids(batch=2, seq=6):
    return (torch.randint(0, 40, (batch, seq)),)


def cached(batch=2, seq=3, past=4):
    return {
        "input_ids": torch.randint(0, 40, (batch, seq)),
        "past_key_values": [(torch.randn(batch, 2, past, 8), torch.randn(batch, 2, past, 8)) for _ in range(2)],
    }


@model(
    "a decoder whose caches grow: list of tuples in, list of tuples out; positions start at the length of the past",
    cached,
    where=["past + seq <= 64"],
    far={"seq": (1, 2, 16), "past": (1, 7, 61)},
    points=({"batch": 1, "seq": 1, "past": 1}, {"seq": 32, "past": 32}),
)
class CachedDecoder(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(40, 16), nn.Embedding(64, 16)
        self.qkv = nn.ModuleList(nn.Linear(16, 48) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(16, 16) for _ in range(layers))
        self.register_buffer("bias", torch.tril(torch.ones(64, 64, dtype=torch.bool)).view(1, 1, 64, 64))

    def forward(self, input_ids, past_key_values=None):
        past_length = past_key_values[0][0].size(-2) if past_key_values is not None else 0
        position_ids = torch.arange(past_length, input_ids.shape[-1] + past_length, dtype=torch.long).unsqueeze(0)
        x = self.wte(input_ids) + self.wpe(position_ids)
        presents = []
        for i, (qkv, out) in enumerate(zip(self.qkv, self.out)):
            q, k, v = (t.view(*t.shape[:2], 2, 8).transpose(1, 2) for t in qkv(x).split(16, dim=2))
            if past_key_values is not None:
                k = torch.cat((past_key_values[i][0], k), dim=-2)
                v = torch.cat((past_key_values[i][1], v), dim=-2)
            presents.append((k, v))
            w = q @ k.transpose(-1, -2) / v.size(-1) ** 0.5
            ql, kl = q.size(-2), k.size(-2)
            w = torch.where(self.bias[:, :, kl - ql : kl, :kl], w, torch.full([], torch.finfo(w.dtype).min))
            a = (w.softmax(-1) @ v).transpose(1, 2).reshape(*x.shape)
            x = x + out(a)
        return {"logits": (x @ self.wte.weight.t())[:, -1], "past_key_values": presents}


def rotate_half(x):
    a, b = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-b, a), dim=-1)


@model(
    "the rotary tables are kept and made anew when a longer sequence comes: a cache of the module that grows",
    hidden,
    far={"seq": (1, 15, 16, 17, 40)},
)
class GrowingRotary(nn.Module):
    def __init__(self, dim=8, start=16):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim)), persistent=False)
        self.max_seq_len_cached = start
        self._set_cos_sin_cache(start)
        self.qkv = nn.Linear(16, 48)

    def _set_cos_sin_cache(self, seq_len):
        self.max_seq_len_cached = seq_len
        freqs = torch.outer(torch.arange(seq_len, dtype=torch.float32), self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        self.register_buffer("cos_cached", emb.cos(), persistent=False)
        self.register_buffer("sin_cached", emb.sin(), persistent=False)

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.max_seq_len_cached:
            self._set_cos_sin_cache(n)
        cos, sin = self.cos_cached[:n], self.sin_cached[:n]
        q, k, v = self.qkv(x).view(b, n, 3, 2, 8).permute(2, 0, 3, 1, 4)
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, 16)


@model(
    "dynamic NTK: the rotary base is another one beyond 16 tokens, computed from the length",
    lambda batch=2, seq=6: (torch.randn(batch, seq, 2, 8), torch.arange(seq)[None].expand(batch, -1)),
    far={"seq": (1, 15, 16, 17, 33, 64)},
)
class DynamicNtk(nn.Module):
    def __init__(self, dim=8, base=10000.0, max_pos=16, factor=2.0):
        super().__init__()
        self.dim, self.base, self.max_pos, self.factor = dim, base, max_pos, factor
        self.register_buffer("inv_freq", 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim)))

    def forward(self, x, position_ids):
        seq_len = x.shape[1]
        inv_freq = self.inv_freq
        if seq_len > self.max_pos:
            base = self.base * ((self.factor * seq_len / self.max_pos) - (self.factor - 1)) ** (
                self.dim / (self.dim - 2)
            )
            inv_freq = 1.0 / (base ** (torch.arange(0, self.dim, 2, dtype=torch.int64).float() / self.dim))
        freqs = (
            inv_freq[None, :, None].float().expand(position_ids.shape[0], -1, 1) @ position_ids[:, None, :].float()
        ).transpose(1, 2)
        emb = torch.cat((freqs, freqs), dim=-1).unsqueeze(2)
        return x * emb.cos() + rotate_half(x) * emb.sin()


@model(
    "ALiBi for 6 heads: slopes of the next power of two interleaved; keys counted by the mask's cumulative sum as in BLOOM",
    lambda batch=2, seq=6: (
        torch.randn(batch, seq, 12),
        (torch.arange(seq)[None] >= torch.randint(0, seq, (batch, 1))).long(),
    ),
    far={"seq": (1, 2, 33), "batch": (1, 3)},
    rare={"no padding": lambda batch=2, seq=6: (torch.randn(batch, seq, 12), torch.ones(batch, seq, dtype=torch.long))},
)
class Alibi(nn.Module):
    def __init__(self, heads=6):
        super().__init__()
        self.heads = heads
        closest = 2 ** math.floor(math.log2(heads))
        base = 2 ** (-(2 ** -(math.log2(closest) - 3)))
        slopes = [base**i for i in range(1, 1 + closest)]
        if closest != heads:
            extra = 2 ** (-(2 ** -(math.log2(2 * closest) - 3)))
            slopes += [extra**i for i in range(1, 1 + 2 * min(closest, heads - closest), 2)]
        self.register_buffer("slopes", torch.tensor(slopes), persistent=False)
        self.qkv = nn.Linear(12, 36)

    def forward(self, x, attention_mask):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, self.heads, 3, 2).unbind(3)
        pos = ((attention_mask.cumsum(dim=-1) - 1) * attention_mask)[:, None, :]
        alibi = self.slopes[..., None] * pos
        scores = torch.baddbmm(
            alibi.reshape(b * self.heads, 1, n),
            q.transpose(1, 2).reshape(-1, n, 2),
            k.permute(0, 2, 3, 1).reshape(-1, 2, n),
            beta=1.0,
            alpha=2**-0.5,
        )
        causal = torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)
        mask = causal[None, None] | (attention_mask[:, None, None] == 0)
        scores = scores.view(b, self.heads, n, n).masked_fill(mask, torch.finfo(x.dtype).min)
        return (scores.softmax(-1) @ v.transpose(1, 2)).transpose(1, 2).reshape(b, n, d)


def window_cache(batch=2, seq=3, past=4):
    return torch.randn(batch, seq, 16), torch.randn(batch, 2, past, 8), torch.randn(batch, 2, past, 8)


@model(
    "sliding window cache: only the last 8 keys are kept, so the cache out has min(past + seq, 8) rows",
    window_cache,
    far={"seq": (1, 4, 5, 8, 9, 33), "past": (1, 5, 6, 7, 8)},
    where=["past <= 8"],
    points=({"seq": 8, "past": 8}, {"seq": 1, "past": 7, "batch": 1}),
)
class SlidingCache(nn.Module):
    def __init__(self, window=8):
        super().__init__()
        self.window = window
        self.qkv = nn.Linear(16, 48)

    def forward(self, x, key, value):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, 2, 8).permute(2, 0, 3, 1, 4)
        k, v = torch.cat([key, k], 2), torch.cat([value, v], 2)
        total = k.size(2)
        qi = torch.arange(total - n, total)[:, None]
        kj = torch.arange(total)[None]
        allowed = (kj <= qi) & (kj > qi - self.window)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        if total > self.window:
            k, v = k[:, :, -self.window :], v[:, :, -self.window :]
        return y.transpose(1, 2).flatten(2), k, v


@model(
    "StreamingLLM: the first 4 tokens stay as sinks, the middle is evicted; positions are those within the cache",
    lambda batch=1, past=9: (torch.randn(batch, 1, 16), torch.randn(batch, 2, past, 8), torch.randn(batch, 2, past, 8)),
    far={"past": (1, 3, 4, 9, 10, 11, 12, 40), "batch": (2,)},
)
class SinkCache(nn.Module):
    def __init__(self, sinks=4, recent=6):
        super().__init__()
        self.sinks, self.recent = sinks, recent
        self.qkv = nn.Linear(16, 48)
        self.register_buffer("freq", 1 / 100 ** (torch.arange(4) / 4))

    def rope(self, x, pos):
        e = torch.outer(pos.float(), self.freq).repeat(1, 2)
        return x * e.cos() + rotate_half(x) * e.sin()

    def evict(self, x):
        n = x.size(2)
        if n <= self.sinks + self.recent:
            return x
        return torch.cat([x[:, :, : self.sinks], x[:, :, n - self.recent : n]], dim=2)

    def forward(self, x, key, value):
        b = x.size(0)
        q, k, v = self.qkv(x).view(b, 1, 3, 2, 8).permute(2, 0, 3, 1, 4)
        key, value = self.evict(torch.cat([key, k], 2)), self.evict(torch.cat([value, v], 2))
        n = key.size(2)
        q, kr = self.rope(q, torch.tensor([n - 1])), self.rope(key, torch.arange(n))
        y = F.scaled_dot_product_attention(q, kr, value)
        return y.transpose(1, 2).reshape(b, 1, 16), key, value


def padded(batch=2, seq=6):
    m = (torch.arange(seq)[None] >= torch.randint(0, seq, (batch, 1))).long()
    return {"x": torch.randn(batch, seq, 16), "attention_mask": m}


@model(
    "grouped queries with left padding: fully masked rows of the causal mask are opened again by hand; the mask may be absent",
    padded,
    far={"seq": (1, 2, 33), "batch": (1, 3)},
    rare={
        "no padding": lambda batch=2, seq=6: {
            "x": torch.randn(batch, seq, 16),
            "attention_mask": torch.ones(batch, seq, dtype=torch.long),
        },
        "all padding": lambda batch=2, seq=6: {
            "x": torch.randn(batch, seq, 16),
            "attention_mask": torch.zeros(batch, seq, dtype=torch.long),
        },
    },
)
class GroupedQueries(nn.Module):
    def __init__(self, heads=4, kv=2):
        super().__init__()
        self.heads, self.kv = heads, kv
        self.q, self.kvp = nn.Linear(16, 16), nn.Linear(16, 16)

    def repeat_kv(self, t, n_rep):
        b, h, s, d = t.shape
        if n_rep == 1:
            return t
        return t[:, :, None].expand(b, h, n_rep, s, d).reshape(b, h * n_rep, s, d)

    def forward(self, x, attention_mask: Optional[torch.Tensor] = None):
        b, n, _ = x.shape
        q = self.q(x).view(b, n, self.heads, 4).transpose(1, 2)
        k, v = self.kvp(x).view(b, n, 2 * self.kv, 4).transpose(1, 2).chunk(2, 1)
        k, v = self.repeat_kv(k, self.heads // self.kv), self.repeat_kv(v, self.heads // self.kv)
        low = torch.finfo(x.dtype).min
        causal = torch.full((n, n), low)
        if n != 1:
            causal = torch.triu(causal, diagonal=1)
        else:
            causal = causal * 0
        causal = causal[None, None].expand(b, 1, -1, -1).clone()
        if attention_mask is not None:
            if not torch.all(attention_mask == 1):
                padding = causal[..., :n] + attention_mask[:, None, None, :]
                causal[..., :n] = causal[..., :n].masked_fill(padding == 0, low)
                causal = causal.mul(~torch.all(causal == low, dim=-1, keepdim=True))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=causal)
        return y.transpose(1, 2).reshape(b, n, 16)


@model(
    "Mixtral: one loop over experts, torch.where picks its tokens, index_add_ puts them back; an expert may get none",
    hidden,
    far={"seq": (1, 2, 33), "batch": (1, 4)},
    rare={"zeros": lambda batch=2, seq=6: (torch.zeros(batch, seq, 16),)},
)
class SparseMoe(nn.Module):
    def __init__(self, experts=4, top_k=2):
        super().__init__()
        self.top_k, self.num = top_k, experts
        self.gate = nn.Linear(16, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 12), nn.SiLU(), nn.Linear(12, 16)) for _ in range(experts)
        )

    def forward(self, x):
        b, n, d = x.shape
        x = x.view(-1, d)
        logits = self.gate(x)
        w, sel = torch.topk(F.softmax(logits, dim=1, dtype=torch.float), self.top_k, dim=-1)
        w = (w / w.sum(dim=-1, keepdim=True)).to(x.dtype)
        final = torch.zeros((b * n, d), dtype=x.dtype)
        mask = F.one_hot(sel, num_classes=self.num).permute(2, 1, 0)
        for e in range(self.num):
            idx, top_x = torch.where(mask[e])
            if top_x.shape[0] == 0:
                continue
            cur = x[None, top_x].reshape(-1, d)
            final.index_add_(0, top_x, (self.experts[e](cur) * w[top_x, idx, None]).to(x.dtype))
        return final.reshape(b, n, d), logits


@model(
    "switch routing with capacity int(1.25 * tokens / experts): tokens beyond it fall through the residual",
    hidden,
    far={"seq": (1, 2, 3, 16, 33), "batch": (1, 5)},
    rare={"same": lambda batch=2, seq=6: (torch.ones(batch, seq, 16),)},
)
class SwitchRouter(nn.Module):
    def __init__(self, experts=4, factor=1.25, min_capacity=2):
        super().__init__()
        self.num, self.factor, self.min_capacity = experts, factor, min_capacity
        self.gate = nn.Linear(16, experts, bias=False)
        self.w1, self.w2 = nn.Parameter(torch.randn(experts, 16, 8)), nn.Parameter(torch.randn(experts, 8, 16))

    def forward(self, x):
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        tokens = x.shape[0]
        capacity = max(int(self.factor * tokens / self.num), self.min_capacity)
        p = self.gate(x).softmax(-1)
        top, expert = p.max(-1)
        onehot = F.one_hot(expert, self.num)
        pos = (onehot.cumsum(0) * onehot).sum(-1) - 1
        keep = pos < capacity
        dispatch = torch.zeros(tokens, self.num, capacity)
        rows = torch.arange(tokens)
        dispatch[rows, expert, pos.clamp(max=capacity - 1)] += keep.float()
        inp = torch.einsum("tec,td->ecd", dispatch * keep[:, None, None], x)
        out = torch.bmm(F.relu(torch.bmm(inp, self.w1)), self.w2)
        y = torch.einsum("tec,ecd->td", dispatch * keep[:, None, None] * top[:, None, None], out)
        load = onehot.float().mean(0) * p.mean(0) * self.num
        return (x + y).reshape(shape), load.sum()


@model(
    "timesteps come as a Python number, are made a tensor and expanded to the batch; scale by int division, odd dims padded",
    lambda batch=2, h=8, w=6, t=17: (torch.randn(batch, 3, h, w), t),
    far={"batch": (1, 5), "h": (1, 16), "w": (1, 33), "t": (1, 2, 499, 500, 999)},
    where=["t <= 1000"],
)
class TimestepNet(nn.Module):
    def __init__(self, dim=9):
        super().__init__()
        self.dim = dim
        self.mlp = nn.Sequential(nn.Linear(dim, 12), nn.SiLU(), nn.Linear(12, 16))
        self.inp, self.out = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 3, 3, padding=1)

    def embed(self, timesteps, max_period=10000):
        half = self.dim // 2
        exponent = -math.log(max_period) * torch.arange(half, dtype=torch.float32) / half
        emb = timesteps[:, None].float() * torch.exp(exponent)[None]
        emb = torch.cat([torch.cos(emb), torch.sin(emb)], dim=-1)
        if self.dim % 2 == 1:
            emb = F.pad(emb, (0, 1, 0, 0))
        return emb

    def forward(self, sample, timestep: int):
        timesteps = timestep
        if not torch.is_tensor(timesteps):
            timesteps = torch.tensor([timesteps], dtype=torch.long)
        elif timesteps.dim() == 0:
            timesteps = timesteps[None]
        timesteps = timesteps * torch.ones(sample.shape[0], dtype=timesteps.dtype)
        scale, shift = self.mlp(self.embed(timesteps))[:, :, None, None].chunk(2, 1)
        x = self.inp(sample)
        x = F.group_norm(x, 2) * (1 + scale) + shift
        return self.out(F.silu(x))


@model(
    "DDIM with the number of steps of the caller: the stride is 100 // steps, the last step looks before the start",
    lambda batch=2, length=8, steps=4: (torch.randn(batch, 4, length), steps),
    where=["steps <= 20"],
    far={"steps": (1, 2, 3, 7, 16, 20), "length": (1, 33), "batch": (1,)},
)
class DdimSampler(nn.Module):
    def __init__(self, total=100):
        super().__init__()
        self.total = total
        betas = torch.linspace(1e-4**0.5, 0.02**0.5, total) ** 2
        self.register_buffer("alphas", torch.cumprod(1 - betas, 0))
        self.net, self.time = nn.Conv1d(4, 4, 3, padding=1), nn.Embedding(total, 4)

    def forward(self, x, num_steps: int):
        ratio = self.total // num_steps
        timesteps = [i * ratio for i in range(num_steps)][::-1]
        for t in timesteps:
            prev = t - ratio
            a_t = self.alphas[t]
            a_prev = self.alphas[prev] if prev >= 0 else torch.tensor(1.0)
            eps = torch.tanh(self.net(x) + self.time.weight[t][None, :, None])
            x0 = ((x - (1 - a_t).sqrt() * eps) / a_t.sqrt()).clamp(-1, 1)
            x = a_prev.sqrt() * x0 + (1 - a_prev).sqrt() * eps
        return x


@model(
    "guidance by a Python float: above 1 the batch is doubled with the empty prompt and chunked, else it is run once; rescale is optional",
    lambda batch=2, length=8: (torch.randn(batch, 4, length), torch.randn(batch, 5, 6), 3.0, 0.5),
    far={"batch": (1, 3), "length": (2, 33)},
    where=["length >= 2"],
    rare={
        "off": lambda batch=2, length=8: (torch.randn(batch, 4, length), torch.randn(batch, 5, 6), 1.0, 0.0),
        "no rescale": lambda batch=2, length=8: (torch.randn(batch, 4, length), torch.randn(batch, 5, 6), 7.5, 0.0),
    },
)
class ClassifierFree(nn.Module):
    def __init__(self):
        super().__init__()
        self.null = nn.Parameter(torch.randn(1, 5, 6))
        self.conv, self.kv = nn.Conv1d(4, 4, 3, padding=1), nn.Linear(6, 8)

    def unet(self, x, c):
        k, v = self.kv(c).chunk(2, -1)
        a = (self.conv(x).transpose(1, 2) @ k.mT).softmax(-1) @ v
        return x + a.transpose(1, 2)

    def forward(self, latents, prompt, guidance_scale: float, guidance_rescale: float = 0.0):
        do_cfg = guidance_scale > 1.0
        if do_cfg:
            prompt = torch.cat([self.null.repeat(prompt.shape[0], 1, 1), prompt])
        x = torch.cat([latents] * 2) if do_cfg else latents
        noise = self.unet(x, prompt)
        if do_cfg:
            uncond, text = noise.chunk(2)
            noise = uncond + guidance_scale * (text - uncond)
            if guidance_rescale > 0.0:
                std_text = text.std(dim=list(range(1, text.ndim)), keepdim=True)
                std_cfg = noise.std(dim=list(range(1, noise.ndim)), keepdim=True)
                noise = guidance_rescale * noise * (std_text / std_cfg) + (1 - guidance_rescale) * noise
        return noise


@model(
    "a one-dimensional diffusion U-Net: upsample sizes are forwarded only if the length is not a multiple of 4",
    lambda batch=2, length=10: (torch.randn(batch, 4, length),),
    where=["length >= 4"],
    far={"length": (4, 5, 6, 7, 8, 9, 11, 33, 64)},
)
class ForwardedSizes(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2 = nn.Conv1d(4, 6, 3, 2, 1), nn.Conv1d(6, 8, 3, 2, 1)
        self.mid = nn.MultiheadAttention(8, 2, batch_first=True)
        self.u2, self.u1 = nn.Conv1d(14, 6, 3, padding=1), nn.Conv1d(10, 4, 3, padding=1)

    def up(self, x, size):
        if size is None:
            return F.interpolate(x, scale_factor=2.0, mode="nearest")
        return F.interpolate(x, size=size, mode="nearest")

    def forward(self, x):
        factor = 4
        forward_size = any(s % factor != 0 for s in x.shape[-1:])
        a = F.silu(self.d1(x))
        b = F.silu(self.d2(a))
        t = b.transpose(1, 2)
        b = b + self.mid(t, t, t)[0].transpose(1, 2)
        y = self.up(b, a.shape[-1] if forward_size else None)
        y = F.silu(self.u2(torch.cat([y, a], 1)))
        y = self.up(y, x.shape[-1] if forward_size else None)
        return self.u1(torch.cat([y, x], 1))


@model(
    "residual vector quantiser with the number of codebooks from a bandwidth number; codes stacked first",
    lambda batch=2, frames=7: (torch.randn(batch, 8, frames), 3.0),
    far={"frames": (1, 2, 33), "batch": (1, 3)},
    rare={
        "low": lambda batch=2, frames=7: (torch.randn(batch, 8, frames), 1.5),
        "all": lambda batch=2, frames=7: (torch.randn(batch, 8, frames), 0.0),
    },
)
class ResidualVq(nn.Module):
    def __init__(self, n_q=4, bins=16, frame_rate=75):
        super().__init__()
        self.n_q, self.bins, self.frame_rate = n_q, bins, frame_rate
        self.register_buffer("codebooks", torch.randn(n_q, bins, 8))

    def forward(self, x, bandwidth: float):
        per_q = math.log2(self.bins) * self.frame_rate / 200
        n_q = self.n_q
        if bandwidth and bandwidth > 0.0:
            n_q = int(max(1, math.floor(bandwidth / per_q)))
        residual, quantized = x, torch.zeros_like(x)
        codes = []
        for i in range(min(n_q, self.n_q)):
            embed = self.codebooks[i].t()
            flat = residual.transpose(1, 2).reshape(-1, 8)
            dist = -(flat.pow(2).sum(1, keepdim=True) - 2 * flat @ embed + embed.pow(2).sum(0, keepdim=True))
            ind = dist.max(dim=-1).indices.view(x.shape[0], -1)
            q = F.embedding(ind, self.codebooks[i]).transpose(1, 2)
            residual, quantized = residual - q, quantized + q
            codes.append(ind)
        return quantized, torch.stack(codes)


@model(
    "finite scalar quantisation: even levels are shifted by half a step, round is half to even, indices by a basis",
    lambda batch=2, frames=7: (torch.randn(batch, frames, 3) * 2,),
    far={"frames": (1, 33), "batch": (1,)},
    rare={
        "zeros": lambda batch=2, frames=7: (torch.zeros(batch, frames, 3),),
        "large": lambda batch=2, frames=7: (torch.full((batch, frames, 3), 1e4),),
    },
)
class FiniteScalar(nn.Module):
    def __init__(self, levels=(8, 5, 4)):
        super().__init__()
        lv = torch.tensor(levels)
        self.register_buffer("levels", lv)
        self.register_buffer("basis", torch.cumprod(torch.tensor([1, *levels[:-1]]), 0))

    def forward(self, z):
        half_l = (self.levels - 1) * (1 - 1e-3) / 2
        offset = torch.where(self.levels % 2 == 1, 0.0, 0.5)
        shift = torch.tan(offset / half_l)
        bounded = torch.tanh(z + shift) * half_l - offset
        quantized = bounded + (bounded.round() - bounded).detach()
        half_width = self.levels // 2
        codes = quantized / half_width
        indices = ((codes * half_width + half_width) * self.basis).sum(-1).round().to(torch.int64)
        back = torch.div(indices.unsqueeze(-1), self.basis, rounding_mode="floor") % self.levels
        return codes, indices, (back - half_width) / half_width


@model(
    "BPE on tensors: each rule merges adjacent pairs from left to right; the text gets shorter, rows are padded",
    lambda seq=8: (torch.randint(0, 4, (seq,)),),
    where=["seq <= 33"],
    far={"seq": (1, 2, 16, 33)},
    unproved=True,
    rare={
        "repeats": lambda seq=8: (torch.zeros(seq, dtype=torch.long),),
        "nothing": lambda seq=8: (torch.full((seq,), 3),),
    },
)
class BpeMerges(nn.Module):
    def __init__(self, merges=((0, 1), (0, 0), (4, 2), (5, 5))):
        super().__init__()
        self.merges = merges
        self.emb = nn.Embedding(4 + len(merges), 6)

    def forward(self, ids):
        tokens = ids.tolist()
        for rank, (a, b) in enumerate(self.merges):
            out, i = [], 0
            while i < len(tokens):
                if i < len(tokens) - 1 and tokens[i] == a and tokens[i + 1] == b:
                    out.append(4 + rank)
                    i += 2
                else:
                    out.append(tokens[i])
                    i += 1
            tokens = out
        merged = torch.tensor(tokens, dtype=torch.long)
        return merged, self.emb(merged)


@model(
    "speculative check, greedy: the accepted prefix by cumprod of equality; the answer has as many tokens as were accepted, plus one",
    lambda draft=4, seq=5: (torch.randint(0, 6, (1, seq)), torch.randint(0, 6, (1, draft))),
    far={"draft": (1, 2, 16), "seq": (1, 33)},
    unproved=True,
)
class SpeculativeVerify(nn.Module):
    def __init__(self, vocab=6):
        super().__init__()
        self.emb, self.rnn, self.out = nn.Embedding(vocab, 8), nn.GRU(8, 8, batch_first=True), nn.Linear(8, vocab)

    def forward(self, prefix, draft):
        k = draft.shape[1]
        candidate = torch.cat([prefix, draft], dim=1)
        logits = self.out(self.rnn(self.emb(candidate))[0])[:, -k - 1 :]
        selected = logits.argmax(dim=-1)
        n_matches = ((~(draft == selected[:, :-1])).cumsum(dim=-1) < 1).sum()
        valid = selected[:, : n_matches + 1]
        return torch.cat([prefix, valid], dim=-1), n_matches


@model(
    "greedy generation until every row has ended, at most 8 new tokens; finished rows get padding",
    lambda batch=2, seq=4: (torch.randint(2, 9, (batch, seq)),),
    far={"batch": (1, 3), "seq": (1, 16)},
    unproved=True,
    rare={"same": lambda batch=2, seq=4: (torch.full((batch, seq), 3),)},
)
class GreedyGenerate(nn.Module):
    def __init__(self, vocab=9, eos=1, pad=0, max_new=8):
        super().__init__()
        self.eos, self.pad, self.max_new = eos, pad, max_new
        self.emb, self.mix, self.head = nn.Embedding(vocab, 8), nn.Linear(8, 8), nn.Linear(8, vocab)

    def forward(self, input_ids):
        unfinished = torch.ones(input_ids.shape[0], dtype=torch.long)
        prompt = input_ids.shape[1]
        while True:
            x = self.emb(input_ids)
            w = torch.arange(1, input_ids.shape[1] + 1).float() / input_ids.shape[1]
            logits = self.head(torch.tanh(self.mix((x * w[None, :, None]).sum(1)))) * 3
            nxt = torch.argmax(logits, dim=-1)
            nxt = nxt * unfinished + self.pad * (1 - unfinished)
            input_ids = torch.cat([input_ids, nxt[:, None]], dim=-1)
            unfinished = unfinished.mul((nxt != self.eos).long())
            if unfinished.max() == 0 or input_ids.shape[1] - prompt >= self.max_new:
                break
        return input_ids


@model(
    "logits processors: repetition penalty by gather and scatter, top-k min(k, vocab), top-p keeps at least one, temperature as a number",
    lambda batch=2, seq=6: (torch.randn(batch, 40) * 2, torch.randint(0, 40, (batch, seq)), 0.7),
    far={"batch": (1, 5), "seq": (1, 33)},
    rare={
        "one token": lambda batch=2, seq=6: (torch.randn(batch, 40), torch.zeros(batch, seq, dtype=torch.long), 0.7),
        "peak": lambda batch=2, seq=6: (
            torch.nn.functional.one_hot(torch.full((batch,), 3), 40) * 50.0 + torch.rand(batch, 40),
            torch.zeros(batch, seq, dtype=torch.long),
            1.0,
        ),
    },
)
class LogitsProcessors(nn.Module):
    def __init__(self, penalty=1.3, top_k=50, top_p=0.8, ngram=2):
        super().__init__()
        self.penalty, self.top_k, self.top_p = penalty, top_k, top_p

    def forward(self, scores, input_ids, temperature: float):
        score = torch.gather(scores, 1, input_ids)
        score = torch.where(score < 0, score * self.penalty, score / self.penalty)
        scores = scores.scatter(1, input_ids, score)
        if temperature != 1.0:
            scores = scores / temperature
        top_k = min(self.top_k, scores.size(-1))
        scores = scores.masked_fill(scores < torch.topk(scores, top_k)[0][..., -1, None], -1e9)
        sorted_logits, sorted_indices = torch.sort(scores, descending=False)
        cumulative = sorted_logits.softmax(dim=-1).cumsum(dim=-1)
        remove = cumulative <= (1 - self.top_p)
        remove[..., -1:] = 0
        remove = remove.scatter(1, sorted_indices, remove)
        return scores.masked_fill(remove, -1e9).softmax(-1)


class Cache(NamedTuple):
    key: torch.Tensor
    value: torch.Tensor


@model(
    "encoder-decoder step with named tuples: the cross cache is used when given, the self cache grows; the encoder mask is optional",
    lambda batch=2, past=3, source=5: {
        "x": torch.randn(batch, 1, 16),
        "self_cache": Cache(torch.randn(batch, past, 16), torch.randn(batch, past, 16)),
        "cross_cache": Cache(torch.randn(batch, source, 16), torch.randn(batch, source, 16)),
        "encoder_mask": torch.ones(batch, source, dtype=torch.bool),
    },
    far={"past": (1, 33), "source": (1, 2, 64), "batch": (1,)},
)
class CrossCacheStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn, self.cross_q, self.cross_kv = nn.Linear(16, 48), nn.Linear(16, 16), nn.Linear(16, 32)

    def forward(
        self,
        x,
        self_cache: Optional[Cache] = None,
        cross_cache: Optional[Cache] = None,
        encoder_hidden=None,
        encoder_mask=None,
    ):
        q, k, v = self.self_attn(x).chunk(3, -1)
        if self_cache is not None:
            k, v = torch.cat([self_cache.key, k], 1), torch.cat([self_cache.value, v], 1)
        x = x + F.scaled_dot_product_attention(q, k, v)
        if cross_cache is None:
            cross_cache = Cache(*self.cross_kv(encoder_hidden).chunk(2, -1))
        mask = None if encoder_mask is None else encoder_mask[:, None, :]
        y = x + F.scaled_dot_product_attention(self.cross_q(x), cross_cache.key, cross_cache.value, attn_mask=mask)
        return y, Cache(k, v)


@dataclass
class Decoded:
    logits: torch.Tensor
    hidden: tuple
    loss: Optional[torch.Tensor] = None


@model(
    "prefix LM returns a dataclass: the first prefix_len tokens see each other, the loss ignores them; prefix_len is a number",
    lambda batch=2, seq=7, prefix=3: {"input_ids": torch.randint(0, 40, (batch, seq)), "prefix_len": prefix},
    where=["prefix < seq"],
    far={"seq": (4, 5, 33), "prefix": (1, 2, 6), "batch": (1,)},
    points=({"seq": 2, "prefix": 1}, {"seq": 64, "prefix": 63}),
)
class PrefixLm(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(40, 16)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(16, 2, 16, batch_first=True, dropout=0.0) for _ in range(2)
        )

    def forward(self, input_ids, prefix_len: int):
        n = input_ids.size(1)
        mask = torch.ones(n, n, dtype=torch.bool).triu(1)
        mask[:, :prefix_len] = False
        x = self.emb(input_ids)
        states = (x,)
        for block in self.blocks:
            x = block(x, src_mask=mask)
            states += (x,)
        logits = x @ self.emb.weight.t()
        labels = input_ids.clone()
        labels[:, :prefix_len] = -100
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, 40), labels[:, 1:].reshape(-1), ignore_index=-100)
        return Decoded(logits=logits, hidden=states, loss=loss)


def packed(docs=3, tokens=11):
    cut = torch.sort(torch.randperm(max(tokens - 1, 0))[: docs - 1] + 1)[0]
    return torch.randn(tokens, 16), torch.cat([torch.zeros(1, dtype=torch.long), cut, torch.tensor([tokens])])


@model(
    "documents packed end to end: cu_seqlens give the document of each token and its position, attention stays within",
    packed,
    where=["docs <= tokens"],
    far={"docs": (1, 2, 11), "tokens": (3, 4, 33)},
    points=({"docs": 1, "tokens": 1},),
)
class PackedDocuments(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.pos = nn.Linear(16, 48), nn.Linear(2, 16)

    def forward(self, x, cu_seqlens):
        n = x.size(0)
        t = torch.arange(n)
        doc = torch.bucketize(t, cu_seqlens[1:], right=True)
        pos = t - cu_seqlens[doc]
        lengths = cu_seqlens[1:] - cu_seqlens[:-1]
        x = x + self.pos(torch.stack([pos.float(), pos / lengths[doc]], -1))
        q, k, v = self.qkv(x).view(n, 3, 2, 8).permute(1, 2, 0, 3)
        mask = (doc[:, None] == doc[None]) & (t[:, None] >= t[None])
        y = F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=mask)[0].transpose(0, 1).reshape(n, 16)
        last = y[cu_seqlens[1:] - 1]
        return y, last


@model(
    "int8 cache in groups of 8 tokens: full groups are quantised with scale and zero point, the residual stays in float",
    lambda batch=2, seq=19: (torch.randn(batch, 2, seq, 4),),
    far={"seq": (1, 7, 8, 9, 16, 17, 64)},
    rare={"constant": lambda batch=2, seq=19: (torch.full((batch, 2, seq, 4), 0.5),)},
)
class QuantizedCache(nn.Module):
    def __init__(self, group=8):
        super().__init__()
        self.group = group

    def forward(self, k):
        b, h, n, d = k.shape
        full = n - n % self.group
        old, recent = k[:, :, :full], k[:, :, full:]
        if full == 0:
            return k, torch.zeros(b, h, 0, d, dtype=torch.uint8), torch.zeros(b, h, 0, 1, d)
        g = old.reshape(b, h, full // self.group, self.group, d)
        lo, hi = g.amin(3, keepdim=True), g.amax(3, keepdim=True)
        scale = ((hi - lo) / 255).clamp(min=1e-5)
        q = torch.round((g - lo) / scale).clamp(0, 255).to(torch.uint8)
        deq = (q.to(k.dtype) * scale + lo).reshape(b, h, full, d)
        return torch.cat([deq, recent], 2), q.reshape(b, h, full, d), scale.squeeze(3).unsqueeze(3)


@model(
    "packed int4 weights are unpacked by shifts; activations are quantised per token; a short prompt takes the float path",
    lambda batch=2, seq=6: (torch.randn(batch, seq, 16),),
    far={"seq": (1, 3, 4, 5, 33), "batch": (1,)},
    rare={"zeros": lambda batch=2, seq=6: (torch.zeros(batch, seq, 16),)},
)
class PackedInt4Linear(nn.Module):
    def __init__(self, out=6, inp=16, group=8):
        super().__init__()
        self.group = group
        self.register_buffer("packed", torch.randint(0, 256, (out, inp // 2), dtype=torch.uint8))
        self.register_buffer("scales", torch.rand(out, inp // group) * 0.1)

    def forward(self, x):
        low, high = self.packed & 0xF, self.packed >> 4
        w = torch.stack([low, high], -1).flatten(1).to(torch.int8) - 8
        w = (w.float().view(w.size(0), -1, self.group) * self.scales.unsqueeze(-1)).flatten(1)
        if x.shape[1] < 4:
            return x @ w.t()
        amax = x.abs().amax(-1, keepdim=True).clamp(min=1e-6)
        xq = torch.round(x / amax * 127).clamp(-128, 127)
        return (xq @ w.t()) * (amax / 127)


@model(
    "linear attention in chunks of 8: the state goes from chunk to chunk, the length is padded to a multiple",
    lambda batch=2, seq=13: (torch.randn(batch, seq, 16), torch.randn(batch, 2, 8, 8)),
    where=["seq <= 80"],
    far={"seq": (1, 7, 8, 9, 16, 17, 64, 80), "batch": (1,)},
)
class ChunkedRetention(nn.Module):
    def __init__(self, chunk=8):
        super().__init__()
        self.chunk = chunk
        self.qkv = nn.Linear(16, 48)
        self.register_buffer("log_decay", torch.log(torch.tensor([0.9, 0.8])))

    def forward(self, x, state):
        b, n, _ = x.shape
        pad = (self.chunk - n % self.chunk) % self.chunk
        q, k, v = self.qkv(x).view(b, n, 3, 2, 8).permute(2, 0, 3, 1, 4)
        if pad > 0:
            q, k, v = (F.pad(t, (0, 0, 0, pad)) for t in (q, k, v))
        c = self.chunk
        i = torch.arange(c, dtype=torch.float32)
        diff = i[:, None] - i[None]
        inner = torch.where(diff >= 0, torch.exp(diff.clamp(min=0) * self.log_decay[:, None, None]), 0.0)
        into = torch.exp((i + 1) * self.log_decay[:, None]).unsqueeze(-1)
        outs = []
        for s in range(0, q.size(2), c):
            qi, ki, vi = q[:, :, s : s + c], k[:, :, s : s + c], v[:, :, s : s + c]
            y = (qi @ ki.mT * inner) @ vi + (qi * into) @ state
            used = min(c, n - s)
            keep = torch.exp((used - 1 - i).clamp(min=0) * self.log_decay[:, None]).unsqueeze(-1)
            state = state * torch.exp(used * self.log_decay)[:, None, None] + (ki * keep).mT @ vi
            outs.append(y)
        return torch.cat(outs, 2)[:, :, :n].transpose(1, 2).reshape(b, n, 16), state
