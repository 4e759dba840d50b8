"""Comparisons end where the module raises at sizes that the rules allow: the rules are learned again from all such sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
import torch
from tests.verify_calls import Call, request_of

from anyshape.records.verdict import Verdict
from anyshape.verify import Reference, VerifyOptions, verify

DOUBLED = '<ir_version: 10, opset_import: ["" : 21]>\ng (float[n] x) => (float[n] y) { y = Add(x, x) }'
SIZES = [{"n": n} for n in (2, 4, 3, 6, 5, 12, 8, 7, 30)]


class EvenOnly(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] % 2:
            raise ValueError("odd")
        return x * 2


def draw(sizes: Any, seed: int) -> Call:
    return Call((torch.rand(sizes["n"], generator=torch.Generator().manual_seed(seed)),))


def verdict_with(known: tuple[Mapping[str, int], ...] | None) -> Verdict:
    with Reference(EvenOnly(), lambda outputs: [("y", outputs)]) as reference:
        options = VerifyOptions(known_refused=known)
        return verify(request_of(onnx.parser.parse_model(DOUBLED), reference, draw, SIZES, options=options))


def test_the_first_refusal_that_is_not_known_ends_the_comparisons() -> None:
    verdict = verdict_with(())
    assert verdict.is_broken_off and not verdict.failures
    assert not verdict.passed  # nothing is promised by comparisons that did not come to their end
    assert {sizes["n"] for sizes in verdict.tried} == {2, 4}
    assert {each.sizes["n"] for each in verdict.refused} == {
        3,
        5,
        7,
    }  # the smaller ones of those to come are called, too
    assert {each.sizes["n"] for each in verdict.untried} == {6, 12, 8, 30}


def test_refusals_that_are_known_or_that_nobody_learns_from_end_nothing() -> None:
    for known in (None, ({"n": 3}, {"n": 5}, {"n": 7})):
        verdict = verdict_with(known)
        assert verdict.passed and not verdict.is_broken_off
        assert {sizes["n"] for sizes in verdict.tried} == {2, 4, 6, 8, 12, 30}
        assert {each.sizes["n"] for each in verdict.refused} == {3, 5, 7}
