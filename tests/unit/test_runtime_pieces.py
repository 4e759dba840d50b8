"""Models with custom nodes, run in pieces: here, and with onnxruntime in a child."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import numpy as np
import onnx
import pytest

from anyshape import runtime
from anyshape.runtime import (
    ChildDied,
    ChildRunner,
    PiecedSession,
    RuntimeFailed,
    RuntimeRejected,
    open_session,
)
from anyshape.runtime.custom_node_plan import Call, Choice, Piece, plan_pieces

HEAD = '<ir_version: 10, opset_import: ["": 18, "mylib": 1]> '
CHAIN = """g (float[n] x) => (float[n] y, float[n] a) {
    a = Neg(x)
    b = mylib.Twice(a)
    c = Abs(b)
    d = mylib.Twice(c)
    y = Add(d, a)
}"""
ONE = "g (float[n] x) => (float[n] y) { a = Neg(x) y = mylib.Twice(a) }"
BRANCHES = """g (float[n] x, bool c) => (float[n] y) {
    a = Neg(x)
    y = If (c) <
        then_branch = t () => (float[n] u) { u = mylib.Twice(a) },
        else_branch = e () => (float[n] v) { w = Add(a, x) v = Sub(w, a) }
    >
}"""
LOOP = """g (float[n] x, int64 trips) => (float[n] y) {
    y = Loop (trips, , x) <
        body = b (int64 i, bool on, float[n] s) => (bool more, float[n] t) { more = Identity(on) t = mylib.Twice(s) }
    >
}"""
WEIGHT = "g (float[n] x) => (float[n] y) <float[1] w = {3}> { a = mylib.Both(x, w) y = Mul(a, w) }"
OPTIONAL = 'g (float[n] x) => (float[n] y) { y = mylib.Opt <k = 2, f = 0.5, s = "on", l = [1, 2]> (x, , x) }'
X = np.array([1.0, -2.0], np.float32)


def model(text: str) -> bytes:
    proto = onnx.parser.parse_model(HEAD + text)
    known = {value.name for value in proto.graph.output}
    for node in proto.graph.node:  # as anyshape writes it: the types of custom nodes' outputs stand in the file
        if node.domain == "mylib":
            proto.graph.value_info.extend(
                onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n"])
                for name in node.output
                if name not in known
            )
    return proto.SerializeToString()


def twice(x: Any) -> Any:
    return x * 2


def run(text: str, operators: dict[str, Any], **feeds: Any) -> list[Any]:
    return PiecedSession(model(text), operators).run(feeds)


def kinds(text: str) -> list[type]:
    return [
        type(step) for step in plan_pieces(onnx.load_from_string(model(text)), {"mylib::Twice", "mylib::Both"}).steps
    ]


def test_there_is_a_piece_more_than_custom_nodes_one_behind_the_other() -> None:
    assert kinds(CHAIN) == [Piece, Call, Piece, Call, Piece]
    assert kinds(ONE) == [Piece, Call]
    assert kinds(BRANCHES) == [Piece, Choice]


def test_pieces_together_answer_like_the_whole() -> None:
    y, a = run(CHAIN, {"mylib::Twice": twice}, x=X)
    assert a.tolist() == [-1, 2]
    assert y.tolist() == [3, 10]


def test_the_branch_that_is_not_taken_is_not_run() -> None:
    calls: list[Any] = []

    def counted(x: Any) -> Any:
        calls.append(x)
        return x * 2

    assert run(BRANCHES, {"mylib::Twice": counted}, x=X, c=np.array(False))[0].tolist() == [1, -2]
    assert calls == []
    assert run(BRANCHES, {"mylib::Twice": counted}, x=X, c=np.array(True))[0].tolist() == [-2, 4]


def test_a_weight_goes_to_functions_and_to_onnxruntime() -> None:
    assert run(WEIGHT, {"mylib::Both": lambda x, w: x + w}, x=X)[0].tolist() == [12, 3]


def test_attributes_come_by_name_and_an_input_left_out_is_none() -> None:
    seen: dict[str, Any] = {}

    def look(x: Any, nothing: Any, again: Any, **attributes: Any) -> Any:
        seen.update(attributes, nothing=nothing)
        return again

    run(OPTIONAL, {"mylib::Opt": look}, x=X)
    assert seen == {"nothing": None, "k": 2, "f": 0.5, "s": "on", "l": [1, 2]}


def test_a_function_may_change_what_it_is_given() -> None:
    given = X.copy()

    def spoil(x: Any) -> Any:
        x[:] = 0
        return x

    assert run(CHAIN, {"mylib::Twice": spoil}, x=given)[0].tolist() == [-1, 2]
    assert given.tolist() == X.tolist()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.astype(np.float64), "gave float64, and the file says float32"),
        (lambda x: (x, x), "gave 2 values, and the file has 1"),
        (lambda x: 1 / 0, "mylib::Twice raised ZeroDivisionError: division by zero"),
        (lambda: 0, "mylib::Twice raised TypeError"),
    ],
)
def test_what_a_function_does_wrong_is_said(function: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(RuntimeFailed, match=message):
        run(ONE, {"mylib::Twice": function}, x=X)
    (tmp_path / "m.onnx").write_bytes(model(ONE))
    runner = ChildRunner(tmp_path / "m.onnx", operators={"mylib::Twice": function})
    with runner, pytest.raises(RuntimeFailed, match=message):
        runner.run({"x": X})


def test_the_body_of_a_loop_cannot_be_run_in_pieces() -> None:
    with pytest.raises(RuntimeRejected, match="mylib::Twice stands in the body of a Loop") as refused:
        PiecedSession(model(LOOP), {"mylib::Twice": twice})
    assert refused.value.unsupported


def test_a_value_of_unknown_type_is_refused() -> None:
    untyped = onnx.parser.parse_model(HEAD + CHAIN).SerializeToString()
    with pytest.raises(RuntimeRejected, match="of what type 'b' is"):
        PiecedSession(untyped, {"mylib::Twice": twice})


def test_other_feeds_than_the_models_are_refused() -> None:
    with pytest.raises(RuntimeFailed, match="takes x, and was given z"):
        run(ONE, {"mylib::Twice": twice}, z=X)


def test_a_model_without_custom_nodes_is_one_piece() -> None:
    session = open_session(model("g (float[n] x) => (float[n] y) { y = Neg(x) }"), {})
    assert not isinstance(session, PiecedSession)
    assert session.run({"x": X})[0].tolist() == [-1, 2]


def test_inputs_and_outputs_are_those_of_the_file() -> None:
    session = PiecedSession(model(ONE), {"mylib::Twice": twice})
    assert [(info.name, info.dtype, info.shape) for info in (*session.inputs, *session.outputs)] == [
        ("x", "float32", ("n",)),
        ("y", "float32", ("n",)),
    ]


def test_the_child_calls_functions_of_this_process(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(model(CHAIN))
    calls: list[int] = []

    def counted(x: Any) -> Any:
        calls.append(len(x))
        return x * 2

    with ChildRunner(tmp_path / "m.onnx", operators={"mylib::Twice": counted}) as runner:
        assert runner.run({"x": X})[0].tolist() == [3, 10]
        assert runner.run({"x": X[:1]})[0].tolist() == [3]
    assert calls == [2, 2, 1, 1]


def test_a_function_that_never_returns_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_END_S", 0.1, raising=False)
    (tmp_path / "m.onnx").write_bytes(model(ONE))
    is_called, may_return = Event(), Event()

    def stuck(x: Any) -> Any:
        is_called.set()
        may_return.wait(60)
        return x * 2

    began = monotonic()
    with ChildRunner(tmp_path / "m.onnx", operators={"mylib::Twice": stuck}, time_limit_s=0.1) as runner:
        pending = runner.submit({"x": X})
        assert is_called.wait(30)
        pending.discard(0.0)
        again = runner.submit({"x": X})  # in a new child
        with pytest.raises(ChildDied, match=r"took longer than 0\.1 s"):
            again.result()
    assert monotonic() - began < 45
    may_return.set()


def test_weights_beside_the_file_are_found(tmp_path: Path) -> None:
    proto = onnx.load_from_string(model(WEIGHT))
    weight = onnx.numpy_helper.from_array(np.full(1, 3, np.float32), "w")
    del proto.graph.initializer[:]
    proto.graph.initializer.append(weight)
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    assert (tmp_path / "m.data").exists()
    session = PiecedSession(tmp_path / "m.onnx", {"mylib::Both": lambda x, w: x + w})
    assert session.run({"x": X})[0].tolist() == [12, 3]
