"""Numbers that Python reads from numpy's arrays of sizes stay sizes."""

from __future__ import annotations

import numpy as np
import torch

import anyshape


class Sums(torch.nn.Module):
    def forward(self, x):
        sizes = np.array(x.shape)
        scale = float(sizes[1:].sum()) / int(sizes.sum())
        return x * scale, x[:, : int(sizes[0] + sizes[1]) // 3]


def inputs(batch=2, seq=5):
    return (torch.randn(batch, seq, 3),)


def test_int_and_float_of_an_array_stay_open(tmp_path) -> None:
    result = anyshape.export(Sums(), inputs, tmp_path / "m.onnx")
    assert result.contract.tested.capture_proved
    loaded = anyshape.load(tmp_path / "m.onnx")
    for batch, seq in ((1, 1), (4, 11), (9, 2)):
        given = inputs(batch, seq)
        for actual, expected in zip(loaded(*given), Sums()(*given), strict=True):
            torch.testing.assert_close(actual, expected)
