"""Numbers to which floats of sizes are rounded: where a kernel need not give the last bit, each size is compared."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import log, nn, tensor

import anyshape

END = 400


class Rounded(nn.Module):
    """Adds a number that a function computes from the first size."""

    def __init__(self, number):
        super().__init__()
        self.number = number

    def forward(self, x):
        return x + self.number(x.shape[0])


def ceil_of_log(n):
    return torch.ceil(log(tensor(float(n))) / math.log(7)).int().item()


def ceil_of_two_logs(n):
    return torch.ceil(log(tensor(float(n))) / log(tensor(7.0))).int().item()


def floor_of_log2(n):
    return int(torch.floor(torch.log2(tensor(float(n)))))


def ceil_of_log10(n):
    return torch.log10(tensor(float(n))).mul(3).ceil().long().item()


def round_of_exp(n):
    return torch.exp(tensor(float(n)) / 40).round().long().item() % 7


def trunc_of_log_in_a_far_path(n):
    return torch.log10(tensor(float(n))).div(0.3010299957).floor().int().item() if n > 200 else 0


def ceil_that_nothing_reads(n):
    return torch.ceil(log(tensor(float(n))) / math.log(7))


def floor_of_scaled_log(n):
    return (torch.log(tensor(float(n))) * 4.328085).floor().long().item()


NUMBERS = (
    ceil_of_log,
    ceil_of_two_logs,
    floor_of_log2,
    ceil_of_log10,
    round_of_exp,
    trunc_of_log_in_a_far_path,
    ceil_that_nothing_reads,
    floor_of_scaled_log,
)


def inputs(n=5):
    return torch.randn(n, 4)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_rounded_logarithm_is_right_at_every_size_or_named(number, tmp_path) -> None:
    module = Rounded(number)
    try:
        result = anyshape.export(module, inputs, tmp_path / "m.onnx", where=[f"n <= {END}"], strategy="symbolic")
    except anyshape.PromiseBroken as broken:
        assert "test_rounded_floats.py:" in str(broken)
        return
    assert not result.contract.tested.capture_proved
    loaded = anyshape.load(tmp_path / "m.onnx")
    for n in range(1, END + 1):
        x = inputs(n)
        torch.testing.assert_close(torch.as_tensor(loaded(x)), module(x), msg=f"n={n}")


def test_a_range_without_end_ends_where_each_rounded_number_was_compared(tmp_path) -> None:
    result = anyshape.export(Rounded(ceil_of_two_logs), inputs, tmp_path / "m.onnx", strategy="symbolic")
    assert [finding.code for finding in result.findings if finding.code == "AS132"]
    assert len(result.verdict.tried) > 500


def steps_of_log(n):
    return math.ceil(math.log(n) / math.log(7))


def test_the_steps_of_a_rounded_double_are_compared_beside_a_proof(tmp_path) -> None:
    result = anyshape.export(Rounded(steps_of_log), inputs, tmp_path / "m.onnx")
    assert result.contract.tested.capture_proved
    assert {7, 8, 49, 50, 343, 344, 2401, 2402} <= {sizes["n"] for sizes in result.verdict.tried}


class NextPower(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = x.shape[0]
        power = (torch.log(torch.tensor(float(n))) / math.log(7)).ceil().int().item()
        return x * (power + 1)


class SineBranch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if torch.sin(torch.tensor(float(x.shape[0]))).item() > 0.9999 else x


@pytest.mark.parametrize("module", [NextPower(), SineBranch()])
def test_no_rounding_excuses_a_number_that_sizes_alone_decide(module: nn.Module, tmp_path: Path) -> None:
    path = str(tmp_path / "model.onnx")
    try:
        anyshape.export(module, lambda n=5: torch.randn(n, 4), path)
    except anyshape.PromiseBroken:
        return
    loaded = anyshape.load(path)
    for n in (7, 49, 322, 343, 366, 699):
        x = torch.randn(n, 4)
        np.testing.assert_allclose(loaded(x), module(x), rtol=1e-5)


class CubeRoot(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[: int(torch.tensor(float(x.shape[0])) ** (1 / 3))]


def test_a_number_of_sizes_is_not_told_as_one_of_values() -> None:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(CubeRoot(), inputs, strategy="symbolic")
    (finding, *_) = broken.value.findings
    assert finding.code == "AS111" and "from sizes" in finding.what and "input to input" not in str(finding)
