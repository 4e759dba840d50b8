"""At least ten models for each of the eight causes for which 0.1.0 kept files that are wrong.

The traps lie outside of what 0.1.0 tries: steps beyond 256, masks that are true in part, zeros in one of two inputs,
calls in a row, random states, thresholds in lengths, negative numbers in tensors, products beyond 64 bits.
"""

# ruff: noqa: C408
from __future__ import annotations

import json
import math
import random
from collections import deque
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from registry import Registry
from torch import nn

model = Registry()


def steps(batch=3, seq=5):
    return (torch.randn(batch, seq, 4),)


def flat(batch=3, seq=5):
    return (torch.randn(batch, seq),)


BEYOND = {"seq": (255, 256, 257, 258, 280, 299, 300, 301, 320, 333, 350, 384, 399, 400, 401, 450, 512, 599, 600)}
UP_TO_600 = ["1 <= seq <= 600"]

# --- 1: loops over more than 256 steps -------------------------------------------------------------------------------

with model.theme("1 loops"):

    @model("the weight of a step stops growing after step 320", steps, where=UP_TO_600, far=BEYOND, unproved=True)
    def loop_ramp_ends(self, x):
        total = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            total = total + x[:, t] * min(1.0, t / 320)
        return total

    @model("the running sum is cleared once, at step 270", steps, where=UP_TO_600, far=BEYOND, unproved=True)
    def loop_reset_once(self, x):
        total = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            if t == 270:
                total = total * 0
            total = total * 0.9 + x[:, t]
        return total

    @model("the cell changes after step 300: tanh, then relu", steps, where=UP_TO_600, far=BEYOND, unproved=True)
    class LoopTwoCells(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            h = torch.zeros_like(x[:, 0])
            for t in range(x.shape[1]):
                h = torch.tanh(self.first(x[:, t]) + h) if t < 300 else torch.relu(self.second(x[:, t]) + 0.5 * h)
            return h

    @model("a while loop ends at 333 whatever the length is", steps, where=UP_TO_600, far=BEYOND, unproved=True)
    def loop_while_capped(self, x):
        h, t = x[:, 0], 1
        while t < x.shape[1] and t < 333:
            h = 0.5 * h + x[:, t]
            t += 1
        return h

    @model("every 260th step is normalized", steps, where=UP_TO_600, far=BEYOND, unproved=True)
    def loop_normalize_rarely(self, x):
        h = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            h = h + x[:, t]
            if t % 260 == 259:
                h = h / (1 + h.norm(dim=-1, keepdim=True))
        return h

    @model("outputs of later steps are cut to 290 entries", steps, where=UP_TO_600, far=BEYOND, unproved=True)
    def loop_list_of_last(self, x):
        kept, h = [], torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            h = torch.tanh(h + x[:, t])
            kept.append(h)
        return torch.stack(kept[-290:], 1).sum(1)

    @model("the rate falls in stairs of 265 steps", steps, where=UP_TO_600, far=BEYOND, unproved=True)
    def loop_stairs(self, x):
        h = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            h = h + x[:, t] * 0.5 ** (t // 265)
        return h

    @model("position ids are capped at 310", steps, where=UP_TO_600, far=BEYOND, unproved=True)
    class LoopCappedPosition(nn.Module):
        def __init__(self):
            super().__init__()
            self.position = nn.Embedding(311, 4)

        def forward(self, x):
            h = torch.zeros_like(x[:, 0])
            for t in range(x.shape[1]):
                h = torch.tanh(h + x[:, t] + self.position.weight[min(t, 310)])
            return h

    @model("a long lag: step t also reads step t - 280", steps, where=UP_TO_600, far=BEYOND, unproved=True)
    def loop_long_lag(self, x):
        h = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            h = 0.9 * h + x[:, t]
            if t >= 280:
                h = h - 0.5 * x[:, t - 280]
        return h

    @model("a warm-up of 290 steps leaves the state as it is", steps, where=UP_TO_600, far=BEYOND, unproved=True)
    def loop_warm_up(self, x):
        mean = x[:, 0]
        for t in range(1, x.shape[1]):
            rate = 1 / t if t < 290 else 0.01
            mean = mean + rate * (x[:, t] - mean)
        return mean

    @model("steps after 275 only, so that nothing happens before", steps, where=UP_TO_600, far=BEYOND, unproved=True)
    def loop_late_start(self, x):
        h = x[:, 0]
        for t in range(x.shape[1]):
            if t <= 275:
                h = h + 0.1 * x[:, t]
            else:
                h = h * 0.7 - x[:, t]
        return h

    @model("temperature is linear, then flat beyond step 400", steps, where=UP_TO_600, far=BEYOND, unproved=True)
    def loop_temperature(self, x):
        h = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            temperature = max(0.2, 1.0 - 0.002 * t)
            h = h + torch.softmax(x[:, t] / temperature, -1)
        return h / x.shape[1]

    @model("the order of reading turns round after 300 steps", steps, where=UP_TO_600, far=BEYOND, unproved=True)
    def loop_break_late(self, x):
        h = torch.zeros_like(x[:, 0])
        for t, step in enumerate(x.unbind(1)):
            h = torch.sin(h + step)
            if t == 300:
                break
        return h


# --- 2: masks that are true in part ----------------------------------------------------------------------------------


def padded(batch=3, seq=5):
    return dict(x=torch.randn(batch, seq, 8), mask=torch.zeros(batch, seq, dtype=torch.bool))


def padded_by_lengths(batch=3, seq=5):
    keep = torch.randint(1, seq + 1, (batch, 1))
    return dict(x=torch.randn(batch, seq, 8), mask=torch.arange(seq) >= keep)


def padded_at_front(batch=3, seq=5):
    skip = torch.randint(0, seq, (batch, 1))
    return dict(x=torch.randn(batch, seq, 8), mask=torch.arange(seq) < skip)


def one_padded(batch=3, seq=5):
    mask = torch.zeros(batch, seq, dtype=torch.bool)
    mask[-1, 1:] = True
    return dict(x=torch.randn(batch, seq, 8), mask=mask)


MASKS = {"by lengths": padded_by_lengths, "front": padded_at_front, "one row": one_padded}


def attended(batch=3, seq=5):
    return dict(x=torch.randn(batch, seq, 8), mask=torch.ones(batch, seq, dtype=torch.bool))


def attended_by_lengths(batch=3, seq=5):
    keep = torch.randint(1, seq + 1, (batch, 1))
    return dict(x=torch.randn(batch, seq, 8), mask=torch.arange(seq) < keep)


def attended_holes(batch=3, seq=5):
    mask = torch.rand(batch, seq) < 0.6
    mask[:, 0] = True
    return dict(x=torch.randn(batch, seq, 8), mask=mask)


ATTENDED = {"by lengths": attended_by_lengths, "holes": attended_holes}


def layer(**options):
    return nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **options)


with model.theme("2 masks"):

    @model("one encoder layer: padded rows answer by the fast path", padded, rare=MASKS)
    class MaskOneLayer(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer()

        def forward(self, x, mask):
            return self.layer(x, src_key_padding_mask=mask)

    @model("a tagger: encoder, then a head for every position", padded, rare=MASKS)
    class MaskTagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.TransformerEncoder(layer(activation="gelu"), 2)
            self.head = nn.Linear(8, 3)

        def forward(self, x, mask):
            return self.head(self.encoder(x, src_key_padding_mask=mask))

    @model("the mask is given as attended positions and inverted", attended, rare=ATTENDED)
    class MaskInverted(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.TransformerEncoder(layer(), 1)

        def forward(self, x, mask):
            return self.encoder(x, src_key_padding_mask=~mask).mean(1)

    @model("the longest row decides: padding in all rows shortens the encoder's output", padded, rare=MASKS)
    class MaskLastState(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.TransformerEncoder(layer(norm_first=False), 2)

        def forward(self, x, mask):
            return self.encoder(x, src_key_padding_mask=mask)[:, -1]

    @model("the maximum over positions sees the padded ones", padded, rare=MASKS)
    class MaskMaximum(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.TransformerEncoder(layer(), 2, norm=nn.LayerNorm(8))

        def forward(self, x, mask):
            return self.encoder(x, src_key_padding_mask=mask).amax(1)

    @model(
        "int mask, compared with zero in forward",
        lambda batch=3, seq=5: dict(x=torch.randn(batch, seq, 8), mask=torch.ones(batch, seq, dtype=torch.int64)),
        rare={
            "by lengths": lambda batch=3, seq=5: dict(
                x=torch.randn(batch, seq, 8), mask=(torch.arange(seq) < torch.randint(1, seq + 1, (batch, 1))).long()
            )
        },
    )
    class MaskIntegers(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.TransformerEncoder(layer(), 1)

        def forward(self, x, mask):
            return self.encoder(x, src_key_padding_mask=mask == 0).sum(1)

    @model(
        "source and target masks, encoder and decoder",
        lambda batch=3, source=5, target=4: dict(
            x=torch.randn(batch, source, 8),
            y=torch.randn(batch, target, 8),
            mask=torch.zeros(batch, source, dtype=torch.bool),
        ),
        rare={
            "by lengths": lambda batch=3, source=5, target=4: dict(
                x=torch.randn(batch, source, 8),
                y=torch.randn(batch, target, 8),
                mask=torch.arange(source) >= torch.randint(1, source + 1, (batch, 1)),
            )
        },
    )
    class MaskTranslator(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.TransformerEncoder(layer(), 1)
            self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 1)

        def forward(self, x, y, mask):
            memory = self.encoder(x, src_key_padding_mask=mask)
            return self.decoder(y, memory, memory_key_padding_mask=mask), memory

    @model("two encoders share a mask; the second reads what the first left at padded places", padded, rare=MASKS)
    class MaskTwoEncoders(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.TransformerEncoder(layer(), 1)
            self.second = nn.TransformerEncoder(layer(), 1)

        def forward(self, x, mask):
            return self.second(self.first(x, src_key_padding_mask=mask) + 1.0)

    @model("gating: all padded or none padded take short cuts, part padded does not", attended, rare=ATTENDED)
    class MaskShortCuts(nn.Module):
        def __init__(self):
            super().__init__()
            self.score = nn.Linear(8, 1)

        def forward(self, x, mask):
            if mask.all():
                return x.mean(1)
            if not mask.any():
                return x[:, 0] * 0
            score = self.score(x)[..., 0].masked_fill(~mask, -1e9)
            return (torch.softmax(score, -1)[..., None] * x).sum(1)

    @model(
        "encoder inside a residual, mask from a float input",
        lambda batch=3, seq=5: dict(x=torch.randn(batch, seq, 8), keep=torch.ones(batch, seq)),
        rare={
            "by lengths": lambda batch=3, seq=5: dict(
                x=torch.randn(batch, seq, 8), keep=(torch.arange(seq) < torch.randint(1, seq + 1, (batch, 1))).float()
            )
        },
    )
    class MaskFromFloats(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.TransformerEncoder(layer(), 1)

        def forward(self, x, keep):
            return x + self.encoder(x, src_key_padding_mask=keep < 0.5)

    @model("classifier token in front: the mask grows by one column", padded, rare=MASKS)
    class MaskClassToken(nn.Module):
        def __init__(self):
            super().__init__()
            self.token = nn.Parameter(torch.randn(1, 1, 8))
            self.encoder = nn.TransformerEncoder(layer(), 2)

        def forward(self, x, mask):
            x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
            mask = torch.cat([mask.new_zeros(mask.shape[0], 1), mask], 1)
            return self.encoder(x, src_key_padding_mask=mask)

    @model(
        "nn.Transformer as a whole, three masks",
        lambda batch=2, source=5, target=4: dict(
            x=torch.randn(batch, source, 8),
            y=torch.randn(batch, target, 8),
            x_mask=torch.zeros(batch, source, dtype=torch.bool),
            y_mask=torch.zeros(batch, target, dtype=torch.bool),
        ),
        rare={
            "by lengths": lambda batch=2, source=5, target=4: dict(
                x=torch.randn(batch, source, 8),
                y=torch.randn(batch, target, 8),
                x_mask=torch.arange(source) >= torch.randint(1, source + 1, (batch, 1)),
                y_mask=torch.arange(target) >= torch.randint(1, target + 1, (batch, 1)),
            )
        },
    )
    class MaskWholeTransformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)

        def forward(self, x, y, x_mask, y_mask):
            return self.body(
                x, y, src_key_padding_mask=x_mask, tgt_key_padding_mask=y_mask, memory_key_padding_mask=x_mask
            )


# --- 3: zeros and signs in one of two inputs -------------------------------------------------------------------------


def pair(batch=3, seq=5):
    return dict(y=torch.randn(batch, seq), x=torch.randn(batch, seq))


def on_axes(batch=3, seq=5):
    points = torch.tensor([[0.0, -1.0], [-0.0, -1.0], [-1.0, -0.0], [1.0, 0.0], [0.0, 2.0], [-3.0, 0.0], [-2.0, -2.0]])
    picked = points[torch.randint(0, len(points), (batch, seq))]
    return dict(y=picked[..., 0].clone(), x=picked[..., 1].clone())


AXES = {"on axes": on_axes}


def vectors(batch=3, seq=5):
    return (torch.randn(batch, seq, 3),)


def unit_vectors(batch=3, seq=5):
    corners = torch.tensor([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0], [0, -1.0, 0], [0, 0, 1.0], [-1.0, -0.0, 0]])
    return (corners[torch.randint(0, len(corners), (batch, seq))],)


UNITS = {"along axes": unit_vectors}

with model.theme("3 signs"):

    @model("heading of a path that moves along an axis", vectors, rare=UNITS, where=["seq >= 2"])
    def sign_heading(self, x):
        moved = x[:, 1:] - x[:, :-1]
        return torch.atan2(moved[..., 1], moved[..., 0])

    @model("polar coordinates of points on the negative axis", pair, rare=AXES)
    def sign_polar(self, y, x):
        return torch.hypot(x, y), torch.atan2(y, x)

    @model("turning angle between neighbours, wrapped", pair, rare=AXES)
    def sign_bearing(self, y, x):
        bearing = torch.rad2deg(torch.atan2(y, x))
        return torch.remainder(bearing + 360, 360)

    @model("eight orientation bins from gradients that vanish along an axis", pair, rare=AXES)
    def sign_bins(self, y, x):
        angle = torch.atan2(y, x)
        return torch.floor((angle + math.pi) / (math.pi / 4) + 0.5).clamp(0, 8).long()

    @model("angle of a complex number built from two inputs", pair, rare=AXES)
    def sign_complex_angle(self, y, x):
        return torch.angle(torch.complex(x, y))

    @model("angle of a real number: pi for negatives, 0 for the rest", pair, rare=AXES)
    def sign_real_angle(self, y, x):
        return torch.angle(y) + 0 * x

    @model(
        "roll and yaw from a quaternion with zeros",
        lambda batch=3: (torch.randn(batch, 4),),
        rare={
            "half turns": lambda batch=3: (
                torch.tensor([[0.0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])[torch.randint(0, 3, (batch,))],
            )
        },
    )
    def sign_quaternion(self, q):
        w, x, y, z = q.unbind(-1)
        roll = torch.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
        yaw = torch.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
        return torch.stack([roll, yaw], -1)

    @model(
        "hue of a colour: two channels equal",
        lambda batch=2, n=5: (torch.rand(batch, n, 3),),
        rare={"greys": lambda batch=2, n=5: (torch.randint(0, 2, (batch, n, 3)).float(),)},
    )
    def sign_hue(self, rgb):
        r, g, b = rgb.unbind(-1)
        return torch.atan2(math.sqrt(3) * (g - b), 2 * r - g - b)

    @model(
        "phase of a spectrum whose first bin is real and negative",
        flat,
        rare={"constant": lambda batch=3, seq=5: (-torch.ones(batch, seq),)},
    )
    def sign_phase(self, x):
        real, imaginary = x.cumsum(1), x.flip(1) - x
        return torch.atan2(imaginary, real)

    @model("sign taken from a zero of either sign", pair, rare=AXES)
    def sign_copysign(self, y, x):
        return torch.copysign(torch.ones_like(x), y) * (1 + x.abs())

    @model("spherical coordinates at the poles and along axes", vectors, rare=UNITS)
    def sign_spherical(self, v):
        x, y, z = v.unbind(-1)
        return torch.stack([torch.atan2(y, x), torch.atan2(torch.sqrt(x * x + y * y), z)], -1)

    @model("difference of two headings, each by atan2", pair, rare=AXES)
    def sign_turn(self, y, x):
        return (torch.atan2(y, x) - torch.atan2(x, y)).mean(1)

    @model("relative pose: the angle of a swapped pair decides a gate", pair, rare=AXES)
    def sign_gate(self, y, x):
        return torch.where(torch.atan2(y, -x) > 1.5, y * 2, x)


# --- 4: state --------------------------------------------------------------------------------------------------------

_CALLS = {"count": 0, "last": 1.0}


def _reset_calls():
    _CALLS.update(count=0, last=1.0)


with model.theme("4 state"):

    @model("moving average in a buffer, read before it is written", steps, true_refusal=True)
    class StateAverage(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("average", torch.zeros(4))

        def forward(self, x):
            answer = x - self.average
            self.average = 0.9 * self.average + 0.1 * x.mean((0, 1))
            return answer

    @model("in-place update of a buffer", steps, true_refusal=True)
    class StateInPlace(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.ones(4))

        def forward(self, x):
            self.seen.mul_(0.5).add_(x.abs().amax((0, 1)))
            return x / self.seen

    @model("the last frame is kept in an attribute", steps, true_refusal=True)
    class StateLastFrame(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = torch.zeros(1, 4)

        def forward(self, x):
            before, self.last = self.last, x[-1:, -1].detach()
            return torch.cumsum(x, 1) + before

    @model("a list that grows with every call", steps, true_refusal=True)
    class StateHistory(nn.Module):
        def __init__(self):
            super().__init__()
            self.history: list[Any] = []

        def forward(self, x):
            self.history.append(x.mean((0, 1)))
            return x + torch.stack(self.history).sum(0)

    @model("every second call takes the other layer", steps, true_refusal=True)
    class StateAlternates(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
            self.calls = 0

        def forward(self, x):
            chosen = self.layers[self.calls % 2]
            self.calls += 1
            return chosen(x)

    @model("a counter in a dictionary of the file", steps, true_refusal=True, reset=_reset_calls)
    def state_global(self, x):
        _CALLS["count"] += 1
        return x * (1 + 0.1 * _CALLS["count"])

    def _closure():
        count = 0

        class StateClosure(nn.Module):
            def forward(self, x):
                nonlocal count
                count += 1
                return x / count

        return StateClosure()

    @model("a counter in a closure", steps, true_refusal=True)
    class StateClosure(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = _closure()

        def forward(self, x):
            return self.inner(x).tanh()

    @model(
        "streaming convolution keeps the last two steps",
        lambda seq=5: (torch.randn(1, 4, seq),),
        where=["seq >= 2"],
        true_refusal=True,
    )
    class StateStreaming(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv1d(4, 4, 3)
            self.register_buffer("context", torch.zeros(1, 4, 2), persistent=False)

        def forward(self, x):
            x = torch.cat([self.context, x], -1)
            self.context = x[..., -2:].clone()
            return self.conv(x)

    @model("an iterator is advanced at each call", steps, true_refusal=True)
    class StateIterator(nn.Module):
        def __init__(self):
            super().__init__()
            self.rates = [0.5, 1.0, 2.0]
            self.place = -1

        def forward(self, x):
            self.place = (self.place + 1) % len(self.rates)
            return x * self.rates[self.place]

    @model("a queue of the last three answers", steps, true_refusal=True)
    class StateQueue(nn.Module):
        def __init__(self):
            super().__init__()
            self.queue = deque([0.0], maxlen=3)

        def forward(self, x):
            answer = x + float(sum(self.queue))
            self.queue.append(1.0)
            return answer

    @model("hidden state of a GRU cell between calls", lambda seq=5: (torch.randn(1, seq, 4),), true_refusal=True)
    class StateGru(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = nn.GRU(4, 4, batch_first=True)
            self.register_buffer("hidden", torch.zeros(1, 1, 4))

        def forward(self, x):
            answer, hidden = self.gru(x, self.hidden)
            self.hidden = hidden.detach()
            return answer

    @model("adaptive threshold: a parameter is changed through .data", steps, true_refusal=True)
    class StateParameter(nn.Module):
        def __init__(self):
            super().__init__()
            self.threshold = nn.Parameter(torch.zeros(4), requires_grad=False)

        def forward(self, x):
            self.threshold.data.add_(0.25)
            return torch.relu(x - self.threshold)

    @model("numpy array as memory", steps, true_refusal=True)
    class StateNumpy(nn.Module):
        def __init__(self):
            super().__init__()
            self.memory = np.ones(4, dtype=np.float32)

        def forward(self, x):
            self.memory *= 0.5
            return x * torch.from_numpy(self.memory.copy())


# --- 5: randomness ---------------------------------------------------------------------------------------------------

with model.theme("5 randomness"):

    @model("jitter by Python's random", steps, true_refusal=True)
    def random_jitter(self, x):
        return x * (1 + 0.1 * random.uniform(-1, 1))

    @model("one of two paths by a coin", steps, true_refusal=True)
    class RandomPath(nn.Module):
        def __init__(self):
            super().__init__()
            self.paths = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])

        def forward(self, x):
            return random.choice(list(self.paths))(x)

    @model("channels in an order by numpy", steps, true_refusal=True)
    def random_channel_order(self, x):
        return x[..., np.random.permutation(4).tolist()]

    @model("noise from numpy of the width", steps, true_refusal=True)
    def random_numpy_noise(self, x):
        return x + torch.from_numpy(np.random.normal(size=4).astype(np.float32))

    @model("a numpy generator that is made anew in each call", steps, true_refusal=True)
    def random_default_rng(self, x):
        return x + float(np.random.default_rng().uniform())

    @model("layers are shuffled", steps, true_refusal=True)
    class RandomShuffle(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Tanh(), nn.LayerNorm(4)])

        def forward(self, x):
            order = list(self.layers)
            random.shuffle(order)
            for one in order:
                x = one(x)
            return x

    @model("stochastic depth with numpy's binomial", steps, true_refusal=True)
    class RandomDepth(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

        def forward(self, x):
            for one in self.layers:
                x = x + one(x) * np.random.binomial(1, 0.5)
            return x

    @model("mixture weight by random.betavariate", steps, true_refusal=True)
    def random_mixup(self, x):
        weight = random.betavariate(0.5, 0.5)
        return weight * x + (1 - weight) * x.flip(1)

    @model("random crop length, then a mean", steps, where=["seq >= 2"], true_refusal=True)
    def random_gauss_weights(self, x):
        weights = torch.tensor([random.gauss(0, 1) for _ in range(4)])
        return x @ weights

    @model("torch's own scalar noise", steps, true_refusal=True)
    def random_torch_scalar(self, x):
        return x * torch.rand(())

    @model("a table drawn with numpy at each call", steps, true_refusal=True)
    def random_numpy_table(self, x):
        table = np.random.rand(4, 4).astype("float32")
        return x @ torch.as_tensor(table)

    @model("dropout that is always on", steps, true_refusal=True)
    def random_dropout(self, x):
        return F.dropout(x, 0.5, training=True)

    @model("an index by torch.randint and .item()", steps, true_refusal=True)
    def random_item(self, x):
        return x * torch.randint(1, 6, ()).item()


# --- 6: functions of the length that change beyond what is tried -----------------------------------------------------

THRESHOLDS = {
    "seq": (
        300,
        301,
        400,
        401,
        500,
        511,
        512,
        513,
        600,
        601,
        700,
        701,
        800,
        900,
        901,
        999,
        1000,
        1001,
        1200,
        1500,
        1800,
        2000,
        2047,
        2048,
        3000,
        4000,
        4096,
    )
}


def many(batch=2, seq=7):
    return (torch.randn(batch, seq),)


with model.theme("6 tables"):

    @model(
        "a factor for every length in a numpy table, kept as floats: half from 600 on",
        many,
        far=THRESHOLDS,
        unproved=True,
    )
    class TableOfFactors(nn.Module):
        def __init__(self):
            super().__init__()
            self.factors = np.ones(10_000)
            self.factors[600:] = 0.5
            self.kept: dict[int, float] = {}

        def forward(self, x):
            n = x.shape[1]
            if n not in self.kept:
                self.kept[n] = float(self.factors[n])
            return x * self.kept[n]

    @model("settings as text, looked up once for each length", many, far=THRESHOLDS, unproved=True)
    class TableText(nn.Module):
        settings = "650:0.5,1350:0.25"

        def __init__(self):
            super().__init__()
            self.kept: dict[str, float] = {}

        def find(self, n):
            found = [float(part.split(":")[1]) for part in self.settings.split(",") if n >= int(part.split(":")[0])]
            return found[-1] if found else 1.0

        def forward(self, x):
            key = f"length {x.shape[1]}"
            if key not in self.kept:
                self.kept[key] = self.find(int(key.split()[1]))
            return x * self.kept[key]

    @model("the number of digits, at least three: four from 1000 on", many, far=THRESHOLDS, unproved=True)
    def table_digits(self, x):
        return x * len(f"{x.shape[1]:03d}")

    @model("three thirds up to 320, one and a half beyond: looks like a ceiling", many, far=THRESHOLDS, unproved=True)
    class TableHalved(nn.Module):
        def __init__(self):
            super().__init__()
            self.kept: dict[int, float] = {}

        def forward(self, x):
            n = x.shape[1]
            if n not in self.kept:
                self.kept[n] = 3.0 if n <= 320 else 1.5
            return x * self.kept[n]

    @model("a window kept by length: what lies behind 640 counts a tenth", many, far=THRESHOLDS, unproved=True)
    class TableWindow(nn.Module):
        def __init__(self):
            super().__init__()
            self.reach = 640
            self.windows: dict[int, torch.Tensor] = {}

        def forward(self, x):
            n = x.shape[1]
            if n not in self.windows:
                self.windows[n] = torch.tensor([1.0 if i < self.reach else 0.1 for i in range(n)])
            return x * self.windows[n]

    @model("steps are counted by Python, and the count is capped", many, far=THRESHOLDS, unproved=True)
    class TableCounted(nn.Module):
        def __init__(self):
            super().__init__()
            self.most = 750

        def forward(self, x):
            count = len(list(x.unbind(1)))
            return x / min(count, self.most)

    @model("binary digits, at least ten: eleven from 1024 on", many, far=THRESHOLDS, unproved=True)
    def table_bits(self, x):
        return x + len(f"{x.shape[1]:b}".zfill(10))

    @model("two tiles beyond 384: looks like a ceiling of n / 384", many, far=THRESHOLDS, unproved=True)
    class TableTiles(nn.Module):
        def __init__(self):
            super().__init__()
            self.tiles: dict[int, int] = {}

        def forward(self, x):
            n = x.shape[1]
            if n not in self.tiles:
                self.tiles[n] = 1 if n <= 384 else 2
            return x * self.tiles[n]

    @model("one more beyond 450: looks like a floor of n / 451", many, far=THRESHOLDS, unproved=True)
    class TableOffset(nn.Module):
        def __init__(self):
            super().__init__()
            self.kept: dict[str, int] = {}

        def forward(self, x):
            key = str(x.shape[1])
            if key not in self.kept:
                self.kept[key] = int(int(key) > 450)
            return x + self.kept[key]

    @model("a quarter beyond a budget of bytes: the limit is a square root", many, far=THRESHOLDS, unproved=True)
    class TableBudget(nn.Module):
        def __init__(self):
            super().__init__()
            self.budget = "4e6"

        def forward(self, x):
            n = int(str(x.shape[1]))
            return x if 4 * n * n <= float(self.budget) else x * 0.25

    @model("settings as JSON text", many, far=THRESHOLDS, unproved=True)
    class TableJson(nn.Module):
        settings = '{"short": {"until": 620, "gain": 1.0}, "long": {"until": 99999, "gain": 0.3}}'

        def forward(self, x):
            n = int(str(x.shape[1]))
            return x * next(row["gain"] for row in json.loads(self.settings).values() if n <= row["until"])

    @model("as many blocks as names, 128 each; what is longer is damped", many, far=THRESHOLDS, unproved=True)
    class TableNames(nn.Module):
        names = "stem low mid high top head"

        def forward(self, x):
            key = f"{x.shape[1]}"
            return x if int(key) <= 128 * len(self.names.split()) else x * 0.125

    @model("a version string holds the limit", many, far=THRESHOLDS, unproved=True)
    class TableVersion(nn.Module):
        version = "v2-len777-r1"

        def forward(self, x):
            limit = int(self.version.split("len")[1].split("-")[0])
            n = int(f"{x.shape[1]}")
            return torch.where(torch.tensor(n > limit), -x, x)


# --- 7: numbers asked of tensors -------------------------------------------------------------------------------------


def with_number(batch=3, seq=6):
    return dict(x=torch.randn(batch, seq), k=torch.tensor(2))


def number(value):
    return lambda batch=3, seq=6: dict(x=torch.randn(batch, seq), k=torch.tensor(value))


NUMBERS = {str(value): number(value) for value in (-1, -3, 0, 1, -7, 5)}
LARGE = NUMBERS | {str(value): number(value) for value in (10**10, -(10**10), 2**40 + 1)}

with model.theme("7 numbers"):

    @model("a shift that may be negative: roll", with_number, rare=NUMBERS)
    def number_roll(self, x, k):
        return torch.roll(x, int(k), 1)

    @model("a factor from an integer tensor, negative or large", with_number, rare=LARGE)
    def number_factor(self, x, k):
        return x * int(k)

    @model("negative numbers take another branch", with_number, rare=NUMBERS, where=["seq >= 6"])
    def number_branch(self, x, k):
        n = int(k)
        return x.flip(1) * n if n < 0 else x[:, n:].sum(1, keepdim=True) + x

    @model("floor division and remainder of a negative number by Python's rules", with_number, rare=LARGE)
    def number_divided(self, x, k):
        n = k.item()
        return x + n // 4 + (n % 3) * 10

    @model("a slice from the back where the number is negative", with_number, rare=NUMBERS, where=["seq >= 6"])
    def number_slice(self, x, k):
        return x[:, int(k) :].sum(1)

    @model("a loop over range(k): none where k is negative", with_number, rare=NUMBERS)
    def number_loop(self, x, k):
        for _ in range(int(k)):
            x = torch.tanh(x) + 0.1
        return x

    @model("diagonal offset of either sign", with_number, rare=NUMBERS)
    def number_diagonal(self, x, k):
        return torch.tril(x[:, :, None] * x[:, None, :], diagonal=int(k)).sum(-1)

    @model("the number is clamped by Python before use as a length", with_number, rare=NUMBERS)
    def number_clamped(self, x, k):
        n = max(0, min(int(k), x.shape[1]))
        return x[:, :n].sum(1) + n

    @model("absolute value and sign by Python", with_number, rare=LARGE)
    def number_absolute(self, x, k):
        n = int(k)
        return x * abs(n) - (1 if n > 0 else -1 if n < 0 else 0)

    @model("a constant tensor filled with the number", with_number, rare=LARGE)
    def number_filled(self, x, k):
        return x + torch.full((x.shape[1],), k.item(), dtype=torch.float32)

    @model("threshold: clamp at a whole number", with_number, rare=LARGE)
    def number_clamp_at(self, x, k):
        return (x * 3).clamp(max=int(k))

    @model(
        "number computed from values: the rounded sum, of either sign",
        flat,
        rare={
            "negative": lambda batch=3, seq=5: (-torch.rand(batch, seq) - 1,),
            "zero": lambda batch=3, seq=5: (torch.zeros(batch, seq),),
        },
    )
    def number_of_sum(self, x):
        n = int(x.sum())
        return x + n

    @model("padding on the side that the sign picks", with_number, rare=NUMBERS)
    def number_pad(self, x, k):
        n = int(k)
        return F.pad(x, (n, 0)) if n >= 0 else F.pad(x, (0, -n))

    @model("a start offset for positions, negative or large", with_number, rare=LARGE)
    def number_positions(self, x, k):
        return x + torch.arange(int(k), int(k) + x.shape[1])


# --- 8: arithmetic on sizes beyond 64 bits ---------------------------------------------------------------------------

WIDE = {"seq": (200, 300, 500, 700, 1000, 1500, 1999, 2000, 2500, 3001, 4000, 4095, 4096, 5000)}

with model.theme("8 overflow"):

    @model("sixth power, then a remainder", flat, far=WIDE)
    def overflow_power(self, x):
        n = x.shape[1]
        cube = n * n * n
        return x + cube * cube // 10 % 7

    @model("binomial coefficient by products", flat, far=WIDE)
    def overflow_binomial(self, x):
        n = x.shape[1]
        return x * (n * (n + 1) * (n + 2) * (n + 3) * (n + 4) * (n + 5) * (n + 6) // 5040 % 11)

    @model("a hash of the length by a large prime", flat, far=WIDE)
    def overflow_hash(self, x):
        n = x.shape[1]
        return x + (n * 2654435761 * (n + 40503) * 97) % 101

    @model("a congruential generator, two rounds", flat, far=WIDE)
    def overflow_congruential(self, x):
        n = x.shape[1]
        n = n * 6364136223846793 + 1442695040888963407
        return x + n % 5

    @model("quotient of a sixth and a third power", flat, far=WIDE)
    def overflow_ratio(self, x):
        n = x.shape[1]
        return x * ((n * n * n * n * n * n * 3 + n) // (n * n * n + 7) % 29)

    @model("a length from a quotient of large products", flat, far=WIDE)
    def overflow_length(self, x):
        n = x.shape[1]
        length = n * n * n * n * n * n // (n * n * n * n * n + 2)
        return x[:, :length]

    @model(
        "product of two dims to the fourth",
        lambda rows=3, columns=5: (torch.randn(rows, columns),),
        points=[dict(rows=a, columns=b) for a, b in ((300, 200), (256, 256), (500, 301), (1000, 1000), (64, 2000))],
    )
    def overflow_two_dims(self, x):
        rows, columns = x.shape
        return x + (rows * columns) ** 4 % 9

    @model("a polynomial of degree six as a checksum", flat, far=WIDE)
    def overflow_checksum(self, x):
        n = x.shape[1]
        return x * ((n * n * n * (n * n * n + 5) * 2 + 3 * n * n + 1) % 17)

    @model("fixed point: a product with a constant of 53 bits", flat, far=WIDE)
    def overflow_fixed_point(self, x):
        n = x.shape[1]
        return x * ((n * 5_000_000_000_000_029) % 7919)

    @model("declared range whose end overflows", flat, far=WIDE, where=["1 <= seq <= 5000"])
    def overflow_declared(self, x):
        n = x.shape[1]
        return x + (n * n * n * n * n * n // 1000) % 19

    @model("comparison of products: which of two is larger", flat, far=WIDE)
    def overflow_compare(self, x):
        n = x.shape[1]
        return x * 2 if n**6 > 10**6 * n**2 else x - 1

    @model(
        "offset by a factorial-like product of shifted sizes",
        lambda a=3, b=4: (torch.randn(a), torch.randn(b)),
        points=[dict(a=a, b=b) for a, b in ((2000, 3000), (4000, 100), (3000, 2999), (1000, 1000), (5000, 5000))],
    )
    def overflow_tied(self, u, v):
        a, b = u.shape[0], v.shape[0]
        return u.sum() + v.sum() + (a * a * b * b * (a + b) * (a + b)) % 23
