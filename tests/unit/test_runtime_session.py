"""onnxruntime behind our own words: what it is given, what it says, what it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from anyshape.runtime import RuntimeFailed, RuntimeRejected, Session, TensorInfo
from anyshape.runtime.process import child_environment
from anyshape.runtime.session import import_onnxruntime

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'


def model(text: str) -> bytes:
    return onnx.parser.parse_model(HEAD + text).SerializeToString()


ADD = model("g (float[n, 3] x, float[3] y) => (float[n, 3] z) { z = Add(x, y) }")


def test_runs_and_gives_the_outputs_in_order() -> None:
    session = Session(model("g (float[n] x) => (float[n] a, float[n] b) { a = Neg(x) b = Abs(x) }"))
    a, b = session.run({"x": np.array([-1.0, 2.0], np.float32)})
    assert a.tolist() == [1.0, -2.0]
    assert b.tolist() == [1.0, 2.0]


def test_tells_what_the_file_declares() -> None:
    session = Session(ADD, threads=1)
    assert session.inputs == (TensorInfo("x", "float32", ("n", 3)), TensorInfo("y", "float32", (3,)))
    assert session.outputs == (TensorInfo("z", "float32", ("n", 3)),)


def test_opens_a_path_as_well(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(ADD)
    assert len(Session(tmp_path / "m.onnx").inputs) == 2


def test_a_file_that_is_no_model_is_rejected() -> None:
    with pytest.raises(RuntimeRejected) as caught:
        Session(b"not a model")
    assert not caught.value.unsupported
    assert str(caught.value) == caught.value.message != ""


def test_a_missing_kernel_is_told_from_a_bad_file() -> None:
    with pytest.raises(RuntimeRejected) as caught:
        Session(model("g (bfloat16[n] x) => (bfloat16[n] y) { y = Add(x, x) }"))
    assert caught.value.unsupported


@pytest.mark.parametrize(
    "feeds",
    [
        {"x": np.ones((2, 3), np.float32)},
        {"x": np.ones((2, 4), np.float32), "y": np.ones(3, np.float32)},
        {"x": np.ones((2, 3), np.float64), "y": np.ones(3, np.float32)},
        {"x": np.ones((2, 3), np.float32), "y": np.ones(3, np.float32), "z": np.ones(3, np.float32)},
    ],
    ids=["missing", "wrong shape", "wrong dtype", "unknown"],
)
def test_a_bad_call_fails_in_our_words(feeds: dict[str, Any]) -> None:
    with pytest.raises(RuntimeFailed):
        Session(ADD).run(feeds)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("shape", [(3,), (), (0, 2)])
def test_types_that_numpy_lacks_go_in_and_come_out(name: str, shape: tuple[int, ...]) -> None:
    dtype = getattr(ml_dtypes, name)
    declared = name.replace("_", "")
    axes = ", ".join("abc"[: len(shape)])
    body = (
        f"g ({declared}[{axes}] x, float[n] w) => ({declared}[{axes}] y, float[n] v) {{ y = Identity(x) v = Neg(w) }}"
    )
    given = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    out, negated = Session(model(body)).run({"x": given, "w": np.ones(2, np.float32)})
    assert (out.dtype, out.shape) == (given.dtype, shape)
    assert out.tobytes() == given.tobytes()
    assert negated.tolist() == [-1.0, -1.0]


def test_strings_come_out_as_objects() -> None:
    (out,) = Session(model("g (string[n] x) => (string[n] y) { y = Identity(x) }")).run(
        {"x": np.array(["a", "bc"], object)}
    )
    assert out.tolist() == ["a", "bc"]


def test_an_output_that_is_no_tensor_is_not_passed_off_as_one() -> None:
    sequence = model("g (float[n] x) => (seq(float[n]) y) { y = SequenceConstruct(x) }")
    with pytest.raises(RuntimeFailed, match="not a tensor"):
        Session(sequence).run({"x": np.ones(2, np.float32)})


SESSIONS = """
import sys
from pathlib import Path
import numpy as np
from anyshape.runtime.child import TimingRequest, optimize_file, time_calls
from anyshape.runtime import ChildRunner
from anyshape.runtime.session import CPU, Session
path, feeds = sys.argv[1], {"x": np.ones(3, np.float32)}
if sys.argv[2] == "here":
    Session(path).run(feeds)
else:
    with ChildRunner(path) as runner:
        runner.run(feeds)
    time_calls(TimingRequest(path=path, feeds=feeds, providers=(CPU,), seconds=0.01))
    optimize_file(Path(path), Path(path).with_name("optimized.onnx"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the folders are named otherwise")
@pytest.mark.parametrize("where", ["here", "child"])
def test_a_session_leaves_nothing_in_the_users_folders(tmp_path: Path, where: str) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[n] x) => (float[n] y) { y = Neg(x) }'
    )
    onnx.save(model, tmp_path / "m.onnx")
    places = {name: tmp_path / name for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME")}
    for place in places.values():
        place.mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environment |= {name: str(place) for name, place in places.items()}
    command = [sys.executable, "-c", SESSIONS, str(tmp_path / "m.onnx"), where]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    left = [each for place in places.values() for each in place.rglob("*")]
    assert [each for each in left if not each.name.startswith("torchinductor_")] == []  # importing torch makes that


def test_telemetry_that_the_user_wants_stays_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORT_DISABLE_TELEMETRY", "0")
    import_onnxruntime()
    assert os.environ["ORT_DISABLE_TELEMETRY"] == child_environment()["ORT_DISABLE_TELEMETRY"] == "0"
