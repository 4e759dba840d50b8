"""State that usual values do not change, that comes back to its first value, or that lies outside the module."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import anyshape


class Peak(nn.Module):
    def __init__(self, start=20.0):
        super().__init__()
        self.amax = torch.tensor(start)

    def forward(self, x):
        self.amax = torch.maximum(self.amax, x.abs().max())
        return x / self.amax * 20


class PeakInPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("amax", torch.full((), 20.0))

    def forward(self, x):
        self.amax.copy_(torch.maximum(self.amax, x.abs().max()))
        return x / self.amax


class PeakAsFloat(nn.Module):
    """`max` gives the very object that was there before."""

    def __init__(self):
        super().__init__()
        self.peak = torch.full((1,), 1e6)

    def forward(self, x):
        torch.maximum(self.peak, x.abs().max(), out=self.peak)
        return x / self.peak * 1e6


class PeakInList(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {"peak": [torch.tensor(30.0)]}

    def forward(self, x):
        self.kept["peak"][0] = torch.maximum(self.kept["peak"][0], x.max())
        return x / self.kept["peak"][0]


class Toggle(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 0

    def forward(self, x):
        self.k = 1 - self.k
        return x + self.k


class ToggleInPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sign", torch.ones(()))

    def forward(self, x):
        self.sign.neg_()
        return x * self.sign


class RareFlag(nn.Module):
    """Nothing is written for usual values."""

    def __init__(self):
        super().__init__()
        self.limit = torch.tensor(50.0)

    def forward(self, x):
        if x.abs().max() > 50:
            self.limit = torch.tensor(1.0)
        return x.clamp(-self.limit, self.limit)


class KeywordDefault(nn.Module):
    def forward(self, x, *, seen={"calls": 0}):  # noqa: B006 - such a model
        seen["calls"] = 1 - seen["calls"]
        return x + seen["calls"]


class OfTheClass(nn.Module):
    turn = 0

    def forward(self, x):
        OfTheClass.turn = 1 - OfTheClass.turn
        return x + OfTheClass.turn


def closure():
    turn = 0

    class InClosure(nn.Module):
        def forward(self, x):
            nonlocal turn
            turn = 1 - turn
            return x + turn

    return InClosure()


MAKERS = (
    Peak,
    lambda: Peak(1e30),
    PeakInPlace,
    PeakAsFloat,
    PeakInList,
    Toggle,
    ToggleInPlace,
    RareFlag,
    KeywordDefault,
    OfTheClass,
    closure,
)


def inputs(n=5):
    return torch.randn(n, 4)


@pytest.mark.parametrize("make", MAKERS)
def test_such_state_is_refused_with_its_line(make, tmp_path) -> None:
    with pytest.raises(anyshape.PromiseBroken, match="AS143") as broken:
        anyshape.export(make(), inputs, tmp_path / "m.onnx")
    assert broken.value.finding.where is not None


@pytest.mark.parametrize("make", [Peak, lambda: Peak(500.0), PeakInPlace, Toggle, RareFlag, KeywordDefault])
def test_such_state_is_an_input_and_an_output_of_the_file(make, tmp_path) -> None:
    anyshape.export(make(), inputs, tmp_path / "m.onnx", state="outputs")
    module = make().eval()
    loaded = anyshape.load(tmp_path / "m.onnx")
    state = loaded.initial_state()
    assert len(state) == 1
    for factor in (1, 1000, 1, 1):
        x = inputs(6) * factor
        answers = loaded(x=x, state=state)
        torch.testing.assert_close(torch.as_tensor(answers["output"]), module(x))
        state = loaded.next_state(answers)


class Moved(nn.Module):
    """Sets what it has to itself in each call."""

    def __init__(self):
        super().__init__()
        self.scale = torch.tensor(3.0)
        self.least = 0.5

    def forward(self, x):
        self.scale = self.scale.to(x.device).clone()
        self.least = max(self.least, 1e-5)
        return x * self.scale + self.least


class Remembers(nn.Module):
    """A cache that is filled at each new length, and what was seen last, which nothing reads."""

    def __init__(self):
        super().__init__()
        self.length, self.mask, self.last = 0, None, None

    def forward(self, x):
        if self.length != x.shape[0]:
            self.length, self.mask = x.shape[0], torch.arange(float(x.shape[0]))[:, None]
        self.last = x.mean()
        return x + self.mask


@pytest.mark.parametrize("make", [Moved, Remembers])
def test_values_that_decide_nothing_are_no_state(make, tmp_path) -> None:
    result = anyshape.export(make(), inputs, tmp_path / "m.onnx")
    assert not [finding.code for finding in result.findings if finding.code in ("AS143", "AS146")]
