"""OpenVINO as a runtime: element types, open shapes, weights in a second file, errors, and the same verdict as any runtime."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper, parser
from tests.deployed import read_ir_shapes

import anyshape
from anyshape.checking.contract_inputs import AnswersOutside, run_outside
from anyshape.contract import read_contract
from anyshape.findings import UsageError
from anyshape.runtime import ChildRunner, RuntimeFailed, RuntimeRejected
from anyshape.runtime.openvino_session import OpenvinoSession, save_ir
from anyshape.runtime.runtimes import RUNTIMES, check_runtime

pytestmark = pytest.mark.skipif(find_spec("openvino") is None, reason="openvino is not installed")

_HEAD = '<ir_version: 8, opset_import: ["" : 18]>'


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "m.onnx"
    onnx.save(parser.parse_model(f"{_HEAD} {text}"), path)
    return path


def run(path: Path, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    return OpenvinoSession(path, threads=1).run(feeds)


@pytest.mark.parametrize("kind", ["float", "float16", "double", "int8", "int32", "int64", "uint8", "bool", "bfloat16"])
def test_an_element_type_comes_back_as_it_was_given(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, f"g ({kind}[n, 2] x) => ({kind}[2, n] y) {{ y = Transpose(x) }}")
    if kind == "bfloat16":
        import ml_dtypes

        dtype = np.dtype(ml_dtypes.bfloat16)
    else:
        dtype = np.dtype({"float": "float32", "double": "float64"}.get(kind, kind))
    x = np.array([[0, 1], [1, 1], [1, 0]]).astype(dtype)
    (y,) = run(path, {"x": x})
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, x.T)


def test_one_session_runs_at_many_sizes_and_at_none(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "g (float[n, m] x) => (float[n] y) { a = Constant<value_ints = [1]>() y = ReduceSum<keepdims=0>(x, a) }",
    )
    session = OpenvinoSession(path, threads=1)
    for shape in ((3, 4), (1, 1), (0, 4), (7, 0), (3, 4)):
        x = np.ones(shape, np.float32)
        np.testing.assert_allclose(session.run({"x": x})[0], x.sum(1))


def test_weights_in_a_second_file_are_read(tmp_path: Path) -> None:
    model = parser.parse_model(f"{_HEAD} g (float[n, 300] x) => (float[n, 300] y) {{ y = Add(x, w) }}")
    weight = np.arange(300, dtype=np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="m.data", size_threshold=0)
    (y,) = run(path, {"x": np.zeros((2, 300), np.float32)})
    np.testing.assert_array_equal(y, [weight, weight])


def test_a_run_that_fails_raises_and_gives_no_earlier_answer(tmp_path: Path) -> None:
    path = written(tmp_path, "g (float[n, 3] x, float[m, 3] z) => (float[k, 3] y) { y = Add(x, z) }")
    with ChildRunner(path, runtime="openvino") as runner:
        good = runner.run({"x": np.ones((2, 3), np.float32), "z": np.ones((2, 3), np.float32)})
        assert good[0].shape == (2, 3)
        with pytest.raises(RuntimeFailed):
            runner.run({"x": np.ones((2, 3), np.float32), "z": np.ones((5, 3), np.float32)})
        assert runner.run({"x": np.ones((4, 3), np.float32), "z": np.ones((4, 3), np.float32)})[0].shape == (4, 3)


def test_openvino_is_imported_without_its_telemetry() -> None:
    """It would fork a process that talks to the network, and that outlives ours."""
    code = (
        "import os, sys; from anyshape.runtime.openvino_session import import_openvino; os.fork = None; import_openvino(); "
        "print([name for name in sys.modules if name.startswith('openvino_telemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_openvino_does_not_know_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    text = (
        '<ir_version: 8, opset_import: ["" : 18, "other" : 1]> g (float[n] x) => (float[n] y) { y = other.Strange(x) }'
    )
    onnx.save(parser.parse_model(text), path)
    with ChildRunner(path, runtime="openvino") as runner, pytest.raises(RuntimeRejected):
        runner.run({"x": np.ones(3, np.float32)})


def test_the_ir_has_ranges_and_whole_weights(tmp_path: Path) -> None:
    model = parser.parse_model(f"{_HEAD} g (float[n, 3] x) => (float[n, 3] y) {{ y = Add(x, w) }}")
    weight = np.array([0.1, 1e-9, 3.3333333], np.float32)  # none of them is a half
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    onnx.save(model, tmp_path / "m.onnx")
    save_ir(tmp_path / "m.onnx", tmp_path / "m.xml", {"x": [(1, 8), (3, 3)]})
    assert read_ir_shapes(tmp_path / "m.xml") == {"x": "[1..8,3]"}
    np.testing.assert_array_equal(run(tmp_path / "m.xml", {"x": np.zeros((1, 3), np.float32)})[0], [weight])
    with pytest.raises(RuntimeFailed):
        run(tmp_path / "m.xml", {"x": np.zeros((9, 3), np.float32)})


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return x * scale


def scaled_inputs(batch: int = 3, seq: int = 5) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(batch, seq), "scale": torch.randn(batch, seq)}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("openvino") / "m.onnx"
    anyshape.export(Scaled(), scaled_inputs, path, where=["1 <= batch <= 8", "1 <= seq <= 16"])
    return path


def test_a_file_is_compared_in_openvino(file: Path) -> None:
    with pytest.warns(AnswersOutside, match="AS557 sizes-not-refused: openvino answers outside the contract"):
        verdict = anyshape.check(file, Scaled(), scaled_inputs, where=["1 <= batch <= 8"], runtime="openvino")
    assert verdict.passed and verdict.runtime == "openvino" and len(verdict.tried) > 10


@pytest.mark.filterwarnings("ignore::anyshape.checking.contract_inputs.AnswersOutside")
def test_another_answer_in_openvino_is_a_finding(file: Path) -> None:
    class Shifted(Scaled):
        def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
            return x * scale + 0.01

    with pytest.raises(anyshape.PromiseBroken, match="AS305 wrong-values") as broken:
        anyshape.check(file, Shifted(), scaled_inputs, where=["1 <= batch <= 8"], runtime="openvino")
    assert "--runtime openvino" in str(broken.value)


def test_the_graphs_defence_holds_in_onnxruntime_and_not_in_openvino(file: Path) -> None:
    contract, _ = read_contract(file)
    answered = {
        name: [each.answered for each in run_outside(file, contract, name)] for name in ("onnxruntime", "openvino")
    }
    assert len(answered["onnxruntime"]) >= 4 and not any(answered["onnxruntime"])
    assert any(answered["openvino"])


def test_a_runtime_has_its_own_options(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [runtime.name for runtime in RUNTIMES] == ["onnxruntime", "openvino"]
    for wrong, code in (
        ({"runtime": "openvin"}, "AS060"),
        ({"runtime": "openvino", "sign": True}, "AS065"),
        ({"runtime": "openvino", "providers": ["CPUExecutionProvider"]}, "AS422"),
    ):
        with pytest.raises(UsageError, match=code):
            anyshape.check(file, Scaled(), scaled_inputs, **wrong)
    monkeypatch.setattr("anyshape.runtime.runtimes.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"AS556 package-missing: .*\n.*anyshape\[openvino\]"):
        check_runtime("openvino")
