"""Models are saved in one file, or with their weights in a second one; both are there, or none is."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest

from anyshape import saving
from anyshape.findings import UsageError
from anyshape.graphs import bytes_of
from anyshape.saving import model_bytes, save_model, save_to_run

ROWS = 300


def made(fill: float = 1.0, dtype: Any = np.float32) -> ir.Model:
    """x + w + b, where w is large enough for a file of its own, and b is not."""
    proto = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (float[n, {ROWS}] x) => (float[n, {ROWS}] y) '
        "{ v = Cast<to=1>(w) s = Add(x, v) y = Add(s, b) }"
    )
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.full((2, ROWS), fill).astype(dtype), "w"))
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(1, np.float32), "b"))
    return ir.from_proto(proto)


def run(path: Path | bytes) -> float:
    source = path if isinstance(path, bytes) else str(path)
    session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    answer = session.run(None, {"x": np.zeros((2, ROWS), np.float32)})[0]
    assert (answer == answer[0, 0]).all()
    return float(answer[0, 0])


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def pair(folder: Path) -> Path:
    """The file with weights beside m.onnx, and nothing else."""
    model, data = sorted(folder.iterdir())
    assert model.name == "m.onnx" and re.fullmatch(r"m\.onnx\.[0-9a-f]{12}\.data", data.name)
    return data


def test_a_small_model_is_one_file(tmp_path: Path) -> None:
    save_model(made(), tmp_path / "m.onnx")
    assert list(content(tmp_path)) == ["m.onnx"]
    assert run(tmp_path / "m.onnx") == 2.0


@pytest.mark.parametrize("how", [{"limit": 1000}, {"external_data": True}], ids=str)
def test_a_large_model_has_its_weights_next_to_it(tmp_path: Path, how: dict[str, Any]) -> None:
    save_model(made(), tmp_path / "m.onnx", **how)
    assert pair(tmp_path).stat().st_size == 2 * ROWS * 4
    assert run(tmp_path / "m.onnx") == 2.0


def test_weights_stay_inside_if_they_are_told_to(tmp_path: Path) -> None:
    save_model(made(), tmp_path / "m.onnx", external_data=False, limit=1000)
    assert list(content(tmp_path)) == ["m.onnx"]


def test_both_files_can_be_moved_together(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    save_model(made(), tmp_path / "here" / "m.onnx", external_data=True)
    shutil.move(tmp_path / "here", tmp_path / "there")
    assert run(tmp_path / "there" / "m.onnx") == 2.0
    proto = onnx.load(str(tmp_path / "there" / "m.onnx"), load_external_data=False)
    locations = [entry.value for entry in proto.graph.initializer[0].external_data if entry.key == "location"]
    assert locations == [pair(tmp_path / "there").name]


@pytest.mark.parametrize("external", [False, True])
def test_the_same_model_gives_the_same_bytes(tmp_path: Path, external: bool) -> None:
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        save_model(made(), tmp_path / name / "m.onnx", external_data=external)
        found.append(content(tmp_path / name))
    assert found[0] == found[1]


@pytest.mark.parametrize("external", [False, True])
def test_the_model_in_memory_stays_as_it_is(tmp_path: Path, external: bool) -> None:
    model = made()
    before = {name: value.const_value for name, value in model.graph.initializers.items()}
    save_model(model, tmp_path / "m.onnx", external_data=external)
    assert all(value.const_value is before[name] for name, value in model.graph.initializers.items())


@pytest.mark.parametrize("external", [False, True])
def test_onnx_own_type_is_taken_too(tmp_path: Path, external: bool) -> None:
    save_model(ir.to_proto(made()), tmp_path / "m.onnx", external_data=external)
    assert run(tmp_path / "m.onnx") == 2.0


def test_bytes_are_the_bytes_of_the_file(tmp_path: Path) -> None:
    save_model(made(), tmp_path / "m.onnx")
    assert model_bytes(made()) == (tmp_path / "m.onnx").read_bytes()
    assert run(model_bytes(made())) == 2.0


def test_weights_of_a_file_go_along_when_it_is_saved_elsewhere(tmp_path: Path) -> None:
    for name in ("old", "whole", "split"):
        (tmp_path / name).mkdir()
    save_model(made(), tmp_path / "old" / "m.onnx", external_data=True)
    model = ir.load(tmp_path / "old" / "m.onnx")
    save_model(model, tmp_path / "whole" / "m.onnx", external_data=False)
    save_model(model, tmp_path / "split" / "m.onnx", external_data=True)
    assert run(model_bytes(model)) == 2.0
    del model
    shutil.rmtree(tmp_path / "old")
    assert run(tmp_path / "whole" / "m.onnx") == run(tmp_path / "split" / "m.onnx") == 2.0


def test_a_file_can_be_saved_over_itself(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    save_model(made(), path, external_data=True)
    save_model(ir.load(path), path, external_data=True)
    assert run(path) == 2.0


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, ml_dtypes.bfloat16, ml_dtypes.int4], ids=str)
def test_weights_of_any_dtype_survive(tmp_path: Path, dtype: Any) -> None:
    for external in (False, True):
        model = ir.Model(
            ir.Graph([], [], nodes=[], opset_imports={"": 21}, name="g", initializers=[weight(dtype)]), ir_version=10
        )
        save_model(model, tmp_path / "m.onnx", external_data=external)
        back = ir.load(tmp_path / "m.onnx").graph.initializers["w"].const_value
        assert back is not None
        assert np.array_equal(back.numpy(), np.arange(4096).astype(dtype))


def weight(dtype: Any) -> ir.Value:
    tensor = ir.Tensor(np.arange(4096).astype(dtype), name="w")
    return ir.Value(name="w", const_value=tensor, type=ir.TensorType(tensor.dtype), shape=ir.Shape([4096]))


def test_large_tensors_lie_where_they_can_be_mapped(tmp_path: Path) -> None:
    values = [weight(np.int8)]
    large = ir.Tensor(np.arange(2**20).astype(np.int8), name="large")
    values.append(ir.Value(name="large", const_value=large, type=ir.TensorType(large.dtype), shape=ir.Shape([2**20])))
    graph = ir.Graph([], [], nodes=[], opset_imports={"": 18}, name="g", initializers=values)
    save_model(ir.Model(graph, ir_version=8), tmp_path / "m.onnx", external_data=True)
    proto = onnx.load(str(tmp_path / "m.onnx"), load_external_data=False)
    offsets = [int(e.value) for tensor in proto.graph.initializer for e in tensor.external_data if e.key == "offset"]
    assert offsets == [0, 2**16]
    back = ir.load(tmp_path / "m.onnx").graph.initializers["large"].const_value
    assert back is not None
    assert np.array_equal(back.numpy(), large.numpy())


def weights_in_branches() -> onnx.ModelProto:
    """An If whose two branches hold a weight each."""
    proto = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (bool c) => (float[{ROWS}] y) {{ y = If(c) '
        f"<then_branch = a () => (float[{ROWS}] p) {{ p = Neg(w) }}, "
        f"else_branch = b () => (float[{ROWS}] q) {{ q = Abs(w) }}> }}"
    )
    for attribute in proto.graph.node[0].attribute:
        attribute.g.initializer.append(onnx.numpy_helper.from_array(np.ones(ROWS, np.float32), "w"))
    return proto


def test_weights_of_a_branch_go_along(tmp_path: Path) -> None:
    proto = weights_in_branches()
    save_model(proto, tmp_path / "m.onnx", external_data=True)
    assert pair(tmp_path).stat().st_size == 2 * ROWS * 4
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    assert session.run(None, {"c": np.array(True)})[0][0] == -1.0


def test_weights_of_a_branch_stay_inside_one_file(tmp_path: Path) -> None:
    proto = weights_in_branches()
    save_model(proto, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    assert session.run(None, {"c": np.array(True)})[0][0] == -1.0


def many_fields() -> ir.Model:
    """A model that has every field beside the weights: metadata, doc strings, functions, types of inner values."""
    model = made()
    model.metadata_props["key"] = "value"
    model.doc_string = model.graph.doc_string = "words"
    model.producer_name = "somebody"
    model.graph.metadata_props["of"] = "graph"
    next(iter(model.graph)).metadata_props["of"] = "node"
    model.functions[("d", "f", "")] = ir.Function("d", "f", graph=ir.Graph([], [], nodes=[]), attributes=[])
    tensor = model.graph.initializers["w"].const_value
    assert tensor is not None
    held = ir.Tensor(tensor.numpy(), name="w", doc_string="of a weight", metadata_props={"of": "weight"})
    model.graph.initializers["w"].const_value = held
    model.graph.initializers["b"].const_value = ir.Tensor(np.ones(1, np.float32), name="b")
    return model


def test_a_file_has_the_bytes_of_protobuf_whatever_fields_there_are(tmp_path: Path) -> None:
    save_model(many_fields(), tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").read_bytes() == ir.to_proto(many_fields()).SerializeToString(deterministic=True)


def test_weights_are_written_from_their_own_memory(tmp_path: Path) -> None:
    class Uncopied(ir.Tensor):  # type: ignore[misc]
        def tobytes(self) -> bytes:
            raise AssertionError("a copy")

    for save in (
        lambda each: save_model(each, tmp_path / "m.onnx"),
        lambda each: save_to_run(each, tmp_path / "r.onnx"),
    ):
        model = made()
        tensor = model.graph.initializers["w"].const_value
        assert tensor is not None
        model.graph.initializers["w"].const_value = Uncopied(tensor.numpy(), name="w")
        save(model)
    assert run(tmp_path / "m.onnx") == run(tmp_path / "r.onnx") == 2.0


def test_a_file_that_is_only_run_has_large_weights_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "_RUN_INSIDE", 1000)
    save_to_run(made(), tmp_path / "m.onnx")
    assert sorted(content(tmp_path)) == ["m.onnx", "m.onnx.data"]
    assert run(tmp_path / "m.onnx") == 2.0


ERRORS = [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("is_old", [True, False], ids=["over an old pair", "new"])
@pytest.mark.parametrize("step", range(1, 8))
def test_a_pair_that_fails_at_any_step_leaves_the_old_pair_or_nothing(
    tmp_path: Path, error: BaseException, is_old: bool, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.onnx"
    if is_old:
        save_model(made(fill=5.0), path, external_data=True)
    before = content(tmp_path)
    calls = 0

    def failing(real: Any) -> Any:
        def call(*args: Any, **keywords: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == step:
                raise error
            return real(*args, **keywords)

        return call

    monkeypatch.setattr(os, "fsync", failing(os.fsync))
    monkeypatch.setattr(Path, "replace", failing(Path.replace))
    try:
        save_model(made(), path, external_data=True)
    except (UsageError, KeyboardInterrupt):
        monkeypatch.undo()
        if content(tmp_path) != before:
            pair(tmp_path)
            assert run(path) == 2.0
    else:
        monkeypatch.undo()
        pair(tmp_path)
        assert run(path) == 2.0


KILLED = """
import sys
from pathlib import Path
import numpy as np, onnx, onnx_ir as ir
from anyshape.saving import save_model
sys.path.insert(0, {tests!r})
from test_saving_models import made
left = int(sys.argv[1])
def replace(self, target, real=Path.replace):
    global left
    if left == 0:
        import os, signal
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return real(self, target)
Path.replace = replace
save_model(made(), {path!r}, external_data=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("renames", [0, 1], ids=["before the weights", "between weights and model"])
def test_a_writer_that_is_killed_leaves_the_old_pair_in_force_and_the_next_one_clears_up(
    tmp_path: Path, renames: int
) -> None:
    path = tmp_path / "m.onnx"
    save_model(made(fill=5.0), path, external_data=True)
    script = KILLED.format(tests=str(Path(__file__).parent), path=str(path))
    ended = subprocess.run([sys.executable, "-c", script, str(renames)], capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert run(path) == 6.0
    assert len(list(tmp_path.iterdir())) > 2
    save_model(made(fill=7.0), path, external_data=True)
    pair(tmp_path)
    assert run(path) == 8.0


def test_weights_of_a_replaced_model_stay_while_another_model_uses_them(tmp_path: Path) -> None:
    save_model(made(fill=5.0), tmp_path / "m.onnx", external_data=True)
    shutil.copy(tmp_path / "m.onnx", tmp_path / "copy.onnx")
    save_model(made(), tmp_path / "m.onnx", external_data=True)
    assert run(tmp_path / "copy.onnx") == 6.0
    save_model(made(), tmp_path / "copy.onnx", external_data=False)
    save_model(made(), tmp_path / "m.onnx", external_data=False)
    assert run(tmp_path / "copy.onnx") == run(tmp_path / "m.onnx") == 2.0


def test_weights_of_a_replaced_model_go_where_the_new_one_holds_its_own(tmp_path: Path) -> None:
    save_model(made(fill=5.0), tmp_path / "m.onnx", external_data=True)
    (tmp_path / "m.onnx.data").write_bytes(b"of somebody else")
    save_model(made(), tmp_path / "m.onnx", external_data=False)
    assert sorted(content(tmp_path)) == ["m.onnx", "m.onnx.data"]


def test_a_model_that_protobuf_cannot_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "PROTOBUF_LIMIT", 1000)
    with pytest.raises(UsageError) as caught:
        save_model(made(), tmp_path / "m.onnx", external_data=False)
    assert caught.value.finding.code == "AS055"
    save_model(made(), tmp_path / "m.onnx", external_data=True)
    assert run(tmp_path / "m.onnx") == 2.0


@pytest.mark.parametrize("external", [False, True])
def test_a_missing_folder_is_a_usage_error(tmp_path: Path, external: bool) -> None:
    with pytest.raises(UsageError) as caught:
        save_model(made(), tmp_path / "no" / "m.onnx", external_data=external)
    assert caught.value.finding.code == "AS050"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, ml_dtypes.bfloat16])
def test_a_transposed_weight_is_written_row_after_row(dtype: Any) -> None:
    rows = np.arange(15).reshape(5, 3).astype(dtype)
    assert bytes(bytes_of(ir.Tensor(rows.T))) == np.ascontiguousarray(rows.T).tobytes()
    rows.flags.writeable = False
    assert bytes(bytes_of(ir.Tensor(rows.T))) == np.ascontiguousarray(rows.T).tobytes()
