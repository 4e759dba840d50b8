"""The module's sensitivity on some inputs is computed no further than the comparison needs it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import onnx
import pytest
import torch
from tests.verify_calls import Call, request_of
from torch import nn

from anyshape.verify import Reference, verify
from anyshape.verify.noise import Yardstick
from anyshape.verify.reference import Answer

IDENTITY = '<ir_version: 10, opset_import: ["" : 21]>\ng (float[n] x) => (float[n] y) { y = Identity(x) }'
DOUBLED = '<ir_version: 10, opset_import: ["" : 21]>\ng (float[n] x) => (float[n] y) { y = Add(x, x) }'
SIZES = [{"n": 5}, {"n": 1}, {"n": 12}]


class Cancelled(nn.Module):
    """The sum of the inputs and of zeros, in which single precision leaves hardly a digit."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 1e8 + x) - x * 1e8


def draw(sizes: Any, seed: int) -> Call:
    return Call((torch.rand(sizes["n"], generator=torch.Generator().manual_seed(seed)) + 1,))


@pytest.fixture
def doubles(monkeypatch: pytest.MonkeyPatch) -> Counter[bytes]:
    """How often the module ran in double precision, by its inputs."""
    counted: Counter[bytes] = Counter()
    own = Yardstick.double_answer

    def double_answer(self: Yardstick, inputs: Call) -> Answer | None:
        counted[inputs.args[0].numpy().tobytes()] += 1
        return own(self, inputs)

    monkeypatch.setattr(Yardstick, "double_answer", double_answer)
    return counted


def test_one_answer_in_doubles_is_enough_where_it_moves_as_far_as_the_file(doubles: Counter[bytes]) -> None:
    with Reference(Cancelled(), lambda outputs: [("y", outputs)]) as reference:
        verdict = verify(request_of(onnx.parser.parse_model(IDENTITY), reference, draw, SIZES))
    assert verdict.passed
    ordinary = {
        inputs.args[0].numpy().tobytes() for seed in range(3) for sizes in SIZES for inputs in [draw(sizes, seed)]
    }
    assert set(doubles) & ordinary
    assert not [inputs for inputs in doubles if _is_nudged(inputs, ordinary)]


def test_inputs_are_changed_where_the_answer_in_doubles_does_not_explain_the_file() -> None:
    x = draw({"n": 5}, 0)
    with Reference(nn.Identity(), lambda outputs: [("y", outputs)]) as reference:
        answer = reference.run(x)
        assert isinstance(answer, Answer)
        first, second, *others = Yardstick(reference).sensitivities(x, answer, seed=0)
        verdict = verify(request_of(onnx.parser.parse_model(DOUBLED), reference, draw, SIZES))
    assert not first[0].any() and not second[0].any()
    assert any(sensitivity.any() for (sensitivity,) in others)
    assert not verdict.passed


def _is_nudged(inputs: bytes, ordinary: set[bytes]) -> bool:
    """Whether these inputs are ordinary ones, each changed by a rounding error at most."""
    x = torch.frombuffer(bytearray(inputs), dtype=torch.float32)
    others = [torch.frombuffer(bytearray(each), dtype=torch.float32) for each in ordinary if each != inputs]
    return any(len(other) == len(x) and torch.allclose(x, other, rtol=1e-5, atol=0.0) for other in others)
