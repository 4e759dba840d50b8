"""A number that a model reads from a tensor is a number in the file: negative, zero or large, and never a length by itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import anyshape


def export(model: nn.Module, path, example: torch.Tensor) -> anyshape.Loaded:
    result = anyshape.export(model.eval(), lambda b=2, t=5: (torch.randn(b, t), example), path)
    assert not any(node.op_type == "ConstantOfShape" for node in result.model.graph.all_nodes())
    return anyshape.load(path)


def assert_same(model: nn.Module, loaded, *inputs: torch.Tensor) -> None:
    expected, actual = model(*inputs), loaded(*inputs)
    np.testing.assert_allclose(np.asarray(actual), expected.numpy(), rtol=1e-5, atol=1e-6)


class Wrapped(nn.Module):
    """A number from the end, handled by the code as Python handles it."""

    def forward(self, x, k):
        k = int(k)
        if k < 0:
            k += x.shape[1]
        return x[:, :k]


class Weighed(nn.Module):
    """A number as a factor, a modulus, a bound and a truth: it is never an index or a length."""

    def forward(self, x, k):
        k = k.item()
        steps = torch.arange(x.shape[1]) % (abs(k) + 1)
        return x * k + steps * (1 if k % 2 == 0 else -1) + min(k, x.shape[1]) / 2


class Window(nn.Module):
    """Two ends that follow from one number."""

    def forward(self, x, k):
        k = int(k)
        return x[:, k - 2 : k].sum(1)


class Picked(nn.Module):
    """A place that counts from the end where it is negative, of a number that is cut off towards zero."""

    def forward(self, x, place):
        return x[:, int(place)] * int(place)


def test_a_negative_number_that_the_code_handles(tmp_path) -> None:
    model = Wrapped()
    loaded = export(model, tmp_path / "m.onnx", torch.tensor(2))
    for k in (-9, -7, -3, -1, 0, 1, 6, 7, 12, 10**12):
        assert_same(model, loaded, torch.randn(3, 7), torch.tensor(k))


def test_a_number_that_is_only_computed_with_allocates_nothing(tmp_path) -> None:
    model = Weighed()
    loaded = export(model, tmp_path / "m.onnx", torch.tensor(2))
    for k in (-(10**12), -3, -2, -1, 0, 1, 2, 100, 10**12):
        assert_same(model, loaded, torch.randn(3, 7), torch.tensor(k))


def test_a_window_that_is_placed_by_a_number(tmp_path) -> None:
    model = Window()
    loaded = export(model, tmp_path / "m.onnx", torch.tensor(3))
    for k in (-20, -7, -1, 0, 1, 2, 5, 7, 8, 9, 1000):
        assert_same(model, loaded, torch.randn(3, 7), torch.tensor(k))


def test_a_float_is_cut_off_towards_zero_and_beyond_the_end_the_file_fails(tmp_path) -> None:
    model = Picked()
    loaded = export(model, tmp_path / "m.onnx", torch.tensor(0.5))
    for place in (-6.9, -1.5, -0.5, 0.0, 0.9, 3.2, 6.9):
        assert_same(model, loaded, torch.randn(3, 7), torch.tensor(place))
    for place in (-8.0, 7.0, float("nan")):
        with pytest.raises(anyshape.AnyshapeError):
            loaded(torch.randn(3, 7), torch.tensor(place))
