"""A slight difference that a file makes by rounding alone is none; one that its formula makes stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from tests.verify_calls import Call, request_of
from torch import nn

from anyshape.records.verdict import Mismatch, Verdict
from anyshape.runtime import ChildRunner, Session
from anyshape.verify import Reference, VerifyOptions, verify
from anyshape.verify.float64_copy import Float64Copy, write_in_doubles

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
LONG = [{"n": 3}, {"n": 1001}, {"n": 20011}]


class Summed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(0)


def equal_rows(sizes: Any, seed: int) -> Call:
    return Call((torch.randn(8, generator=torch.Generator().manual_seed(seed)).expand(sizes["n"], 8).clone(),))


class SummedInDouble(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.double().sum(0).float()


def verdict_on(text: str, module: nn.Module | None = None) -> Verdict:
    with Reference(module or Summed(), lambda outputs: [("y", outputs)]) as reference:
        return verify(
            request_of(
                onnx.parser.parse_model(HEAD + text), reference, equal_rows, LONG, options=VerifyOptions(locate_s=0)
            )
        )


def summed(more: str) -> str:
    return f"""g (float[n, 8] x) => (float[8] y) <int64[1] axes = {{0}}, float one = {{1.00005}}> {{
        s = ReduceSum<keepdims = 0>(x, axes) {more} }}"""


def test_a_long_sum_of_equal_numbers_may_be_rounded_otherwise() -> None:
    assert verdict_on(summed("y = Identity(s)")).passed


def test_a_file_that_lost_the_doubles_of_the_module_is_wrong() -> None:
    assert not verdict_on(summed("y = Identity(s)"), SummedInDouble()).passed


@pytest.mark.parametrize("more", ["y = Mul(s, one)", "h = Cast<to = 10>(s) y = Cast<to = 1>(h)"])
def test_a_formula_that_is_slightly_wrong_is_wrong(more: str) -> None:
    verdict = verdict_on(summed(more))
    assert not verdict.passed
    assert verdict.failures[0].difference is not None
    assert verdict.failures[0].difference.mismatch in (Mismatch.VALUE, Mismatch.INFINITY)


RESIZED = """g (float[1, 1, n, 4] x) => (float[1, 1, m, 4] y) <int64[4] size = {1, 1, 248, 4}> {
    y = Resize<mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel">(x, , , size) }"""


def test_what_onnxruntime_cannot_run_in_doubles_the_reference_evaluator_does(tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(HEAD + RESIZED), tmp_path / "m.onnx")
    x = torch.randn(1, 1, 495, 4)
    with Float64Copy(str(tmp_path / "m.onnx"), ChildRunner) as float64_copy:
        answers = [float64_copy.run({"x": x.numpy()}, 30.0) for _ in range(2)]
    exact = F.interpolate(x.double(), size=(248, 4), mode="bilinear")
    for answer in answers:
        assert answer is not None
        np.testing.assert_allclose(answer[0], exact, rtol=1e-9, atol=1e-12)


def test_a_file_that_nothing_runs_in_doubles_has_no_answer(tmp_path: Path) -> None:
    onnx.save(
        onnx.parser.parse_model(HEAD + "g (float[n] x) => (float[n] y) { y = com.mine.Odd(x) }"), tmp_path / "m.onnx"
    )
    with Float64Copy(str(tmp_path / "m.onnx"), ChildRunner) as float64_copy:
        assert [float64_copy.run({"x": np.zeros(3, np.float32)}, 30.0) for _ in range(2)] == [None, None]


def test_everything_of_the_copy_is_in_doubles(tmp_path: Path) -> None:
    text = """g (float[n] x) => (float[n] y) <float w = {0.1}> {
        c = Constant<value_float = 0.5>() s = Shape(x) z = ConstantOfShape(s) i = Cast<to = 7>(x) f = Cast<to = 1>(i)
        p = Mul(x, w) q = Add(p, c) r = Add(q, z) y = Add(r, f) }"""
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "m.onnx")
    write_in_doubles(str(tmp_path / "m.onnx"), tmp_path / "d.onnx")
    x = np.array([1.5, 3.0])
    (y,) = Session(tmp_path / "d.onnx").run({"x": x})
    np.testing.assert_allclose(y, x * float(np.float32(0.1)) + 0.5 + np.trunc(x), rtol=1e-15)
