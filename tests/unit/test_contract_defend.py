"""The file defends itself: plain onnxruntime refuses what the contract does not allow, and says which rule it is."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from contract_builder import contract, echo_model, zeros
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator
from size_contracts import LARGEST, RULES, allows, contracts

from anyshape.contract.defend import defend
from anyshape.findings import UsageError
from anyshape.graphs import places_of, readings_of
from anyshape.records.contract import Contract

LEVELS = [
    onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
]
BEST = LEVELS[-1]
DECODER = contract(
    "ids: int64[batch, seq]; mask: int64[batch, past + seq];"
    "k: float32[batch, 4, past, 16]; v: float32[batch, 4, past, 16]",
    "1 <= batch <= 64",
    "past >= 0",
    "past + seq <= 4096",
    "seq % 2 == 0",
)
GOOD = {"batch": 3, "seq": 4, "past": 2}


def open_session(model: ir.Model | onnx.ModelProto, level: Any = BEST) -> onnxruntime.InferenceSession:
    proto = ir.to_proto(model) if isinstance(model, ir.Model) else model
    onnx.checker.check_model(proto, full_check=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def defended(promised: Contract, **how: Any) -> ir.Model:
    model = echo_model(promised, **how)
    defend(model, promised)
    return model


def refusal(session: onnxruntime.InferenceSession, feeds: dict[str, Any]) -> str:
    """The name of the node that refuses, without its prefix; nothing if all is well."""
    try:
        session.run(None, feeds)
    except Exception as error:
        found = re.search(r"Name:'anyshape (AS\d+: .*?)' Status Message", str(error))
        return found.group(1) if found else f"another error: {error}"
    return ""


@pytest.mark.parametrize("level", LEVELS, ids=str)
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({}, ""),
        ({"past": 0}, ""),
        ({"batch": 64}, ""),
        ({"batch": 65}, "AS402: batch of 'ids' must be 1 to 64"),
        ({"batch": 0}, "AS402: batch of 'ids' must be 1 to 64"),
        ({"seq": 0}, "AS402: seq of 'ids' must be at least 1"),
        ({"seq": 7}, "AS403: seq of 'ids' must be a multiple of 2"),
        ({"batch": 1, "seq": 4096}, "AS405: the sizes must keep past + seq <= 4096"),
    ],
    ids=str,
)
def test_sizes_outside_the_domain_are_refused_by_name(level: Any, changed: dict[str, int], message: str) -> None:
    assert refusal(open_session(defended(DECODER), level), zeros(DECODER, **{**GOOD, **changed})) == message


@pytest.mark.parametrize("level", LEVELS, ids=str)
@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("mask", (3, 7), "AS404: 'mask' axis 1 must be past + seq"),
        ("mask", (3, 5), "AS404: 'mask' axis 1 must be past + seq"),
        ("mask", (2, 6), "AS401: batch of 'mask' must equal batch of 'ids'"),
        ("v", (3, 4, 3, 16), "AS401: past of 'v' must equal past of 'k'"),
        ("k", (3, 4, 0, 16), "AS404: 'mask' axis 1 must be past + seq"),
    ],
)
def test_inputs_that_disagree_are_refused_by_name(level: Any, name: str, shape: tuple[int, ...], message: str) -> None:
    feeds = zeros(DECODER, **GOOD)
    feeds[name] = np.zeros(shape, feeds[name].dtype)
    assert refusal(open_session(defended(DECODER), level), feeds) == message


def test_without_the_defence_onnxruntime_takes_them_all() -> None:
    plain = open_session(echo_model(DECODER))
    for changed in ({"batch": 65}, {"batch": 0}, {"seq": 7}):
        assert refusal(plain, zeros(DECODER, **{**GOOD, **changed})) == ""
    assert refusal(plain, {**zeros(DECODER, **GOOD), "mask": np.zeros((2, 7), np.int64)}) == ""


@settings(deadline=None, max_examples=150)
@given(contracts, st.data())
def test_a_graph_refuses_exactly_what_its_contract_does_not_allow(promised: Contract, data: st.DataObject) -> None:
    model = echo_model(promised)
    rules = defend(model, promised)
    session = open_session(model)
    determined = {reading.dim for reading in readings_of(promised.domain, places_of(promised.input_axes))}
    for _ in range(5):
        axes = {tensor.name: data.draw(st.integers(0, 2 * LARGEST)) for tensor in promised.inputs}
        refused = refusal(session, {name: np.zeros(size, np.float32) for name, size in axes.items()})
        assert not refused.startswith("another")
        if refused or determined == set(promised.domain.names):
            assert bool(refused) == (not allows(promised, axes))
    assert rules > 0


@pytest.mark.parametrize("rule", RULES)
def test_every_kind_of_rule_is_enforced_exactly(rule: str) -> None:
    promised = contract("a: bool[a]; b: bool[b]; c: bool[c]", "a <= 6", "b <= 6", "c <= 6", rule)
    session = open_session(defended(promised))
    for a, b, c in product(range(LARGEST + 2), repeat=3):
        refused = refusal(session, zeros(promised, a=a, b=b, c=c))
        assert not refused.startswith("another")
        assert bool(refused) is not promised.domain.contains({"a": a, "b": b, "c": c}), (a, b, c)


def test_a_dim_that_is_computed_may_not_be_negative() -> None:
    session = open_session(defended(contract("ids: float32[seq]; mask: float32[past + seq]", "past >= 0")))
    feeds = {"ids": np.zeros(3, np.float32), "mask": np.zeros(3, np.float32)}
    assert refusal(session, feeds) == ""
    feeds["mask"] = np.zeros(2, np.float32)
    assert refusal(session, feeds) == "AS402: past (from 'mask' axis 0 and 'ids' axis 0) must be at least 0"


@pytest.mark.parametrize(
    "dtype",
    [
        "float32",
        "float64",
        "float16",
        "bfloat16",
        "bool",
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    ],
)
@pytest.mark.parametrize("batch", [0, 3])
def test_answers_are_bit_identical_in_every_dtype(dtype: str, batch: int) -> None:
    promised = contract(f"x: {dtype}[batch, seq]; y: {dtype}[batch]", "0 <= batch <= 64")
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    random = np.random.default_rng(0).integers(0, 256, (batch * 5 + batch) * kind.itemsize, dtype=np.uint8)
    if dtype == "bool":
        random &= 1
    flat = random.view(kind)
    feeds = {"x": flat[: batch * 5].reshape(batch, 5), "y": flat[batch * 5 :]}
    for name, answer in run_raw(open_session(defended(promised)), feeds).items():
        assert answer == feeds[name.removesuffix("_out")].tobytes()


def run_raw(session: onnxruntime.InferenceSession, feeds: dict[str, Any]) -> dict[str, bytes]:
    """Answers as bytes, through OrtValues where numpy does not know the type."""
    names = [output.name for output in session.get_outputs()]
    values = {}
    for name, array in feeds.items():
        if array.dtype == ml_dtypes.bfloat16:
            values[name] = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(np.uint16), 16)
        else:
            values[name] = onnxruntime.OrtValue.ortvalue_from_numpy(array)
    import ctypes

    answers = session.run_with_ort_values(names, values)
    return {
        name: ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes()) if 0 not in value.shape() else b""
        for name, value in zip(names, answers, strict=True)
    }


def parsed(text: str, opset: int = 18) -> ir.Model:
    return ir.from_proto(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {text}'))


def test_the_checks_come_before_the_models_own_failures() -> None:
    promised = contract("x: float32[n, 4]; y: float32[n, 4]")
    model = parsed("(float[n, 4] x, float[n, 4] y) => (float[n, 4] z) { z = Add(x, y) }")
    feeds = {"x": np.zeros((3, 4), np.float32), "y": np.zeros((5, 4), np.float32)}
    assert refusal(open_session(model), feeds).startswith("another error")
    defend(model, promised)
    for level in LEVELS:
        assert refusal(open_session(model, level), feeds) == "AS401: n of 'y' must equal n of 'x'"


def test_an_input_that_the_graph_does_not_use_is_checked_too() -> None:
    promised = contract("x: float32[n]; y: float32[n]")
    for unused in ("x", "y"):
        session = open_session(defended(promised, unused=(unused,)))
        feeds = {"x": np.zeros(3, np.float32), "y": np.zeros(4, np.float32)}
        assert refusal(session, feeds) == "AS401: n of 'y' must equal n of 'x'"
        assert refusal(session, {**feeds, "y": feeds["x"]}) == ""


def test_inputs_of_fixed_sizes_stand_guard_where_no_other_input_is_used() -> None:
    promised = contract("x: float32[n]; scale: float32[]", "n <= 3")
    session = open_session(defended(promised, unused=("x",)))
    feeds = {"x": np.zeros(4, np.float32), "scale": np.float32(2)}
    assert refusal(session, {**feeds, "scale": np.array(2, np.float32)}) == "AS402: n of 'x' must be 1 to 3"


def test_a_model_that_uses_no_input_is_left_alone() -> None:
    promised = contract("x: float32[n]", "n <= 3")
    model = parsed("(float[n] x) => (float[2] y) { y = Constant<value_floats=[1.0, 2.0]>() }")
    assert defend(model, promised) == 0
    assert model.graph.num_nodes() == 1


def test_a_contract_without_rules_leaves_the_graph_alone() -> None:
    promised = contract("x: float32[2, 3]")
    model = echo_model(promised)
    assert defend(model, promised) == 0
    assert model.graph.num_nodes() == 1


BRANCH = """(float[n] x, float[n] y, bool flag) => (float[n] z) {
    z = If(flag) <
        then_branch = a () => (float[n] p) { p = Add(x, y) }, else_branch = b () => (float[n] q) { q = Sub(x, y) }
    >
}"""


@pytest.mark.parametrize("flag", [True, False])
def test_what_a_branch_takes_from_outside_is_checked_first(flag: bool) -> None:
    promised = contract("x: float32[n]; y: float32[n]; flag: bool[]")
    model = parsed(BRANCH)
    defend(model, promised)
    feeds = {"x": np.ones(3, np.float32), "y": np.ones(3, np.float32), "flag": np.array(flag)}
    for level in LEVELS:
        session = open_session(model, level)
        assert session.run(None, feeds)[0].tolist() == [2.0 if flag else 0.0] * 3
        assert refusal(session, {**feeds, "y": np.ones(2, np.float32)}) == "AS401: n of 'y' must equal n of 'x'"


def test_an_input_that_is_an_output_as_well_keeps_its_name() -> None:
    promised = contract("x: float32[n]", "n <= 3")
    model = parsed("(float[n] x) => (float[n] x, float[n] y) { y = Neg(x) }")
    defend(model, promised)
    session = open_session(model)
    assert [output.name for output in session.get_outputs()] == ["x", "y"]
    assert refusal(session, {"x": np.zeros(4, np.float32)}) == "AS402: n of 'x' must be 1 to 3"


def test_the_callers_arrays_are_not_written_to() -> None:
    promised = contract("x: float32[n]")
    model = parsed("(float[n] x) => (float[n] y) { a = Neg(x) b = Relu(a) y = Exp(b) }")
    defend(model, promised)
    x = np.linspace(-1, 1, 9, dtype=np.float32)
    open_session(model).run(None, {"x": x})
    assert np.array_equal(x, np.linspace(-1, 1, 9, dtype=np.float32))


def test_shapes_stay_known_behind_the_gate() -> None:
    model = defended(DECODER)
    proto = onnx.shape_inference.infer_shapes(ir.to_proto(model), strict_mode=True, data_prop=True)
    gates = [node for node in proto.graph.node if node.op_type == "Reshape"]
    shapes = {
        info.name: [d.dim_param or d.dim_value for d in info.type.tensor_type.shape.dim]
        for info in proto.graph.value_info
    }
    assert [shapes[gate.output[0]] for gate in gates] == [
        ["batch", "seq"],
        ["batch", "past + seq"],
        ["batch", 4, "past", 16],
        ["batch", 4, "past", 16],
    ]


@pytest.mark.parametrize("opset", [13, 14, 17, 18, 20, 21, 23])
def test_every_opset_from_13_on_can_be_defended(opset: int) -> None:
    session = open_session(defended(DECODER, opset=opset))
    assert refusal(session, zeros(DECODER, **GOOD)) == ""
    assert refusal(session, zeros(DECODER, **{**GOOD, "batch": 65})) == "AS402: batch of 'ids' must be 1 to 64"


def test_an_older_opset_is_an_error() -> None:
    with pytest.raises(UsageError) as caught:
        defended(DECODER, opset=12)
    assert caught.value.finding.code == "AS049"


def test_the_referee_of_onnx_refuses_as_well() -> None:
    evaluator = ReferenceEvaluator(ir.to_proto(defended(DECODER)))
    good = zeros(DECODER, **GOOD)
    assert [answer.shape for answer in evaluator.run(None, good)] == [array.shape for array in good.values()]
    with pytest.raises(IndexError):
        evaluator.run(None, zeros(DECODER, **{**GOOD, "batch": 65}))


def test_more_rules_than_fit_into_one_constant_are_all_enforced() -> None:
    names = [f"i{number}" for number in range(50)]
    promised = contract("; ".join(f"{name}: float32[n]" for name in names), "n <= 9")
    model = echo_model(promised)
    assert defend(model, promised) == 50
    session = open_session(model)
    feeds = {name: np.zeros(3, np.float32) for name in names}
    assert refusal(session, feeds) == ""
    for name in ("i1", "i31", "i32", "i33", "i49"):
        wrong = refusal(session, {**feeds, name: np.zeros(4, np.float32)})
        assert wrong == f"AS401: n of '{name}' must equal n of 'i0'"
    small = [value for value in model.graph.initializers.values() if value.const_value is not None]
    assert max(value.const_value.size for value in small if value.const_value is not None) < 100


def test_two_axes_of_one_input_are_told_apart() -> None:
    session = open_session(defended(contract("x: float32[n, n]")))
    assert refusal(session, {"x": np.zeros((3, 4), np.float32)}) == "AS401: axis 1 of 'x' must equal axis 0 (n)"


def test_a_dim_that_nothing_determines_keeps_its_axis_in_range() -> None:
    session = open_session(defended(contract("x: float32[(t + 1)//2]", "3 <= t <= 20")))
    assert refusal(session, {"x": np.zeros(10, np.float32)}) == ""
    for size in (1, 11):
        assert refusal(session, {"x": np.zeros(size, np.float32)}) == "AS402: 'x' axis 0 ((t + 1)//2) must be 2 to 10"


def test_names_that_are_taken_are_left_alone() -> None:
    promised = contract("x: float32[n]", "n <= 3")
    model = parsed('(float[n] x) => (float[n] y) { "anyshape/shape_0" = Neg(x) y = Neg("anyshape/shape_0") }')
    defend(model, promised)
    assert open_session(model).run(None, {"x": np.ones(2, np.float32)})[0].tolist() == [1.0, 1.0]


def test_the_same_model_is_defended_in_the_same_way() -> None:
    one, two = (ir.to_proto(defended(DECODER)).SerializeToString(deterministic=True) for _ in range(2))
    assert one == two
