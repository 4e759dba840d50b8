"""The file refuses values outside the bounds of its contract in plain onnxruntime, and just those that load refuses."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from contract_builder import contract, echo_model
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from anyshape.contract.defend import defend
from anyshape.contract.defend_values import defend_values
from anyshape.findings import ContractBroken
from anyshape.loading.call_checks import CallChecker
from anyshape.records.contract import Contract

LEVELS = [
    onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
]
WHOLE = ["uint8", "int8", "uint16", "int16", "int32", "int64", "uint32", "uint64"]
LENGTHS = contract(
    "x: float32[batch, seq]; lengths: int64[batch]",
    "batch <= 64",
    values={"lengths": "1 <= lengths <= seq"},
)


def open_session(promised: Contract, level: Any = LEVELS[-1], **how: Any) -> onnxruntime.InferenceSession:
    model = echo_model(promised, **how)
    assert defend_values(model, promised) == len(promised.values)
    defend(model, promised)
    proto = ir.to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = level, 4
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def refusal(session: onnxruntime.InferenceSession, feeds: dict[str, Any]) -> str:
    """The name of the node that refuses, without its prefix; nothing if all is well."""
    try:
        answers = session.run(None, feeds)
    except Exception as error:
        found = re.search(r"Name:'anyshape (AS\d+: .*?)' Status Message", str(error))
        return found.group(1) if found else f"another error: {error}"
    for answer, feed in zip(answers, feeds.values(), strict=True):
        np.testing.assert_array_equal(answer, feed)
    return ""


def lengths(*values: int, seq: int = 5) -> dict[str, Any]:
    return {"x": np.zeros((len(values), seq), np.float32), "lengths": np.array(values, np.int64)}


@pytest.mark.parametrize("level", LEVELS, ids=str)
@pytest.mark.parametrize("opset", [17, 18, 23])
def test_a_bound_by_a_dim_is_checked_at_the_sizes_of_the_call(level: Any, opset: int) -> None:
    session = open_session(LENGTHS, level, opset=opset)
    outside = "AS421: values of 'lengths' must keep 1 <= lengths <= seq"
    assert [refusal(session, lengths(*each)) for each in ((1, 5), (2,), (5, 5, 5))] == [""] * 3
    assert [refusal(session, lengths(*each)) for each in ((0, 5), (6,), (1, 2, -1))] == [outside] * 3
    assert refusal(session, lengths(6, seq=6)) == ""
    assert refusal(session, lengths(*[1] * 65)) == "AS402: batch of 'x' must be 1 to 64"


@pytest.mark.parametrize("dtype", WHOLE)
def test_integers_of_every_type_are_compared_exactly(dtype: str) -> None:
    session = open_session(contract(f"x: {dtype}[n]", values={"x": "2 <= x < 100"}))
    for value, expected in ((2, True), (99, True), (1, False), (100, False)):
        assert (refusal(session, {"x": np.array([50, value], dtype)}) == "") is expected


def test_large_integers_are_compared_exactly() -> None:
    session = open_session(contract("x: int64[n]", values={"x": f"x <= {2**53}"}))
    assert refusal(session, {"x": np.array([2**53])}) == ""
    assert refusal(session, {"x": np.array([2**53 + 1])}) != ""


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats_of_every_type_are_compared_exactly(dtype: str) -> None:
    session = open_session(contract(f"x: {dtype}[n]", values={"x": "-0.5 <= x < 1"}))
    assert refusal(session, {"x": np.array([-0.5, 0.0, 0.99], dtype)}) == ""
    assert all(refusal(session, {"x": np.array([0, value], dtype)}) for value in (1.0, -0.75, np.inf, -np.inf))


def test_bfloat16_is_compared_as_float32() -> None:
    promised = contract("x: bfloat16[n]", values={"x": "-0.5 <= x < 1"})
    model = echo_model(promised)
    defend_values(model, promised)
    run = ReferenceEvaluator(ir.to_proto(model)).run
    run(None, {"x": np.array([-0.5, 0.99], ml_dtypes.bfloat16)})
    with pytest.raises(IndexError):
        run(None, {"x": np.array([0, 1], ml_dtypes.bfloat16)})


def test_not_a_number_is_neither_below_nor_above_and_hides_no_other_value() -> None:
    promised = contract("x: float32[n]", values={"x": "0 <= x <= 1"})
    session = open_session(promised)
    assert refusal(session, {"x": np.array([np.nan, 0.5], np.float32)}) == ""
    assert refusal(session, {"x": np.array([np.nan, 2], np.float32)}) != ""
    CallChecker.of(promised).check({"x": np.array([np.nan, 0.5], np.float32)})
    with pytest.raises(ContractBroken, match="AS421"):
        CallChecker.of(promised).check({"x": np.array([np.nan, 2], np.float32)})


def test_empty_inputs_and_inputs_without_axes_are_checked() -> None:
    promised = contract("x: float32[n]; k: int64[]", "n >= 0", values={"x": "x <= 1", "k": "0 <= k < n + 1"})
    session = open_session(promised)
    assert refusal(session, {"x": np.zeros(0, np.float32), "k": np.array(0)}) == ""
    assert refusal(session, {"x": np.zeros(2, np.float32), "k": np.array(3)}) != ""


def test_an_input_that_only_the_bounds_speak_of_holds_the_others_back() -> None:
    promised = contract("x: float32[n]; flag: int32[1]", values={"flag": "flag == 1"})
    session = open_session(promised, unused=("flag",))
    x = np.zeros(2, np.float32)
    session.run(None, {"x": x, "flag": np.array([1], np.int32)})
    with pytest.raises(Exception, match="AS421: values of 'flag' must keep flag == 1"):
        session.run(None, {"x": x, "flag": np.array([2], np.int32)})


def test_no_bounds_are_no_nodes() -> None:
    for promised in (contract("x: float32[n]"), contract("x: float32[n]", values={"x": "given"})):
        model = echo_model(promised)
        before = len(model.graph)
        assert defend_values(model, promised) == 0 and len(model.graph) == before


SESSIONS = {
    text: open_session(contract("x: int64[n, m]", values={"x": text}))
    for text in ("0 <= x < n", "x <= n*m", "1 <= x <= n//2 + m", "-3 <= x < 4.5", "x == m", "x > -n and x < m")
}


@pytest.mark.parametrize("text", SESSIONS)
@settings(max_examples=25)
@given(
    n=st.integers(1, 5),
    m=st.integers(1, 4),
    value=st.integers(-8, 24),
    place=st.integers(0, 19),
    rest=st.sampled_from(["legal", "same"]),
)
def test_the_graph_refuses_what_load_refuses(text: str, n: int, m: int, value: int, place: int, rest: str) -> None:
    promised = contract("x: int64[n, m]", values={"x": text})
    legal = {"0 <= x < n": 0, "x <= n*m": 0, "1 <= x <= n//2 + m": 1, "x == m": m}.get(text, 0)
    x = np.full(n * m, legal if rest == "legal" else value)
    x[place % x.size] = value
    feeds = {"x": x.reshape(n, m)}
    try:
        CallChecker.of(promised).check(feeds)
        refused = False
    except ContractBroken:
        refused = True
    assert (refusal(SESSIONS[text], feeds) != "") is refused
