"""Under `h % 16 == 0` torch traces `h` as 16 times a symbol: conditions stay short, and hold where the rule does."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import anyshape
from anyshape.capture.symbolic import Traced, read_capture, trace_symbolically
from anyshape.inputs import declare


class Windows(nn.Module):
    """Four convolutions that halve a picture; windows of two or three positions, and padding up to them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*[nn.Conv2d(3 if not i else 4, 4, 3, stride=2, padding=1) for i in range(4)])

    def forward(self, x):
        y = self.layers(x)
        height, width = y.shape[-2:]
        window = 3 if min(height, width) > 3 else 2
        y = nn.functional.pad(y, (0, -width % window, 0, -height % window))
        return y.unfold(2, window, window).sum(-1), nn.functional.interpolate(y, scale_factor=16.0)


def pictures(batch=2, h=64, w=96):
    return torch.randn(batch, 3, h, w)


RULES = ["h % 16 == 0", "w % 16 == 0", "16 <= h <= 160", "16 <= w <= 160"]


def test_a_file_is_right_at_each_multiple(tmp_path) -> None:
    torch.manual_seed(0)
    module, path = Windows().eval(), tmp_path / "m.onnx"
    anyshape.export(module, pictures, path, where=RULES)
    load = anyshape.load(path)
    for h in range(16, 161, 16):
        for w in (16, 48, 64, 160):
            x = pictures(1, h, w)
            for given, expected in zip(load(x), module(x), strict=True):
                np.testing.assert_allclose(given.numpy(), expected.detach().numpy(), rtol=1e-3, atol=1e-4)


def traced(where):
    module = Windows().eval()
    declared = declare(module, pictures, where=where)
    found = trace_symbolically(module, declared, {"batch": 2, "h": 64, "w": 96})
    assert isinstance(found, Traced)
    return found, declared


def conditions(found, declared):
    captured = read_capture(found, found.program, declared, {"batch": 2, "h": 64, "w": 96})
    return {str(guard.condition): guard.status for guard in captured.regions[0].guards}


def test_conditions_are_about_the_other_symbol() -> None:
    found = conditions(*traced(RULES))
    assert found["min(h//16, w//16) > 3"] == "refuted"
    assert found["h % 16 == 0"] == "proved"
    assert not [text for text in found if "//2" in text]


def test_a_trace_with_a_multiple_does_not_hold_without_the_rule() -> None:
    found, _ = traced(RULES)
    _, wider = traced(["16 <= h <= 160", "w % 8 == 0", "16 <= w <= 160"])
    decided = conditions(found, wider)
    assert decided["h % 16 == 0"] == "refuted"
    assert decided["w % 16 == 0"] == "refuted"


@pytest.mark.parametrize("rule", ["h % 2 == 0", "h % 7 == 0", "h % 64 == 0"])
def test_a_multiple_that_torch_guards_again(rule, tmp_path) -> None:
    class Folded(nn.Module):
        def forward(self, x):
            batch, h = x.shape
            return x.view(batch, h // 2, 2).sum(-1) if h % 2 == 0 else x.cumsum(1)

    module, path = Folded(), tmp_path / "m.onnx"
    anyshape.export(module, lambda batch=3, h=448: torch.randn(batch, h), path, where=[rule, "h <= 896"])
    load, step = anyshape.load(path), int(rule.split()[2])
    for h in range(step, 897, step):
        x = torch.randn(2, h)
        np.testing.assert_allclose(load(x).numpy(), module(x).numpy(), rtol=1e-3, atol=1e-3)


class AtOneMultiple(nn.Module):
    """Goes another way where the height is exactly one multiple, and the width a rare one."""

    def forward(self, x):
        _, h, w = x.shape
        if h // 4 == 1 and w // 4 == 7:
            x = x + 1
        return x * 2


class BelowTwoMultiples(nn.Module):
    def forward(self, x):
        _, h, w = x.shape
        if h < 8 and w % 36 == 0:
            x = x + 1
        return x * 2 if min(h, w) > 8 else x.roll(1, 1)


@pytest.mark.parametrize("module", [AtOneMultiple(), BelowTwoMultiples()])
def test_a_size_of_one_multiple_is_a_size_like_any_other(module, tmp_path) -> None:
    path = tmp_path / "m.onnx"
    rules = ["h % 4 == 0", "w % 4 == 0", "h <= 100", "w <= 100", "batch <= 8"]
    result = anyshape.export(module, lambda batch=2, h=8, w=12: torch.randn(batch, h, w), path, where=rules)
    assert result.strategy == "symbolic"
    load = anyshape.load(path)
    for h in (4, 8, 12, 100):
        for w in range(4, 101, 4):
            x = torch.randn(1, h, w)
            np.testing.assert_allclose(load(x).numpy(), module(x).numpy(), rtol=1e-5)


def test_the_range_of_a_multiple_is_whole(tmp_path) -> None:
    found, declared = traced(RULES)
    assert not [text for text, status in conditions(found, declared).items() if "h >=" in text and status != "proved"]
    path = tmp_path / "m.onnx"

    class Halved(nn.Module):
        def forward(self, x):
            n = x.shape[0]
            return x * 2 if n > 8 else x.cumsum(0) if n % 16 == 0 else x

    anyshape.export(Halved(), lambda n=16: torch.randn(n, 3), path, where=["n % 8 == 0", "0 <= n <= 64"])
    load = anyshape.load(path)
    for n in range(0, 65, 8):
        x = torch.randn(n, 3)
        np.testing.assert_allclose(load(x).numpy(), Halved()(x).numpy(), rtol=1e-5)


class Patches(nn.Module):
    def forward(self, x):
        batch, h, w = x.shape
        patches = x.view(batch, h // 4, 4, w // 4, 4).transpose(2, 3)
        return patches.reshape(batch, h // 4 * (w // 4), 16)


def test_sizes_of_a_multiple_are_counted_by_the_axis_itself(tmp_path) -> None:
    rules = ["h % 4 == 0", "w % 4 == 0"]
    result = anyshape.export(Patches(), lambda b=2, h=8, w=12: torch.randn(b, h, w), tmp_path / "m.onnx", where=rules)
    assert not [finding for finding in result.findings if finding.code == "AS137"]
    assert [str(axis) for axis in result.contract.outputs[0].axes] == ["b", "h//4*(w//4)", "16"]
