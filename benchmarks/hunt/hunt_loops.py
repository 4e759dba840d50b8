"""Python loops over sizes and over values: what a step does changes with its number, beyond what is tried."""

# ruff: noqa: C408
from __future__ import annotations

import math
from functools import reduce

import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry("loops")


def steps(batch=2, seq=5):
    return (torch.randn(batch, seq, 3),)


def flat(batch=2, seq=6):
    return (torch.randn(batch, seq),)


def two(batch=2, left=4, right=5):
    return (torch.randn(batch, left, 3), torch.randn(batch, right, 3))


FAR = {"seq": (99, 100, 101, 127, 128, 129, 255, 256, 257, 300, 364, 365, 366, 499, 500, 501, 640)}
TO_700 = ["1 <= seq <= 700"]


@model("the step size halves at step 365", steps, where=TO_700, far=FAR, unproved=True)
def halves_after_a_year(self, x):
    h = x[:, 0]
    for t in range(1, x.shape[1]):
        h = h + (x[:, t] - h) * (0.5 if t < 365 else 0.25)
    return h


@model(
    "leap steps: every 4th, not every 100th, but every 400th",
    steps,
    where=TO_700,
    far=FAR | {"seq": (100, 101, 200, 400, 401, 402, 640)},
    unproved=True,
)
def leap_steps(self, x):
    h = torch.zeros_like(x[:, 0])
    for t in range(x.shape[1]):
        leap = t % 4 == 0 and (t % 100 != 0 or t % 400 == 0)
        h = h * 0.95 + x[:, t] * (2.0 if leap else 1.0)
    return h


@model("steps that are squares are taken twice: the gaps grow without end", steps, where=TO_700, far=FAR, unproved=True)
def square_steps(self, x):
    h = torch.zeros_like(x[:, 0])
    for t in range(x.shape[1]):
        h = 0.9 * h + x[:, t] * (2.0 if math.isqrt(t) ** 2 == t else 1.0)
    return h


@model("binary carry: the number of trailing zeros of t is the layer", steps, where=TO_700, far=FAR, unproved=True)
class CarryLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.rates = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]

    def forward(self, x):
        h = torch.zeros_like(x[:, 0])
        for t in range(1, x.shape[1] + 1):
            level = (t & -t).bit_length() - 1
            h = h * self.rates[min(level, 8)] + x[:, t - 1]
        return h


@model(
    "two loops, the second as long as the first is not",
    two,
    where=["left + right <= 400"],
    points=[dict(left=1, right=399), dict(left=300, right=100), dict(left=17, right=300)],
    unproved=True,
)
def alternating_pair(self, a, b):
    h = torch.zeros_like(a[:, 0])
    for i in range(a.shape[1]):
        h = torch.tanh(h + a[:, i])
    for j in range(b.shape[1]):
        h = torch.tanh(h - b[:, j])
    return h


@model(
    "nested loops over both sequences with a diagonal case",
    two,
    where=["left <= 12", "right <= 12"],
    points=[dict(left=12, right=1), dict(left=1, right=12), dict(left=12, right=12), dict(left=7, right=11)],
    unproved=True,
)
def nested_diagonal(self, a, b):
    total = torch.zeros_like(a[:, 0])
    for i in range(a.shape[1]):
        for j in range(b.shape[1]):
            total = total + a[:, i] * b[:, j] * (2.0 if i == j else 1.0)
    return total


@model(
    "zip stops at the shorter of two sequences", two, far={"left": (1, 3, 6, 40), "right": (1, 4, 41)}, unproved=True
)
def zip_shortest(self, a, b):
    h = torch.zeros_like(a[:, 0])
    for one, other in zip(a.unbind(1), b.unbind(1), strict=False):
        h = torch.tanh(h + one * other)
    return h


@model("the loop runs from the back, and its first step is special", steps, far=FAR, unproved=True)
def backwards(self, x):
    h = torch.zeros_like(x[:, 0])
    for t in range(x.shape[1] - 1, -1, -1):
        h = 0.8 * h + (x[:, t] ** 2 if t == x.shape[1] - 1 else x[:, t])
    return h


@model(
    "stride three, and a remainder that is handled after the loop", steps, where=["seq >= 3"], far=FAR, unproved=True
)
def stride_three(self, x):
    n, h = x.shape[1], torch.zeros_like(x[:, 0])
    for t in range(0, n - n % 3, 3):
        h = torch.tanh(h + x[:, t] - x[:, t + 2])
    for t in range(n - n % 3, n):
        h = h + x[:, t]
    return h


@model("chunks of 100: the last is shorter, and its mean counts as much", steps, where=TO_700, far=FAR, unproved=True)
def chunk_means(self, x):
    parts = [part.mean(1) for part in x.split(100, 1)]
    return torch.stack(parts, 1).mean(1)


@model(
    "pairs are merged until one is left: log2(n) rounds, odd ones carried over",
    flat,
    where=["1 <= seq <= 600"],
    far=FAR,
    unproved=True,
)
def tournament(self, x):
    while x.shape[1] > 1:
        odd = x[:, -1:] if x.shape[1] % 2 else x[:, :0]
        even = x[:, : x.shape[1] // 2 * 2]
        x = torch.cat([torch.tanh(even[:, ::2] + 0.5 * even[:, 1::2]), odd], 1)
    return x


@model(
    "Fibonacci steps: reads t, t-1, t-2, t-3, t-5, t-8, ... while they last",
    steps,
    where=TO_700,
    far=FAR,
    unproved=True,
)
def fibonacci_lags(self, x):
    total, a, b = x[:, -1], 1, 2
    while a < x.shape[1]:
        total = total + x[:, x.shape[1] - 1 - a] / a
        a, b = b, a + b
    return total


@model(
    "Collatz: the number of rounds is a wild function of the length",
    flat,
    where=["1 <= seq <= 700"],
    far={"seq": (27, 97, 255, 256, 257, 313, 327, 649)},
    unproved=True,
)
def collatz(self, x):
    n = x.shape[1]
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        x = torch.sin(x + 0.1)
    return x


@model(
    "Euclid on two sizes: the greatest common divisor scales",
    lambda rows=4, columns=6: (torch.randn(rows, columns),),
    points=[dict(rows=a, columns=b) for a, b in ((21, 34), (89, 144), (120, 120), (360, 24), (1, 7), (512, 384))],
    unproved=True,
)
def greatest_common_divisor(self, x):
    a, b = x.shape
    while b:
        a, b = b, a % b
    return x * a


@model(
    "prime factors of the length",
    flat,
    where=["2 <= seq <= 700"],
    far={"seq": (2, 64, 97, 121, 210, 361, 510, 529, 613)},
    unproved=True,
)
def prime_factors(self, x):
    n, factor, total = x.shape[1], 2, 0
    while n > 1:
        while n % factor == 0:
            total, n = total + factor, n // factor
        factor += 1
    return x + total


@model("a loop that appends and pops: a stack machine of depth two", steps, far=FAR, where=TO_700, unproved=True)
def stack_machine(self, x):
    stack = [x[:, 0]]
    for t in range(1, x.shape[1]):
        stack.append(x[:, t])
        if len(stack) == 3:
            top = stack.pop()
            stack.append(torch.tanh(top + stack.pop()))
    return stack[-1] + stack[0]


@model("history of exactly ten steps feeds back", steps, where=TO_700, far={"seq": (9, 10, 11, 12, 300)}, unproved=True)
def ten_step_history(self, x):
    outputs = []
    for t in range(x.shape[1]):
        past = outputs[t - 10] if t >= 10 else torch.zeros_like(x[:, 0])
        outputs.append(torch.tanh(x[:, t] + past))
    return torch.stack(outputs, 1)


@model(
    "history of 90 steps feeds back",
    steps,
    where=["1 <= seq <= 300"],
    far={"seq": (89, 90, 91, 92, 181, 300)},
    unproved=True,
)
def ninety_step_history(self, x):
    outputs = []
    for t in range(x.shape[1]):
        past = outputs[t - 90] if t >= 90 else 0.0
        outputs.append(x[:, t] * 0.5 + past)
    return torch.stack(outputs, 1).sum(1)


@model("dictionary of sums by t % 7", steps, where=TO_700, far={"seq": (6, 7, 8, 13, 50, 365)}, unproved=True)
def weekday_sums(self, x):
    sums = {day: torch.zeros_like(x[:, 0]) for day in range(7)}
    for t in range(x.shape[1]):
        sums[t % 7] = sums[t % 7] + x[:, t]
    return torch.stack(list(sums.values()), 1)


@model(
    "month lengths: an irregular table drives the loop",
    steps,
    where=["1 <= seq <= 366"],
    far={"seq": (31, 32, 59, 60, 90, 91, 304, 334, 335, 365, 366)},
    unproved=True,
)
def month_weights(self, x):
    ends = [31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 366]
    h = torch.zeros_like(x[:, 0])
    for t in range(x.shape[1]):
        month = sum(t >= end for end in ends)
        h = 0.99 * h + x[:, t] * (1 + month)
    return h


@model("reduce with a lambda over unbound steps", steps, far=FAR, where=TO_700, unproved=True)
def reduced(self, x):
    return reduce(lambda h, step: torch.tanh(h + step) * 0.9, x.unbind(1))


@model("a comprehension with a condition on the index", steps, where=["2 <= seq <= 700"], far=FAR, unproved=True)
def odd_only(self, x):
    return torch.stack([x[:, t] * t for t in range(x.shape[1]) if t % 2], 1)


@model("a comprehension that keeps what is divisible by 6 or by 35", steps, where=TO_700, far=FAR, unproved=True)
def six_or_thirtyfive(self, x):
    return sum(x[:, t] for t in range(x.shape[1]) if t % 6 == 0 or t % 35 == 0)


@model("enumerate with a start, and an else of the loop", steps, where=TO_700, far=FAR, unproved=True)
def loop_else(self, x):
    h = torch.zeros_like(x[:, 0])
    for t, step in enumerate(x.unbind(1), start=1):
        h = h + step / t
        if t >= 500:
            break
    else:
        h = h * 2
    return h


@model(
    "continue: steps 128 to 191 are left out",
    steps,
    where=TO_700,
    far={"seq": (127, 128, 129, 191, 192, 193, 300)},
    unproved=True,
)
def blackout(self, x):
    h = torch.zeros_like(x[:, 0])
    for t in range(x.shape[1]):
        if 128 <= t < 192:
            continue
        h = torch.tanh(h * 0.9 + x[:, t])
    return h


@model("weights are written into a tensor step by step", flat, where=TO_700, far=FAR, unproved=True)
def written_in_place(self, x):
    out = torch.zeros_like(x)
    for t in range(x.shape[1]):
        out[:, t] = x[:, t] * (t + 1) if t == 0 else out[:, t - 1] * 0.5 + x[:, t]
    return out


@model(
    "in-place scaling of every tenth column from column 300 on",
    flat,
    where=TO_700,
    far={"seq": (300, 301, 302, 310, 311, 400)},
    unproved=True,
)
def late_in_place(self, x):
    out = x.clone()
    for t in range(300, x.shape[1], 10):
        out[:, t] = out[:, t] * 3
    return out


@model("the loop's length is half of the size, rounded up", steps, where=TO_700, far=FAR, unproved=True)
def half_loop(self, x):
    h = torch.zeros_like(x[:, 0])
    for t in range((x.shape[1] + 1) // 2):
        h = torch.tanh(h + x[:, t] + x[:, -1 - t])
    return h


@model(
    "the loop runs over the product of two sizes",
    lambda rows=2, columns=3: (torch.randn(rows, columns),),
    where=["rows * columns <= 60"],
    points=[dict(rows=1, columns=60), dict(rows=6, columns=10), dict(rows=59, columns=1)],
    unproved=True,
)
def product_loop(self, x):
    h = x.new_zeros(())
    values = x.flatten()
    for t in range(values.shape[0]):
        h = torch.tanh(h * 0.9 + values[t])
    return h


@model(
    "sqrt(n) rounds",
    flat,
    where=TO_700,
    far={"seq": (15, 16, 17, 24, 25, 255, 256, 257, 288, 289, 290, 676)},
    unproved=True,
)
def square_root_rounds(self, x):
    for _ in range(int(math.sqrt(x.shape[1]))):
        x = torch.cos(x)
    return x


@model(
    "log2(n) rounds of pointer jumping",
    flat,
    where=TO_700,
    far={"seq": (63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513)},
    unproved=True,
)
def prefix_doubling(self, x):
    shift = 1
    while shift < x.shape[1]:
        x = x + F.pad(x, (shift, 0))[:, : x.shape[1]]
        shift *= 2
    return x


@model(
    "a dilated stack whose depth follows the length",
    lambda seq=9: (torch.randn(1, 2, seq),),
    where=["1 <= seq <= 600"],
    far={"seq": (8, 9, 26, 27, 28, 80, 81, 82, 243, 244, 600)},
    unproved=True,
)
class DilatedStack(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 3)

    def forward(self, x):
        dilation = 1
        while dilation <= x.shape[-1]:
            y = F.conv1d(x, self.conv.weight, self.conv.bias, padding=dilation, dilation=dilation)
            x = x + torch.tanh(y)
            dilation *= 3
        return x


@model(
    "U-shaped: as many levels as the size can be halved",
    lambda seq=8: (torch.randn(1, 2, seq),),
    where=["1 <= seq <= 600"],
    far={"seq": (16, 32, 48, 96, 256, 384, 512, 511)},
    unproved=True,
)
def as_deep_as_even(self, x):
    level = 0
    while x.shape[-1] % 2 == 0 and level < 9:
        x = F.avg_pool1d(x, 2)
        level += 1
    return x * (level + 1)


@model(
    "early exit by value inside a loop over time",
    flat,
    where=["1 <= seq <= 40"],
    far={"seq": (1, 2, 39, 40)},
    rare={
        "large": lambda batch=2, seq=6: (10 * torch.ones(batch, seq),),
        "negative": lambda batch=2, seq=6: (-10 * torch.ones(batch, seq),),
    },
    unproved=True,
)
def exit_by_value(self, x):
    total = x.new_zeros(())
    for t in range(x.shape[1]):
        total = total + x[:, t].sum()
        if total > 5:
            break
    return total


@model(
    "iterate until it converges: the number of rounds follows the values",
    flat,
    rare={
        "zeros": lambda batch=2, seq=6: (torch.zeros(batch, seq),),
        "huge": lambda batch=2, seq=6: (1e6 * torch.rand(batch, seq),),
    },
    unproved=True,
)
def until_converged(self, x):
    scale = x.abs().max()
    rounds = 0
    while scale > 1e-2 and rounds < 60:
        x, scale = x * 0.5, scale * 0.5
        rounds += 1
    return x + rounds


@model(
    "power iteration with as many rounds as an input says; none is legal",
    lambda n=4: (torch.rand(n, n), torch.tensor(3)),
    rare={
        "none": lambda n=4: (torch.rand(n, n), torch.tensor(0)),
        "many": lambda n=4: (torch.rand(n, n), torch.tensor(50)),
    },
    unproved=True,
)
def power_iteration(self, matrix, rounds):
    v = torch.ones(matrix.shape[0])
    for _ in range(int(rounds)):
        v = matrix @ v
        v = v / v.norm()
    return v


@model(
    "greedy decoding: stops at a token, at most 12 steps",
    lambda batch=2: (torch.randn(batch, 6),),
    rare={"stops at once": lambda batch=2: (torch.full((batch, 6), 5.0) * torch.tensor([0, 0, 0, 0, 0, 1.0]),)},
    unproved=True,
)
class Greedy(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(6, 6)

    def forward(self, logits):
        tokens = [logits.argmax(-1)]
        for _ in range(11):
            if bool((tokens[-1] == 5).all()):
                break
            logits = torch.tanh(logits + self.table(tokens[-1]))
            tokens.append(logits.argmax(-1))
        return torch.stack(tokens, 1)


@model(
    "two counters, one of which wraps at 260",
    steps,
    where=TO_700,
    far={"seq": (259, 260, 261, 519, 520, 521)},
    unproved=True,
)
def wrapping_counter(self, x):
    h, inner = torch.zeros_like(x[:, 0]), 0
    for t in range(x.shape[1]):
        h = h * 0.9 + x[:, t] * (1 + inner / 260)
        inner = 0 if inner == 259 else inner + 1
    return h


@model(
    "float accumulation in Python decides: 0.1 is added until it passes 30",
    steps,
    where=TO_700,
    far={"seq": (299, 300, 301, 302)},
    unproved=True,
)
def float_clock(self, x):
    h, clock = torch.zeros_like(x[:, 0]), 0.0
    for t in range(x.shape[1]):
        h = h + (x[:, t] if clock < 30 else -x[:, t])
        clock += 0.1
    return h


@model(
    "GRU cell unrolled by hand, learning stops after 270 steps",
    steps,
    where=TO_700,
    far={"seq": (270, 271, 272, 400)},
    unproved=True,
)
class HandGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 4)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], 4)
        outputs = []
        for t in range(x.shape[1]):
            if t < 271:
                h = self.cell(x[:, t], h)
            outputs.append(h)
        return torch.stack(outputs, 1)


@model(
    "LSTM cells stacked, the top one every other step",
    steps,
    where=["1 <= seq <= 300"],
    far={"seq": (1, 2, 3, 256, 257, 299)},
    unproved=True,
)
class SlowAndFast(nn.Module):
    def __init__(self):
        super().__init__()
        self.fast, self.slow = nn.LSTMCell(3, 3), nn.LSTMCell(3, 3)

    def forward(self, x):
        zero = x.new_zeros(x.shape[0], 3)
        fast, slow = (zero, zero), (zero, zero)
        for t in range(x.shape[1]):
            fast = self.fast(x[:, t], fast)
            if t % 2 == 1:
                slow = self.slow(fast[0], slow)
        return fast[0] + slow[0]


@model(
    "scheduled layers: layer t // 150 serves step t",
    steps,
    where=["1 <= seq <= 600"],
    far={"seq": (149, 150, 151, 300, 301, 451, 600)},
    unproved=True,
)
class ScheduledLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(4)])

    def forward(self, x):
        h = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            h = torch.tanh(self.layers[t // 150](x[:, t]) + 0.5 * h)
        return h


@model(
    "triangular sums: step t reads all steps before it",
    steps,
    where=["1 <= seq <= 40"],
    far={"seq": (1, 2, 39, 40)},
    unproved=True,
)
def triangular(self, x):
    return torch.stack([x[:, : t + 1].mean(1) for t in range(x.shape[1])], 1)


@model(
    "sliding window of 64 by slices that are shorter at the start",
    steps,
    where=["1 <= seq <= 300"],
    far={"seq": (63, 64, 65, 66, 128, 299)},
    unproved=True,
)
def sliding_window(self, x):
    return torch.stack([x[:, max(0, t - 63) : t + 1].amax(1) for t in range(x.shape[1])], 1)
