"""Files of unknown origin: a clear error, nothing written, and no memory for what a file only claims to have."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from anyshape import files
from anyshape.findings import UsageError

MODEL = '<ir_version: 8, opset_import: ["" : 18]> g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }'


def model_of(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def outside(folder: Path) -> bytes:
    (folder.parent / "secret.bin").write_bytes(bytes(24))
    model = model_of(MODEL)
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="../secret.bin")
    model.graph.initializer.append(tensor)
    return bytes(model.SerializeToString())


def beyond_the_end(folder: Path) -> bytes:
    (folder / "w.data").write_bytes(bytes(8))
    model = model_of(MODEL)
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.data")
    model.graph.initializer.append(tensor)
    return bytes(model.SerializeToString())


def cycle(folder: Path) -> bytes:
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("x", "b")]
    return bytes(helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:])).SerializeToString())


def huge_tensor(folder: Path) -> bytes:
    model = model_of(MODEL)
    model.graph.initializer.append(
        TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2**20, 2**20], raw_data=b"1234")
    )
    return bytes(model.SerializeToString())


def huge_input(folder: Path) -> bytes:
    return bytes(model_of(MODEL.replace("float[2, 3] x", f"float[{2**30}, {2**30}] x")).SerializeToString())


def huge_constant(folder: Path) -> bytes:
    """A node that makes a tensor which no machine holds."""
    made = f"s = Constant <value_ints = [{2**20}, {2**20}]> () c = ConstantOfShape (s)"
    text = f"g (float[2, 3] x) => (float[2, 3] y) {{ {made} d = ReduceSum (c) y = Add (x, d) }}"
    return bytes(model_of(f'<ir_version: 8, opset_import: ["" : 18]> {text}').SerializeToString())


def deep(folder: Path, depth: int = 1000) -> bytes:
    """Graphs inside graphs."""
    info = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [], [info])
    data = graph.SerializeToString()
    for _ in range(
        depth
    ):  # an If whose branch is the graph before: built as bytes, which protobuf itself refuses to nest
        attribute = _field(1, b"then_branch") + _field(6, data) + b"\xa0\x01\x05"
        node = _field(1, b"c") + _field(2, b"y") + _field(4, b"If") + _field(5, attribute)
        data = _field(1, node) + _field(2, b"g") + _field(12, info.SerializeToString())
    return b"\x08\x08" + _field(7, data) + _field(8, b"\x0a\x00\x10\x12")


def _field(number: int, data: bytes) -> bytes:
    head, length = bytearray(), len(data)
    head.append(number << 3 | 2)
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + data


def truncated(folder: Path) -> bytes:
    model = model_of(MODEL)
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(1000, np.float32), "w"))
    return bytes(model.SerializeToString())[:-500]


HOSTILE: tuple[tuple[Callable[[Path], bytes], tuple[str, ...]], ...] = (
    (outside, ("AS505",)),
    (beyond_the_end, ("AS505",)),
    (cycle, ("AS505",)),
    (huge_tensor, ("AS505",)),
    (huge_input, ("AS505",)),
    (huge_constant, ("AS047",)),
    (deep, ("AS041", "AS505")),
    (truncated, ("AS041", "AS042")),
)


@pytest.mark.parametrize(("make", "codes"), HOSTILE, ids=lambda each: getattr(each, "__name__", ""))
@pytest.mark.parametrize("command", ["fix", "freeze"])
def test_a_hostile_file_is_refused_and_nothing_is_written(
    make: Callable[[Path], bytes], codes: tuple[str, ...], command: str, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "bad.onnx").write_bytes(make(folder))
    before = sorted(folder.iterdir())
    tracemalloc.start()
    with pytest.raises(UsageError) as refused:
        if command == "fix":
            files.fix(folder / "bad.onnx", folder / "out.onnx", {"x": "batch 3"})
        else:
            files.freeze(folder / "bad.onnx", folder / "out.onnx", {})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refused.value.finding.code in codes
    assert sorted(folder.iterdir()) == before
    assert peak < 200 * 2**20


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        files.fix(tmp_path / "none.onnx", tmp_path / "out.onnx", {"x": "batch 3"})
    assert refused.value.finding.code == "AS040"


def test_the_same_file_without_harm_is_fixed(tmp_path: Path) -> None:
    onnx.save(model_of(MODEL), tmp_path / "good.onnx")
    files.fix(tmp_path / "good.onnx", tmp_path / "out.onnx", {"x": "batch 3"})
    assert (tmp_path / "out.onnx").is_file()
