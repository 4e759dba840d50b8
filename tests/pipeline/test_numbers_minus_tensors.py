"""A Python number minus a tensor of another kind: type promotion must not leave a number where no operator takes one."""

from __future__ import annotations

import torch

import anyshape


class Minus(torch.nn.Module):
    def forward(self, mask, x):
        bias = (1.0 - mask[:, None]) * -10000.0
        return (
            bias + x[:, None],
            2.5 - mask * 2,
            torch.rsub(mask, 2.5, alpha=2),
            3 - mask,
            1.5 - (x > 0).long(),
        )


def inputs(batch=2, seq=3):
    return {"mask": torch.randint(0, 2, (batch, seq)), "x": torch.randn(batch, seq)}


def test_a_number_minus_integers_is_a_float_as_in_torch(tmp_path) -> None:
    result = anyshape.export(Minus(), inputs, tmp_path / "m.onnx")
    assert result.strategy == "symbolic" and result.contract.tested.capture_proved
    loaded, given = anyshape.load(tmp_path / "m.onnx"), inputs(4, 7)
    for actual, expected in zip(loaded(**given), Minus()(**given), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-6)
