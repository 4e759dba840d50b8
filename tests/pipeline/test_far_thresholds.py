"""Models that change their ways at far sizes: loops of more than 256 steps, and tables by length. All end right.

Each file is compared with eager below and above the number in the code, at multiples of it, and at the declared end.
"""

from __future__ import annotations

import copy

import onnxruntime
import pytest
import torch
from torch import nn

import anyshape


class Loop(nn.Module):
    """state = tanh(state + x[t] * weight(t))"""

    def weight(self, t: int) -> float:
        return 1.0

    def forward(self, x):
        state = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            state = torch.tanh(state + x[:, t] * self.weight(t))
        return state


class WarmUp(Loop):
    def weight(self, t):
        return min(0.9, (t + 1) / 300)


class Floor(Loop):
    def weight(self, t):
        return max(0.25, 0.9 - t * 0.0025)


class Flip(Loop):
    def weight(self, t):
        return 0.9 if t < 270 else -0.9


class LateRamp(Loop):
    def weight(self, t):
        return max(0, t - 260) * 0.01


class Divided(Loop):
    def weight(self, t):
        return 1 / max(1, t - 270)


class Capped(nn.Module):
    def forward(self, x):
        state = torch.zeros_like(x[:, 0])
        for t in range(min(int(x.shape[1]), 290)):
            state = torch.sin(state + x[:, t])
        return state


class StopsAt(nn.Module):
    def forward(self, x):
        state = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            if t == 280:
                break
            state = torch.sin(state + x[:, t])
        return state


class LateClamp(nn.Module):
    def forward(self, x):
        state = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            state = torch.add(x[:, t], state, alpha=0.9)
            if t >= 265:
                state = state.clamp(-0.5, 0.5)
        return state


class LastColumn(nn.Module):
    def forward(self, x):
        state = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            state = torch.add(x[:, min(t, 275)], state, alpha=0.9)
        return state


class Window(nn.Module):
    def forward(self, x):
        return torch.stack([x[:, max(0, t - 259) : t + 1].amax(dim=1) for t in range(x.shape[1])], 1)


class Table(nn.Module):
    """A number that is looked up by length, in a dict that grows."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[int, float] = {}

    def number(self, n: int) -> float:
        return 1.0

    def forward(self, x):
        n = int(x.shape[1])
        if n not in self.kept:
            self.kept[n] = self.number(n)
        return x * self.kept[n]


class Half(Table):
    def number(self, n):
        return 1.0 if n <= 300 else 0.5


class Third(Table):
    def number(self, n):
        return 1.0 if n < 400 else 1 / 3


class Shares(Table):
    def number(self, n):
        return 1 / (1 + n // 350)


class Rounded(Table):
    def number(self, n):
        return 1 / -(-n // 330)


class Grades(Table):
    def number(self, n):
        return {0: 1.0, 1: 2.0, 2: 5.0}.get(n // 310, 3.0)


class Root(Table):
    def number(self, n):
        return n**-0.5 if n > 320 else 0.125


class Cap(Table):
    def number(self, n):
        return min(n, 450) / 100


class Rest(Table):
    def number(self, n):
        return float(n % 270)


class Ramp(Table):
    def number(self, n):
        return max(0, n - 340) * 0.5


class Quarter(Table):
    def number(self, n):
        return 0.25 if n > 512 else 1.0


LOOPS = [WarmUp, Floor, Flip, LateRamp, Divided, Capped, StopsAt, LateClamp, LastColumn, Window]
TABLES = [Half, Third, Shares, Rounded, Grades, Root, Cap, Rest, Ramp, Quarter]


def inputs(batch=2, seq=5):
    return torch.randn(batch, seq)


def wrong_sizes(model: nn.Module, result: anyshape.Export, sizes: list[int]) -> list[int]:
    session = onnxruntime.InferenceSession(result.model_proto.SerializeToString(), providers=["CPUExecutionProvider"])
    wrong = []
    for seq in sizes:
        x = torch.randn(2, seq)
        expected = copy.deepcopy(model)(x)
        (actual,) = (torch.from_numpy(answer) for answer in session.run(None, {"x": x.numpy()}))
        if actual.shape != expected.shape or not torch.allclose(actual, expected, rtol=1e-3, atol=1e-4):
            wrong.append(seq)
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("kind", LOOPS, ids=lambda kind: kind.__name__)
@pytest.mark.long_table
def test_a_loop_that_changes_after_a_far_number_is_right_beyond_it(kind) -> None:
    model = kind().eval()
    result = anyshape.export(copy.deepcopy(model), inputs, where=["batch <= 3", "seq <= 620"])
    far = [1, 2, 7, 64, 255, 256, *range(257, 303, 3), 350, 419, 511, 540, 541, 600, 619, 620]
    assert wrong_sizes(model, result, far) == []


@pytest.mark.parametrize("kind", TABLES, ids=lambda kind: kind.__name__)
@pytest.mark.long_table
def test_a_number_looked_up_by_length_is_right_far_beyond_its_threshold(kind) -> None:
    model = kind().eval()
    result = anyshape.export(copy.deepcopy(model), inputs, where=["batch <= 3", "seq <= 3000"])
    near = [number + rest for number in (270, 300, 310, 320, 330, 340, 350, 400, 450, 512) for rest in (-1, 0, 1)]
    far = [
        factor * number + rest for number in (270, 300, 330, 350, 512) for factor in (2, 3, 5) for rest in (-1, 0, 1)
    ]
    assert wrong_sizes(model, result, [1, 2, 17, 128, *near, *far, 2999, 3000]) == []
