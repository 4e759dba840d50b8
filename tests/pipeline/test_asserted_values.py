"""A file of a model that asserts something about values fails where the model raises, whatever form the assertion has."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import anyshape


class Asserted(torch.nn.Module):
    def forward(self, x):
        torch._assert((x < 10).all(), "too large")
        return x * 2


class AssertedLargest(torch.nn.Module):
    def forward(self, x):
        torch._assert(x.max() < 10, "too large")
        return x * 2


class Checked(torch.nn.Module):
    def forward(self, x):
        torch._check(bool((x < 10).all()), lambda: "too large")
        return x * 2


class Plain(torch.nn.Module):
    def forward(self, x):
        assert x.max() < 10, "too large"
        return x * 2


@pytest.mark.parametrize("module", [Asserted, AssertedLargest, Checked, Plain])
def test_the_file_fails_with_the_words_of_the_assertion(module, tmp_path) -> None:
    result = anyshape.export(module(), lambda n=4: {"x": torch.randn(n, 3)}, tmp_path / "m.onnx", where=["n <= 64"])
    assert result.contract.status == "kept"
    loaded = anyshape.load(tmp_path / "m.onnx")
    np.testing.assert_array_equal(loaded(x=np.ones((5, 3), np.float32)), np.full((5, 3), 2, np.float32))
    with pytest.raises(anyshape.PromiseBroken, match="too large"):
        loaded(x=np.full((5, 3), 11, np.float32))
