"""Whatever reads an ONNX file refuses one that is damaged by a finding, and reads nothing but regular files beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from contract_builder import contract, echo_bytes
from onnx import TensorProto, helper, numpy_helper

import anyshape
from anyshape import files
from anyshape.contract import KEY, read_contract
from anyshape.contract.digest import find_change
from anyshape.findings import AnyshapeError
from anyshape.records.contract import Digest, contract_as_plain

PROMISED = contract(
    "x: float32[batch, 3]",
    "1 <= batch <= 64",
    outputs="x_out: float32[batch, 3]",
    digest=Digest(*["sha256:" + 64 * "0"] * 2),
)


def inspect(path: Path) -> Any:
    promised, _ = read_contract(path)
    return find_change(path, promised)


def deploy(path: Path) -> Any:
    return anyshape.deploy(path, "triton", path.parent / "served")


def freeze(path: Path) -> Any:
    return files.freeze(path, path.parent / "one.onnx", {"batch": 2})


def fix(path: Path) -> Any:
    return files.fix(path, path.parent / "fixed.onnx", {"x": "batch 3"})


def check(path: Path) -> Any:
    import torch

    return anyshape.check(path, torch.nn.Identity(), lambda batch=3: torch.ones(batch, 3), sizes={"batch": 2})


READERS = (anyshape.load, inspect, freeze, fix, deploy, check)
RUNNERS = tuple(reader for reader in READERS if reader is not inspect)


def model() -> onnx.ModelProto:
    return onnx.load_model_from_string(echo_bytes(PROMISED))


def write(folder: Path, proto: onnx.ModelProto) -> Path:
    path = folder / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def code(call: Callable[[], Any]) -> str:
    with pytest.raises(AnyshapeError) as caught:
        call()
    assert str(caught.value).isprintable() or "\n" in str(caught.value)
    return caught.value.finding.code


def with_contract(**changes: Any) -> onnx.ModelProto:
    proto = model()
    helper.set_model_props(proto, {KEY: json.dumps({**contract_as_plain(PROMISED), **changes})})
    return proto


STATE = {"name": "s", "input": "x", "output": "x_out", "dtype": "float32", "shape": [1, "batch"], "data": ""}
INPUT = {"name": "x", "path": "x", "dtype": "float32", "axes": ["batch", 3]}


@pytest.mark.parametrize(
    "changes",
    [
        {"values": {"x": "hello"}},
        {"values": {"x": "(" * 500}},
        {"values": {"nobody": "0 <= nobody"}},
        {"values": {"x": "x <= nobody"}},
        {"state": [5]},
        {"state": [{**STATE, "input": "nobody"}]},
        {"state": [{**STATE, "dtype": "float33"}]},
        {"state": [{**STATE, "shape": [-1]}]},
        {"state": [{**STATE, "shape": ["nobody"]}]},
        {"state": [{**STATE, "data": "###"}]},
        {"state": [{**STATE, "data": "AAAA"}]},
        {"inputs": ["x"]},
        {"inputs": [None]},
        {"inputs": [INPUT, INPUT]},
        {"inputs": [{**INPUT, "dtype": "float33"}]},
        {"inputs": [{**INPUT, "axes": ["nobody", 3]}]},
        {"inputs": [{**INPUT, "axes": ["batch", -3]}]},
        {"inputs": [{**INPUT, "axes": ["batch" + "+1" * 3000, 3]}]},
        {"dims": [{"name": "batch", "min": 1, "max": 10**40, "multiple": 1, "declared": True}]},
        {"relations": ["batch <= " + "9" * 400]},
        {"rules": [5]},
        {"opset": 2**70},
        {"digest": {"graph": "x", "weights": "y"}},
        {"tested": {**contract_as_plain(PROMISED)["tested"], "worst_error": {"x_out": 10**400}}},
        {"tested": {**contract_as_plain(PROMISED)["tested"], "untried": ["x"]}},
        {"findings": [{"code": "AS301", "severity": []}]},
    ],
    ids=lambda changes: json.dumps(changes)[:60],
)
def test_a_contract_with_an_unusable_part_is_refused_by_every_reader(changes: Any, tmp_path: Path) -> None:
    path = write(tmp_path, with_contract(**changes))
    assert {reader.__name__: code(lambda read=reader: read(path)) for reader in READERS if reader is not fix} == {
        reader.__name__: "AS046" for reader in READERS if reader is not fix
    }


@pytest.mark.parametrize("reader", [anyshape.load, freeze, deploy], ids=lambda each: each.__name__)
def test_a_contract_about_an_input_that_the_graph_lacks_is_refused(reader: Any, tmp_path: Path) -> None:
    path = write(tmp_path, with_contract(inputs=[{**INPUT, "name": "nobody", "path": "nobody"}]))
    assert code(lambda: reader(path)) == "AS046"


def weights(**entries: str) -> onnx.ModelProto:
    proto = model()
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    proto.graph.initializer.append(tensor)
    return proto


def lay(folder: Path) -> None:
    """What the locations below lead to."""
    (folder / "w.data").write_bytes(bytes(16))
    (folder.parent / "secret.bin").write_bytes(bytes(16))
    (folder / "folder").mkdir()
    (folder / "link").symlink_to("../secret.bin")
    (folder / "loop").symlink_to("loop")
    (folder / "device").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe")


@pytest.mark.parametrize("reader", READERS, ids=lambda each: each.__name__)
@pytest.mark.parametrize(
    "entries",
    [
        {},
        *(
            {"location": each}
            for each in (
                "",
                ".",
                "a\0b",
                "x" * 5000,
                "../secret.bin",
                "folder/../w.data",
                "x/../../inside/w.data",
                "w.data/",
                "/dev/zero",
                "link",
                "loop",
                "device",
                "folder",
                "pipe",
            )
        ),
        *({"location": "w.data", "offset": each} for each in ("-1", "x", "1.5", "8", "9" * 30, "٣")),
        *({"location": "w.data", "length": each} for each in ("-1", "x", "8", "9" * 30)),
    ],
    ids=lambda entries: " ".join(f"{key}={value[:9]!r}" for key, value in entries.items()) or "nothing",
)
def test_weights_that_lie_in_no_file_beside_the_model_are_not_read(
    entries: dict[str, str], reader: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    lay(folder)
    path = write(folder, weights(**entries))
    assert code(lambda: reader(path)) == "AS505"


@pytest.mark.parametrize("reader", RUNNERS, ids=lambda each: each.__name__)
def test_weights_that_are_missing_are_named_before_anything_runs(reader: Any, tmp_path: Path) -> None:
    assert code(lambda: reader(write(tmp_path, weights(location="w.data")))) == "AS043"


def test_weights_beside_the_model_are_read_through_a_link_in_their_own_folder(tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(bytes(16))
    (tmp_path / "w.data").symlink_to("blob")
    path = write(tmp_path, weights(location="w.data", offset="0", length="16"))
    with pytest.warns(UserWarning, match="AS420"):
        anyshape.load(path)


def recursive() -> onnx.ModelProto:
    proto = model()
    node = helper.make_node("again", ["a"], ["b"], domain="own")
    proto.functions.append(helper.make_function("own", "again", ["a"], ["b"], [node], [helper.make_opsetid("own", 1)]))
    return proto


def doubling() -> onnx.ModelProto:
    """2**40 nodes, once functions are written out."""
    proto = model()
    opsets = [helper.make_opsetid("own", 1), helper.make_opsetid("", 18)]
    for level in range(40):
        called = {"op_type": f"f{level + 1}", "domain": "own"} if level < 39 else {"op_type": "Relu"}
        nodes = [helper.make_node(inputs=[a], outputs=[b], **called) for a, b in (("a", "m"), ("m", "b"))]
        proto.functions.append(helper.make_function("own", f"f{level}", ["a"], ["b"], nodes, opsets))
    return proto


def twice(side: str) -> onnx.ModelProto:
    proto = model()
    values = getattr(proto.graph, side)
    values.append(values[0])
    return proto


def typed(side: str, kind: int) -> onnx.ModelProto:
    proto = model()
    getattr(proto.graph, side)[0].type.tensor_type.elem_type = kind
    return proto


def tensor(**fields: Any) -> onnx.ModelProto:
    proto = model()
    proto.graph.initializer.append(TensorProto(name="w", **fields))
    return proto


STRUCTURES: dict[str, Callable[[], onnx.ModelProto]] = {
    "a function that calls itself": recursive,
    "functions without an end": doubling,
    "two inputs of one name": lambda: twice("input"),
    "two outputs of one name": lambda: twice("output"),
    "an output of an unknown type": lambda: typed("output", 99),
    "a tensor of an unknown type": lambda: tensor(data_type=99, dims=[1], raw_data=b"1234"),
    "a tensor without a type": lambda: tensor(dims=[1], raw_data=b"1234"),
    "a tensor with a negative size": lambda: tensor(data_type=1, dims=[-1, -1], raw_data=b"1234"),
    "a tensor with too few numbers": lambda: tensor(data_type=1, dims=[3], float_data=[1.0, 2.0]),
    "a tensor of texts with too few": lambda: tensor(data_type=8, dims=[3], string_data=[b"1"]),
}


@pytest.mark.parametrize("reader", READERS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("name", STRUCTURES)
def test_a_model_that_no_exporter_writes_is_not_opened(name: str, reader: Any, tmp_path: Path) -> None:
    path = write(tmp_path, STRUCTURES[name]())
    assert code(lambda: reader(path)) == "AS505"


@pytest.mark.parametrize("reader", READERS, ids=lambda each: each.__name__)
def test_a_message_that_is_broken_below_its_outer_fields_is_no_model(reader: Any, tmp_path: Path) -> None:
    proto = model()
    graph = proto.graph.SerializeToString()
    proto.ClearField("graph")
    data = proto.SerializeToString() + b"\x3a" + bytes([len(graph)]) + b"\x0a\x7f" + graph[2:]
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    assert code(lambda: reader(path)) == "AS041"


@pytest.mark.parametrize("reader", READERS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "loop", "nul", "long"])
def test_a_path_that_is_no_regular_file_is_refused_without_waiting(kind: str, reader: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind in ("device", "loop"):
        path.symlink_to("/dev/zero" if kind == "device" else "m.onnx")
    else:
        path = tmp_path / ("a\0b" if kind == "nul" else "x" * 5000)
    assert code(lambda: reader(path)) == (
        "AS036" if kind == "nul" and reader not in (anyshape.load, inspect) else "AS040"
    )


@pytest.mark.parametrize("given", [None, 5, bytearray(b"x"), np.zeros(3), ["m.onnx"]], ids=repr)
def test_what_is_no_path_is_refused_by_name(given: Any) -> None:
    assert code(lambda: anyshape.load(given)) == "AS036"


def test_good_weights_of_every_form_are_read(tmp_path: Path) -> None:
    proto = model()
    proto.graph.initializer.append(numpy_helper.from_array(np.zeros(3, np.float16), "half"))
    proto.graph.initializer.append(helper.make_tensor("four", TensorProto.INT4, [3], [1, 2, 3]))
    proto.graph.initializer.append(helper.make_tensor("complex", TensorProto.COMPLEX64, [2], [1j, 2]))
    proto.graph.initializer.append(helper.make_tensor("texts", TensorProto.STRING, [2], [b"a", b"b"]))
    proto.graph.initializer.append(helper.make_tensor("numbers", TensorProto.UINT32, [2], [1, 2]))
    proto.graph.initializer.append(helper.make_tensor("none", TensorProto.DOUBLE, [0], []))
    assert inspect(write(tmp_path, proto)) is not None


def test_freezing_at_a_size_that_no_machine_holds_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    open_ended = contract("x: float32[batch, 3]", outputs="x_out: float32[batch, 3]")
    path = tmp_path / "m.onnx"
    path.write_bytes(echo_bytes(open_ended))
    assert code(lambda: files.freeze(path, tmp_path / "one.onnx", {"batch": 99_999_999_999})) == "AS047"
    assert not (tmp_path / "one.onnx").exists()
