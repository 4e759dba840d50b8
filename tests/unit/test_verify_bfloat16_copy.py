"""A file in bfloat16 is compared on a CPU too, in a copy that rounds as hardware does, and the verdict says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from tests.verify_calls import Call, request_of

from anyshape.records.verdict import Mismatch, Verdict
from anyshape.runtime import Session
from anyshape.verify import Reference, VerifyOptions, verify
from anyshape.verify.file_copies import NOTE, copy_bfloat16_file
from anyshape.verify.tensors import to_array

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
SCALED = """g (bfloat16[b, 3] x) => (bfloat16[b, 3] y) <float[3] f = {1.0, 2.0, 3.0}> {
  w = Cast<to = 16>(f) p = Mul(x, w) y = Exp(p) }"""


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("w", torch.tensor([1.0, 2.0, 3.0], dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.exp(x * self.w)


def make(sizes: Any, seed: int) -> Call:
    drawn = torch.randn(sizes["b"], 3, generator=torch.Generator().manual_seed(seed))
    return Call((drawn.to(torch.bfloat16),))


def verdict_on(text: str) -> Verdict:
    with Reference(Scaled(), lambda outputs: [("y", outputs)]) as reference:
        return verify(
            request_of(
                onnx.parser.parse_model(HEAD + text),
                reference,
                make,
                [{"b": 3}, {"b": 1}, {"b": 9}],
                options=VerifyOptions(),
            )
        )


def test_a_right_file_passes_and_the_verdict_says_how() -> None:
    verdict = verdict_on(SCALED)
    assert verdict.passed
    assert verdict.floor == f"float64 eager; {NOTE}"


@pytest.mark.parametrize(
    "wrong",
    [SCALED.replace("3.0", "3.5"), SCALED.replace("Mul", "Add"), SCALED.replace("Exp", "Sigmoid")],
    ids=["weight", "operator", "function"],
)
def test_a_wrong_file_is_noticed(wrong: str) -> None:
    failure = verdict_on(wrong).smallest_failure
    assert failure is not None
    assert failure.difference is not None
    assert failure.difference.mismatch is Mismatch.VALUE


def test_an_output_in_another_type_is_noticed() -> None:
    text = SCALED.replace("(bfloat16[b, 3] y)", "(float[b, 3] y)").replace(
        "y = Exp(p)", "e = Exp(p) y = Cast<to = 1>(e)"
    )
    failure = verdict_on(text).smallest_failure
    assert failure is not None
    assert failure.difference is not None
    assert failure.difference.mismatch is Mismatch.DTYPE


def test_every_answer_is_rounded(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(HEAD + SCALED), path)
    bfloat16_copy = copy_bfloat16_file(str(path), str(tmp_path))
    assert bfloat16_copy is not None
    x = make({"b": 50}, 0).args[0]
    given = Session(bfloat16_copy.path).run(bfloat16_copy.feeds({"x": to_array(x)}))
    assert given[0].dtype == np.float32
    (actual,) = bfloat16_copy.outputs(given)
    expected = to_array(torch.exp(x * torch.tensor([1.0, 2.0, 3.0], dtype=torch.bfloat16)))
    assert np.array_equal(given[0], actual.astype(np.float32))
    assert np.allclose(actual.astype(np.float32), expected.astype(np.float32), rtol=2**-7)


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(HEAD + "g (float[b] x) => (float[b] y) { y = Exp(x) }"), path)
    assert copy_bfloat16_file(str(path), str(tmp_path)) is None
    path.write_bytes(b"no model")
    assert copy_bfloat16_file(str(path), str(tmp_path)) is None
