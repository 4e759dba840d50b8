"""Modules that refuse by a random rule: nothing untrue is said of it, and no file answers where the module raises."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import onnxruntime
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.thorough import IS_THOROUGH
from torch import nn

import anyshape
from anyshape.domain import holds, parse_condition

Sizes = Mapping[str, int]
_EXAMPLES = 300 if IS_THOROUGH else 4
_POINTS = 300
_ABOUT_SIZES = ("AS102", "AS103", "AS104", "AS106", "AS142")

number = st.integers(2, 9)
RULES = st.one_of(
    st.builds("a % {} == 0".format, st.integers(2, 12)),
    st.builds("a >= {}".format, number),
    st.builds("a <= {}".format, st.integers(6, 40)),
    st.builds("a + b <= {}".format, st.integers(8, 60)),
    st.builds("a * b <= {}".format, st.integers(12, 200)),
    st.builds("a - b <= {}".format, number),
    st.just("a == b"),
    st.just("a == b or a == 1"),
    st.just("a == b or a == 1 or b == 1"),
    st.just("a <= b"),
    st.just("a % b == 0"),
    st.builds("a == 1 or a % {} == 0".format, number),
    st.builds("a % {} == 0 and b % {} == 0".format, number, number),
    st.builds("a >= {} and b <= {}".format, number, st.integers(9, 40)),
    st.builds("a % {} == 1".format, number),
    st.just("isqrt(a) * isqrt(a) == a"),
    st.builds("(a // {}) % 2 == 0".format, number),
    st.builds("a * a + b <= {}".format, st.integers(20, 90)),
)


class Ruled(nn.Module):
    """Answers where the rule holds."""

    def __init__(self, rule: str) -> None:
        super().__init__()
        self.condition = parse_condition(rule)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not holds(self.condition, {"a": int(x.shape[0]), "b": int(x.shape[1])}):
            raise ValueError("not these sizes")
        return x * 2 + x.sum(1, keepdim=True)


def example_of(answers: Callable[[Sizes], bool], draw: Random) -> Sizes | None:
    points = [{"a": draw.randint(2, 14), "b": draw.randint(2, 14)} for _ in range(200)]
    points += [{"a": size, "b": size} for size in range(2, 20)]
    return next(filter(answers, points), None)


@settings(
    max_examples=_EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(rule=RULES, seed=st.integers(0, 99))
def test_what_is_said_of_a_refusal_is_true(rule: str, seed: int) -> None:
    draw, condition = Random(seed), parse_condition(rule)

    def answers(sizes: Sizes) -> bool:
        return holds(condition, sizes)

    example = example_of(answers, draw)
    if example is None:
        return
    points = [{"a": draw.randint(1, 44), "b": draw.randint(1, 44)} for _ in range(_POINTS)]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "m.onnx"
        try:
            result = anyshape.export(
                Ruled(rule), (torch.randn(example["a"], example["b"]),), path, dynamic={"x": "a b"}
            )
        except anyshape.PromiseBroken as broken:
            assert_true(broken.findings, answers)
            return
        assert_true(result.findings, answers)
        refused = [sizes for sizes in points if not answers(sizes)]
        unnamed = [sizes for sizes in refused if result.contract.domain.contains(sizes)]
        assert not unnamed or result.contract.refused, f"{rule}: the contract has {unnamed[0]}"
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(path, options)
        for sizes in (*refused[:40], *unnamed[:20]):
            assert not runs(session, sizes), f"{rule}: the file answers at {sizes}"
        for sizes in points:
            if answers(sizes) and result.contract.domain.contains(sizes):
                assert runs(session, sizes), f"{rule}: the file refuses {sizes}"


def assert_true(findings: tuple[anyshape.Finding, ...], answers: Callable[[Sizes], bool]) -> None:
    """The sizes that a finding about refusals names are refused."""
    for finding in findings:
        if finding.code in _ABOUT_SIZES and finding.sizes is not None:
            assert not answers(finding.sizes), str(finding)


def runs(session: onnxruntime.InferenceSession, sizes: Sizes) -> bool:
    try:
        session.run(None, {"x": torch.randn(sizes["a"], sizes["b"]).numpy()})
    except Exception:  # onnxruntime's own, or the graph's refusal
        return False
    return True
