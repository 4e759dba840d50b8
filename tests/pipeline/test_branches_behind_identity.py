"""A model that returns its input at most sizes: its other branch is in the file, though sizes of 0 are promised, too."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import anyshape


class OneOf(nn.Module):
    def forward(self, x):
        if x.shape[1] in (700, 1500):
            return x * 2
        return x


class Remainder(nn.Module):
    def forward(self, x):
        length = x.shape[1]
        if length % 64 == 63 and length > 2000:
            return x * 2
        return x


@pytest.mark.parametrize(("make", "lengths"), [(OneOf, (0, 5, 700, 1500)), (Remainder, (0, 63, 2047, 2111))])
def test_the_other_branch_is_in_the_file(make, lengths, tmp_path) -> None:
    model, path = make(), tmp_path / "m.onnx"
    anyshape.export(model, lambda b=2, n=5: torch.randn(b, n), path)
    session = onnxruntime.InferenceSession(str(path))
    for length in lengths:
        x = torch.randn(2, length)
        np.testing.assert_array_equal(session.run(None, {"x": x.numpy()})[0], model(x).numpy())
