"""NaN, infinities, large halves and wrapped integers: a file answers for them as torch does."""

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import anyshape

INFINITY, NAN = float("inf"), float("nan")


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def _attend(x):
    hidden = torch.zeros(x.shape[0], x.shape[0], dtype=torch.bool)
    query = torch.ones_like(x)
    return nn.functional.scaled_dot_product_attention(query[None], query[None], x[None], attn_mask=hidden)


FUNCTIONS = {
    "clamp from below": lambda x: x.clamp(min=-1.0),
    "clamp from above": lambda x: x.clamp_max(1.0),
    "sign": torch.sign,
    "logsumexp": lambda x: torch.logsumexp(x, 0),
    "nan_to_num": torch.nan_to_num,
    "threshold": lambda x: nn.functional.threshold(x, 0.5, 0.0),
}


def _compare(module, example, x, path):
    anyshape.export(module, (example,), path, dynamic={"x": "n" if x.dim() == 1 else "n 4"})
    actual = onnxruntime.InferenceSession(path).run(None, {"x": x.numpy()})[0]
    np.testing.assert_allclose(actual, module(x).numpy(), rtol=1e-3)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nan_and_infinities(name, tmp_path):
    x = torch.tensor([INFINITY, -INFINITY, NAN, 1.0, 0.2])
    for part in (x, x[:1], x[1:2], x[3:]):
        _compare(Function(FUNCTIONS[name]), torch.rand(4), part, tmp_path / "m.onnx")


def test_logsumexp_of_large_halves(tmp_path):
    x = torch.full((5,), 24064.0, dtype=torch.float16)
    _compare(Function(FUNCTIONS["logsumexp"]), torch.rand(4).half(), x, tmp_path / "m.onnx")


def test_a_row_that_sees_no_key_is_nan_where_a_value_is(tmp_path):
    x = torch.rand(5, 4)
    x[2, 1] = NAN
    _compare(Function(_attend), torch.rand(3, 4), x, tmp_path / "m.onnx")


def test_a_counter_of_32_bits_wraps_around(tmp_path):
    def mask(x):
        counted = torch.arange(x.shape[0], dtype=torch.int32) + (2**31 - 1 - 6000)
        return torch.where(counted >= 0, x, x * 2)

    _compare(Function(mask), torch.rand(4), torch.rand(6010), tmp_path / "m.onnx")
