"""Branches, regions and loops: rare sizes, relations between dims, early returns, recursion, exceptions, sentinels."""

from __future__ import annotations

import contextlib
import itertools

import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("regions")


def steps(batch=2, seq=5):
    return (torch.randn(batch, seq, 3),)


def image(batch=2, height=6, width=8):
    return (torch.randn(batch, 3, height, width),)


def two(batch=2, query=4, key=7):
    return torch.randn(batch, query, 4), torch.randn(batch, key, 4)


def three(a=3, b=4, c=6):
    return torch.randn(a, 2), torch.randn(b, 2), torch.randn(c, 2)


@model(
    "Collatz: the number of turns of a while loop is not a formula of the size",
    steps,
    where=["1 <= seq <= 64"],
    far={"seq": (1, 2, 6, 7, 9, 27, 31, 41, 54, 55, 63, 64)},
    unproved=True,
)
def collatz(self, x):
    n, turns = x.shape[1], 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        turns += 1
    return x + turns


@model(
    "the sizes of three inputs sorted: who is the middle one",
    three,
    points=(
        {"a": 5, "b": 5, "c": 5},
        {"a": 9, "b": 4, "c": 6},
        {"a": 5, "b": 9, "c": 7},
        {"a": 7, "b": 7, "c": 2},
        {"a": 2, "b": 9, "c": 9},
        {"a": 8, "b": 3, "c": 8},
    ),
)
def middle_by_length(self, x, y, z):
    short, middle, long = sorted((x, y, z), key=len)
    return short.sum(0) + 2 * middle.mean(0) - 3 * long.sum(0)


@model(
    "numpy is tried first; where a tracer has no memory to show, the except branch takes a constant",
    two,
    far={"query": (1, 5, 8), "key": (1, 6, 20)},
)
def try_numpy(self, q, k):
    try:
        longest = int(max(q.numpy().shape[1], k.detach().numpy().shape[1]))
    except Exception:
        longest = 7
    return q.sum(1) / longest - k.sum(1)


@model(
    "a Pythagorean triple of sizes is special",
    three,
    points=(
        {"a": 3, "b": 4, "c": 5},
        {"a": 5, "b": 12, "c": 13},
        {"a": 6, "b": 8, "c": 10},
        {"a": 8, "b": 6, "c": 10},
        {"a": 3, "b": 4, "c": 6},
        {"a": 4, "b": 4, "c": 4},
    ),
)
def pythagoras(self, x, y, z):
    out = x.sum(0) + y.sum(0) + z.sum(0)
    if len(x) ** 2 + len(y) ** 2 == len(z) ** 2:
        return -out
    return out


@model(
    "a recursion that halves: odd halves are handled apart, one element ends it",
    steps,
    where=["1 <= seq <= 40"],
    far={"seq": (1, 2, 3, 4, 8, 15, 16, 17, 31, 32, 33, 40)},
)
class RecursiveTree(nn.Module):
    def __init__(self):
        super().__init__()
        self.merge = nn.Linear(6, 3)

    def reduce(self, x):
        n = x.shape[1]
        if n == 1:
            return x[:, 0]
        left, right = self.reduce(x[:, : n // 2]), self.reduce(x[:, n // 2 :])
        return torch.tanh(self.merge(torch.cat([left, right], -1)))

    def forward(self, x):
        return self.reduce(x)


@model(
    "a view that raises at odd lengths is caught: the except branch answers", steps, far={"seq": (4, 9, 10, 11, 64, 65)}
)
def try_view(self, x):
    try:
        return x.view(x.shape[0], -1, 2, 3).sum(2)
    except RuntimeError:
        return x[:, ::2] * 2


@model(
    "indexing past the end is caught as IndexError: lengths below twelve take the last row",
    steps,
    far={"seq": (10, 11, 12, 13, 40)},
)
def try_index(self, x):
    try:
        anchor = x[:, 11]
    except IndexError:
        anchor = x[:, -1] * 0.5
    return x - anchor[:, None]


@model(
    "broadcast of a learned table of 7 rows, suppressed where it does not fit",
    steps,
    far={"seq": (1, 6, 7, 8, 14)},
    points=({"batch": 7, "seq": 7},),
)
class SuppressedBroadcast(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(7, 3))

    def forward(self, x):
        out = x
        with contextlib.suppress(RuntimeError):
            out = x + self.table
        return out.mean(1)


@model(
    "match on the shape: sizes one, equal sizes, multiples, and a wildcard",
    image,
    points=(
        {"height": 1, "width": 1},
        {"height": 5, "width": 5},
        {"height": 1, "width": 9},
        {"height": 16, "width": 32},
        {"height": 32, "width": 16},
        {"batch": 1, "height": 4, "width": 8},
    ),
)
def match_shape(self, x):
    match tuple(x.shape):
        case (1, _, h, w):
            return x.mean((2, 3)) + h - w
        case (_, _, 1, 1):
            return x.flatten(1)
        case (_, _, h, w) if h == w:
            return x.diagonal(dim1=2, dim2=3).sum(-1)
        case (_, _, 1, w) | (_, _, w, 1):
            return x.sum((2, 3)) / w
        case (n, *_, (16 | 32) as w):
            return x.amax((2, 3)) * (w / n)
        case _:
            return x.amin((2, 3))


@model(
    "all() over sizes that are divisible by four, any() over those that are prime",
    image,
    points=(
        {"height": 8, "width": 12},
        {"height": 8, "width": 13},
        {"batch": 4, "height": 8, "width": 8},
        {"batch": 9, "height": 9, "width": 15},
        {"batch": 4, "height": 25, "width": 49},
    ),
)
def all_and_any(self, x):
    sizes = (x.shape[0], x.shape[2], x.shape[3])
    if all(size % 4 == 0 for size in sizes[1:]):
        x = F.avg_pool2d(x, 4)
    if any(size > 1 and all(size % d for d in range(2, size)) for size in sizes):
        x = x * 2 + 1
    return x.sum((2, 3))


@model(
    "a generator with early close: takes windows until their lengths exceed a budget",
    steps,
    where=["1 <= seq <= 64"],
    far={"seq": (1, 2, 3, 6, 7, 10, 11, 28, 29, 55, 56, 64)},
)
def triangular_windows(self, x):
    def windows():
        start = 0
        for width in itertools.count(1):
            if start + width > x.shape[1]:
                return
            yield x[:, start : start + width]
            start += width

    out = x.new_zeros(x.shape[0], 3)
    for weight, part in enumerate(windows(), 1):
        out = out + part.mean(1) / weight
    return out


@model(
    "for-else: the smallest divisor that is no factor of two, else the whole length",
    steps,
    where=["1 <= seq <= 66"],
    far={"seq": (2, 9, 15, 25, 27, 31, 35, 49, 61, 63, 64, 66)},
)
def for_else_divisor(self, x):
    n = x.shape[1]
    for d in range(3, n, 2):
        if n % d == 0:
            y = x.unflatten(1, (d, n // d)).mean(1)
            break
    else:
        y = x.flip(1)
        d = 0
    return y.amax(1) + d


@model(
    "a broad except swallows what a tracer raises at a value, and the fallback answers in its place",
    steps,
    rare={
        "negative": lambda batch=2, seq=5: (-torch.ones(batch, seq, 3),),
        "zeros": lambda batch=2, seq=5: (torch.zeros(batch, seq, 3),),
        "ones": lambda batch=2, seq=5: (torch.ones(batch, seq, 3),),
    },
    far={"seq": (1, 2, 9, 30)},
    unproved=True,
)
def swallowing(self, x):
    try:
        if x.mean() > 0:
            return x.cumsum(1)
        return x.flip(1)
    except Exception:
        return x * 0


@model(
    "squeeze() changes the rank at size one, and the softmax axis with it",
    two,
    points=(
        {"batch": 1},
        {"query": 1},
        {"key": 1},
        {"batch": 1, "query": 1},
        {"batch": 1, "query": 1, "key": 1},
        {"batch": 3, "query": 1, "key": 1},
    ),
)
def squeezed_scores(self, q, k):
    scores = (q @ k.mT).squeeze()
    weights = scores.softmax(0) if scores.dim() else scores
    return weights.sum() + weights.reshape(-1)[:1]


@model(
    "causal unless one query, offset when keys are longer, cut when they are shorter",
    two,
    far={"query": (1, 6, 7, 8, 9), "key": (1, 3, 4, 5)},
    points=({"query": 1, "key": 1}, {"query": 5, "key": 5}, {"query": 10, "key": 3}),
)
def causal_regions(self, q, k):
    n, m = q.shape[1], k.shape[1]
    scores = q @ k.transpose(1, 2)
    if n > m:
        scores = scores[:, n - m :]
    elif n > 1:
        scores = scores.masked_fill(torch.ones(n, m, dtype=torch.bool).triu(m - n + 1), -1e9)
    return scores.softmax(-1) @ k


@model(
    "an interval with a hole: sizes 20..23 take the slow path inside of 10..40, except multiples of 11",
    steps,
    far={"seq": (9, 10, 11, 19, 20, 21, 22, 23, 24, 33, 39, 40, 41, 44)},
)
def interval_with_hole(self, x):
    n = x.shape[1]
    if 10 <= n <= 40 and not 20 <= n < 24 and n % 11:
        return x.cumsum(1)
    if n in range(20, 24):
        return x.cumsum(1) * 2
    return x.flip(1).cumsum(1)


@model(
    "a path only for exporters: what runs under tracing is not what eager answers at odd lengths",
    steps,
    far={"seq": (1, 2, 3, 8, 9, 64, 65)},
)
def exporters_path(self, x):
    tracing = torch.jit.is_tracing() or torch.compiler.is_compiling() or torch.onnx.is_in_onnx_export()
    if tracing or isinstance(x.shape[1], torch.SymInt):
        return x[:, : x.shape[1] // 2 * 2].unflatten(1, (-1, 2)).sum(2)
    odd = x.shape[1] % 2
    return F.pad(x, (0, 0, 0, odd)).unflatten(1, (-1, 2)).sum(2)


@model(
    "a while loop pops a worklist of slices; long ones are split in three",
    steps,
    where=["1 <= seq <= 50"],
    far={"seq": (1, 4, 5, 12, 13, 14, 15, 36, 37, 45, 50)},
)
def worklist(self, x):
    work, out = [x], []
    while work:
        part = work.pop()
        if part.shape[1] > 4:
            work.extend(part.chunk(3, 1))
        else:
            out.append(part.sum(1) * (len(out) + 1))
    return torch.stack(out).sum(0)


@model(
    "chunk(4) gives fewer than four chunks at some lengths; unpacking the first and the last",
    steps,
    far={"seq": (1, 2, 3, 4, 5, 6, 8, 9, 10, 13, 16, 17)},
)
def fewer_chunks(self, x):
    first, *rest = x.chunk(4, dim=1)
    last = rest[-1] if rest else first
    return first.sum(1) + last.mean(1) + len(rest)


@model(
    "zip of two batches stops at the shorter; zip(strict=True) is tried first",
    two,
    where=["1 <= query <= 40", "1 <= key <= 40"],
    far={"query": (1, 6, 7, 8), "key": (3, 4, 5)},
    points=({"query": 6, "key": 6}, {"query": 1, "key": 1}, {"query": 20, "key": 3}),
)
def zip_strict(self, q, k):
    rows, columns = q.unbind(1), k.unbind(1)
    try:
        pairs = list(zip(rows, columns, strict=True))
        scale = 1.0
    except ValueError:
        pairs = list(zip(rows, columns))
        scale = -1.0
    return scale * torch.stack([a * b for a, b in pairs]).sum(0)


@model(
    "one length in the declared range is refused, and only its text tells which",
    steps,
    where=["1 <= seq <= 64"],
    far={"seq": (1, 52, 54, 63, 64)},
    true_refusal=True,
    unproved=True,
)
def refuses_one_text(self, x):
    assert str(x.shape[1]) not in {"53", "530"}, "this length is reserved"
    return x.cumsum(1)


@model(
    "exceptions raised by the module itself carry a size to the handler two frames up",
    steps,
    far={"seq": (8, 9, 10, 17, 18, 27, 30)},
)
class RaisedSize(nn.Module):
    def inner(self, x):
        if x.shape[1] % 9 == 0:
            raise LookupError(x.shape[1] // 9)
        return x.sum(1)

    def outer(self, x):
        try:
            return self.inner(x)
        finally:
            self.last = None

    def forward(self, x):
        try:
            return self.outer(x)
        except LookupError as error:
            (ninth,) = error.args
            return x[:, ninth - 1] * ninth


@model(
    "a loop over a window whose body skips the multiples of the batch",
    steps,
    where=["1 <= seq <= 40", "1 <= batch <= 8"],
    far={"seq": (1, 6, 12, 13, 40), "batch": (1, 3, 5, 8)},
    points=({"batch": 5, "seq": 30}, {"batch": 7, "seq": 6}),
)
def skipping_loop(self, x):
    state = x.new_zeros(x.shape[0], 3)
    for t in range(x.shape[1]):
        if t % x.shape[0] == 0:
            continue
        state = torch.tanh(state * 0.5 + x[:, t])
        if t > 30:
            break
    return state


@model(
    "a branch on the sum of values where python compares: NaN takes neither branch",
    steps,
    rare={
        "nan": lambda batch=2, seq=5: (torch.full((batch, seq, 3), float("nan")),),
        "zeros": lambda batch=2, seq=5: (torch.zeros(batch, seq, 3),),
        "large": lambda batch=2, seq=5: (torch.full((batch, seq, 3), 9.0),),
    },
    far={"seq": (1, 20)},
    unproved=True,
)
def value_branch(self, x):
    total = float(x.sum())
    if total > 4:
        return x / total
    if total <= 4:
        return x + x.shape[1]
    return torch.nan_to_num(x) - 1


@model(
    "a Python loop bound by a value and a size together",
    lambda batch=2, seq=6: (torch.randn(batch, seq, 3), torch.randint(1, seq + 1, (batch,))),
    far={"seq": (1, 2, 9, 20)},
    rare={
        "ones": lambda batch=2, seq=6: (torch.randn(batch, seq, 3), torch.ones(batch, dtype=torch.int64)),
        "full": lambda batch=2, seq=6: (torch.randn(batch, seq, 3), torch.full((batch,), seq)),
    },
    where=["1 <= seq <= 24"],
    unproved=True,
)
def until_longest(self, x, lengths):
    out = torch.zeros_like(x[:, 0])
    for t in range(int(lengths.max())):
        out = torch.where((t < lengths)[:, None], torch.tanh(out + x[:, t]), out)
    return out
