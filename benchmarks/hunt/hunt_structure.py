"""Nested inputs, keywords, caches, outputs of many kinds, dtypes other than float32."""

# ruff: noqa: C408
from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

import anyshape

model = Registry("structure")


class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


FAR = {"seq": (1, 2, 7, 64, 127, 255, 256, 257, 300)}


def flat(batch=3, seq=5):
    return (torch.randn(batch, seq),)


def typed(dtype):
    return lambda batch=3, seq=5: (torch.randn(batch, seq).to(dtype),)


@model(
    "a list of pairs as a cache; its length differs from the number of new steps",
    lambda past=2, seq=3: dict(
        x=torch.randn(1, seq, 4), cache=[(torch.randn(1, past, 4), torch.randn(1, past, 4)) for _ in range(2)]
    ),
    points=[dict(past=1, seq=1), dict(past=300, seq=1), dict(past=1, seq=257)],
)
class CachedLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 8) for _ in range(2)])

    def forward(self, x, cache):
        new = []
        for layer, (k, v) in zip(self.layers, cache, strict=True):
            key, value = layer(x).chunk(2, -1)
            k, v = torch.cat([k, key], 1), torch.cat([v, value], 1)
            new.append((k, v))
            x = x + F.scaled_dot_product_attention(x, k, v)
        return x, new


@model(
    "a cache that is trimmed to its last 280 entries",
    lambda past=2, seq=3: (torch.randn(1, seq, 4), torch.randn(1, past, 4)),
    points=[
        dict(past=1, seq=1),
        dict(past=279, seq=1),
        dict(past=280, seq=1),
        dict(past=300, seq=5),
        dict(past=1, seq=300),
    ],
)
def trimmed_cache(self, x, cache):
    full = torch.cat([cache, x], 1)
    kept = full[:, -280:]
    return x + kept.mean(1, keepdim=True), kept


@model(
    "a ring buffer as an input, written at a position that is an input",
    lambda size=8: (torch.zeros(size, 2), torch.randn(2), torch.tensor(3)),
    rare={
        "wraps": lambda size=8: (torch.zeros(size, 2), torch.randn(2), torch.tensor(size + 2)),
        "negative": lambda size=8: (torch.zeros(size, 2), torch.randn(2), torch.tensor(-1)),
    },
    far={"size": (1, 2, 255, 256, 300)},
    unproved=True,
)
def ring_buffer(self, buffer, x, position):
    slot = position % buffer.shape[0]
    return buffer.index_copy(0, slot[None], x[None])


@model(
    "dictionary in, dictionary out, in another order",
    lambda batch=3, seq=4: (dict(b=torch.randn(batch, seq), a=torch.randn(batch)),),
    points=[dict(batch=1, seq=1), dict(batch=2, seq=300)],
)
def dictionaries(self, inputs):
    return {"z": inputs["b"] * 2, "a": inputs["a"] + 1, "m": inputs["b"] + inputs["a"][:, None]}


@model(
    "nested dictionary with a list inside",
    lambda n=3, m=4: dict(inputs={"left": [torch.randn(n), torch.randn(n, m)], "right": {"deep": torch.randn(m)}}),
    points=[dict(n=1, m=1), dict(n=7, m=300)],
)
def nested_dictionary(self, inputs):
    one, two = inputs["left"]
    return {"out": [one[:, None] * two + inputs["right"]["deep"], {"inner": (one.sum(), two)}]}


@model(
    "named tuple in and out",
    lambda n=3, m=4: (Pair(torch.randn(n), torch.randn(m)),),
    points=[dict(n=1, m=1), dict(n=300, m=2)],
)
def named_tuple(self, pair):
    return Pair(pair.second * 2, pair.first.sum() + pair.second)


@model("OrderedDict out, one entry twice", flat, far=FAR)
def ordered_out(self, x):
    y = x.softmax(1)
    return OrderedDict(first=y, again=y, input=x)


@model("an input is returned as it is, and in a list", flat, far=FAR)
def passed_through(self, x):
    return x, [x, x + 1]


@model("a constant is an output", flat, far=FAR)
def constant_output(self, x):
    return x.sum(1), torch.arange(4), torch.tensor(x.shape[1])


@model("None among the outputs", flat, far=FAR)
def none_output(self, x):
    return x * 2, None, x.sum()


@model("a Python number among the outputs, made of a size", lambda batch=3, seq=5: (torch.randn(batch, seq),), far=FAR)
def size_output(self, x):
    return x, torch.tensor([x.shape[0], x.shape[1] * 2])


@model("an optional input that is not given", lambda batch=3, seq=5: dict(x=torch.randn(batch, seq)), far=FAR)
def optional_missing(self, x, mask=None, scale=2.0):
    return x * scale if mask is None else x * mask


@model(
    "an optional input that is given; a flag that is off",
    lambda batch=3, seq=5: dict(x=torch.randn(batch, seq), mask=torch.ones(batch, seq), flag=False),
    rare={
        "half": lambda batch=3, seq=5: dict(
            x=torch.randn(batch, seq), mask=(torch.rand(batch, seq) > 0.5).float(), flag=False
        )
    },
)
def optional_given(self, x, mask=None, flag=True):
    x = x * mask if mask is not None else x
    return x.cumsum(1) if flag else x


@model(
    "keyword-only inputs behind a star",
    lambda batch=3, seq=5: dict(x=torch.randn(batch, seq), bias=torch.randn(seq)),
    far=FAR,
)
def keyword_only(self, x, *, bias, power=2):
    return (x + bias) ** power


@model(
    "**kwargs are summed in the order of their names",
    lambda n=3: dict(x=torch.randn(n), b=torch.randn(n), a=torch.randn(1)),
    far={"n": (1, 2, 300)},
)
def open_keywords(self, x, **others):
    for name in sorted(others):
        x = x * 2 + others[name]
    return x


@model(
    "*args of two tensors with dims of their own",
    lambda n=3, m=4: (torch.randn(n), torch.randn(m)),
    points=[dict(n=1, m=9), dict(n=300, m=1)],
)
def open_arguments(self, *parts):
    return torch.cat(parts).cumsum(0), sum(part.sum() for part in parts)


@model(
    "args and kwargs by anyshape.Inputs",
    lambda batch=3, seq=4: anyshape.Inputs((torch.randn(batch, seq),), dict(scale=torch.randn(seq))),
    far={"seq": (1, 300)},
)
def by_inputs(self, x, scale=None):
    return x * scale


@model(
    "example and words in place of a function",
    lambda batch=3, seq=5: (torch.randn(batch, seq, 4), torch.ones(batch, seq)),
    dynamic={"x": "batch seq 4", "mask": "batch seq"},
    far=FAR,
)
def by_words(self, x, mask):
    return (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


@model("half precision sums", typed(torch.float16), far={"seq": (1, 2, 64, 256)})
def half_sum(self, x):
    return x.softmax(1), (x * 2).relu()


@model("half in, float inside, half out, beside a float32 output", typed(torch.float16), far=FAR)
def mixed_half(self, x):
    y = x.float()
    return (y * 1.0001).half(), y.cumsum(1)


@model("bfloat16 linear layer between float32", lambda batch=3: (torch.randn(batch, 5),), far={"batch": (1, 300)})
class Bfloat(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 3, dtype=torch.bfloat16)

    def forward(self, x):
        return self.layer(x.bfloat16()).float()


@model(
    "float64 keeps its digits",
    typed(torch.float64),
    far=FAR,
    rare={"fine": lambda batch=3, seq=5: (1 + 1e-9 * torch.randn(batch, seq, dtype=torch.float64),)},
)
def doubles(self, x):
    return (x - 1) * 1e9, x.cumsum(1), torch.sin(x)


@model(
    "float64 and float32 meet",
    lambda batch=3, seq=5: (torch.randn(batch, seq), torch.randn(seq, dtype=torch.float64)),
    far=FAR,
)
def promoted(self, x, y):
    return x + y, x * 2.0, x + torch.tensor(1.0, dtype=torch.float64)


@model(
    "integers and floats meet, true division of integers",
    lambda n=4: (torch.randint(1, 9, (n,)), torch.randint(1, 9, (n,), dtype=torch.int32)),
    far={"n": (1, 300)},
    rare={"negative": lambda n=4: (torch.randint(-9, 9, (n,)), torch.full((n,), -4, dtype=torch.int32))},
)
def integers_meet(self, x, y):
    return x / y, x // y, x + y, x.float() ** 2, x * 0.5


@model("booleans in arithmetic", lambda batch=3, seq=5: (torch.rand(batch, seq) > 0.5,), far=FAR)
def booleans(self, x):
    return x.sum(1), x.float().mean(1), x.long() * 3, x & ~x.flip(1), x.cumsum(1)


@model(
    "int32 indices and an embedding",
    lambda batch=2, seq=4: (torch.randint(0, 9, (batch, seq), dtype=torch.int32),),
    far=FAR,
)
class Int32Ids(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 3)

    def forward(self, ids):
        return self.table(ids), ids + 1


@model(
    "uint8 images, normalized",
    lambda height=4, width=5: (torch.randint(0, 256, (1, 3, height, width), dtype=torch.uint8),),
    points=[dict(height=1, width=1), dict(height=33, width=64)],
)
def image_bytes(self, x):
    y = x.float() / 255
    return (y - y.mean((2, 3), keepdim=True)) / (y.std((2, 3), keepdim=True, correction=0) + 1e-5), (
        y * 255
    ).round().to(torch.uint8)


@model("complex numbers inside, real outside", flat, far=FAR)
def complex_inside(self, x):
    z = torch.polar(x.abs() + 0.1, x)
    return (z * z.conj()).real, torch.view_as_real(z * z)


@model(
    "a scalar tensor input without axes scales",
    lambda batch=3: dict(x=torch.randn(batch), scale=torch.tensor(2.0)),
    far={"batch": (1, 300)},
    rare={
        "zero": lambda batch=3: dict(x=torch.randn(batch), scale=torch.tensor(0.0)),
        "negative": lambda batch=3: dict(x=torch.randn(batch), scale=torch.tensor(-3.0)),
    },
)
def scalar_tensor(self, x, scale):
    return x * scale, torch.where(scale > 0, x, -x)


@model("the module writes into its own input", flat, far=FAR)
def writes_input(self, x):
    x.mul_(2)
    x[:, 0] = 1
    return x.sum(1)


@model("two names for one tensor: in-place through an alias", flat, far=FAR)
def aliases(self, x):
    y = x.clone()
    z = y.view(-1)
    z += 1
    y[:, -1] = 0
    return y, z


@model("shared and tied weights", lambda batch=2, seq=4: (torch.randint(0, 7, (batch, seq)),), far=FAR)
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids):
        return self.head(self.table(ids))


@model("hooks change the answer", flat, far=FAR)
class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Softmax(1)
        self.inner.register_forward_hook(lambda module, args, out: out * out.shape[1])
        self.inner.register_forward_pre_hook(lambda module, args: (args[0] * 2,))

    def forward(self, x):
        return self.inner(x)


@model("a method is chosen by name", flat, far=FAR)
class Chosen(nn.Module):
    def by_sum(self, x):
        return x.sum(1)

    def by_mean(self, x):
        return x.mean(1)

    def forward(self, x):
        return getattr(self, f"by_{'sum' if x.shape[1] % 2 else 'mean'}")(x)


@dataclass
class Settings:
    width: int = 4
    limit: int = 300


@model("settings in a dataclass: beyond the limit it is another formula", flat, far={"seq": (299, 300, 301, 600)})
class Configured(nn.Module):
    def __init__(self):
        super().__init__()
        self.settings = Settings()

    def forward(self, x):
        scale = 1.0 if x.shape[1] <= self.settings.limit else self.settings.limit / x.shape[1]
        return x * scale


@model("weight norm and spectral norm", lambda batch=2: (torch.randn(batch, 4),), far={"batch": (1, 300)})
class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
        self.two = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2))

    def forward(self, x):
        return self.two(self.one(x))


@model(
    "four outputs whose sizes are different functions of one dim",
    lambda n=5: (torch.randn(n),),
    far={"n": (1, 2, 3, 4, 255, 256, 257)},
)
def four_lengths(self, x):
    return x[::2], x[1::2], F.pad(x, (0, x.shape[0] % 3)), x.repeat(2)[: x.shape[0] + 1]


@model(
    "a list of outputs that is as long as a dim: the number of outputs would vary",
    lambda n=3: (torch.randn(n, 2),),
    true_refusal=True,
    far={"n": (1, 2, 4)},
)
def varying_outputs(self, x):
    return list(x.unbind(0))


@model(
    "the rank of the output follows a size",
    lambda batch=3, seq=4: (torch.randn(batch, seq),),
    true_refusal=True,
    points=[dict(batch=1, seq=1), dict(batch=1, seq=4)],
)
def varying_rank(self, x):
    return x.squeeze(0)


@model(
    "the dtype of the output follows a size",
    lambda batch=3, seq=4: (torch.randn(batch, seq),),
    true_refusal=True,
    points=[dict(seq=5), dict(seq=300)],
)
def varying_dtype(self, x):
    return x.long() if x.shape[1] % 5 == 0 else x
