"""Contracts live in ONNX files, and are read without the graph; what is no ONNX model is known for what it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from contract_builder import contract, echo_bytes, echo_model

from anyshape.contract import KEY, find_contract, read_contract, read_model, write_contract
from anyshape.findings import UsageError
from anyshape.saving import model_bytes

PROMISED = contract("x: float32[batch, seq]", "1 <= batch <= 64", outputs="x_out: float32[batch, seq]")


def code(source: Path | bytes) -> str:
    with pytest.raises(UsageError) as caught:
        find_contract(source)
    return caught.value.finding.code


def test_a_contract_is_found_wherever_the_model_is(tmp_path: Path) -> None:
    data = echo_bytes(PROMISED)
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    proto = onnx.load_model_from_string(data)
    for source in (path, str(path), data, proto, ir.from_proto(proto)):
        assert find_contract(source) == PROMISED


def test_writing_twice_leaves_one_contract_and_the_other_metadata() -> None:
    proto = ir.to_proto(echo_model(PROMISED))
    proto.metadata_props.add(key="author", value="someone")
    write_contract(proto, contract("x: float32[a]"))
    write_contract(proto, PROMISED)
    assert [entry.key for entry in proto.metadata_props] == ["author", KEY]
    assert find_contract(proto) == PROMISED


def test_onnx_itself_finds_the_contract_under_its_key(tmp_path: Path) -> None:
    proto = onnx.load_model_from_string(echo_bytes(PROMISED))
    assert [entry.key for entry in proto.metadata_props] == ["anyshape.contract"]


def test_a_file_of_another_exporter_has_none() -> None:
    assert find_contract(model_bytes(echo_model(PROMISED))) is None


def test_reading_falls_back_on_what_the_graph_declares(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model_bytes(echo_model(PROMISED)))
    found, is_own = read_contract(path)
    assert (found.status, found.inputs, is_own) == ("unknown", PROMISED.inputs, False)
    path.write_bytes(echo_bytes(PROMISED))
    assert read_contract(path) == (PROMISED, True)


def test_weights_in_another_file_are_not_needed(tmp_path: Path) -> None:
    proto = onnx.load_model_from_string(echo_bytes(PROMISED))
    tensor = onnx.numpy_helper.from_array(np.zeros(9, np.float32), "w")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="nowhere.data")
    proto.graph.initializer.append(tensor)
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    assert find_contract(path) == PROMISED
    assert read_model(path).graph.initializer[0].name == "w"


def test_a_missing_file_is_a_missing_file(tmp_path: Path) -> None:
    assert code(tmp_path / "m.onnx") == "AS040"
    assert code(tmp_path / "no" / "m.onnx") == "AS040"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert code(tmp_path) == "AS040"


def test_a_file_that_may_not_be_read_is_said_to_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbid(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbid)
    assert code(tmp_path / "m.onnx") == "AS040"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello, world\n" * 9,
        b"PK\x03\x04" + bytes(99),
        b"\x89PNG\r\n\x1a\n",
        bytes(100),
        b"\xff" * 100,
        b'{"a": 1}',
    ],
    ids=["empty", "text", "zip", "png", "zeros", "ones", "json"],
)
def test_something_else_is_not_onnx(data: bytes) -> None:
    assert code(data) == "AS041"


def test_a_file_cut_anywhere_before_its_metadata_is_refused() -> None:
    data = echo_bytes(PROMISED)
    end_of_graph = len(model_bytes(echo_model(PROMISED)))
    assert {code(data[:end]) for end in range(2)} == {"AS041"}
    assert {code(data[:end]) for end in range(2, end_of_graph)} == {"AS042"}


def test_a_file_cut_in_its_metadata_is_refused() -> None:
    data = echo_bytes(PROMISED)
    end_of_graph = len(model_bytes(echo_model(PROMISED)))
    assert {code(data[:end]) for end in range(end_of_graph + 1, len(data))} == {"AS042"}


def test_reading_a_model_refuses_what_protobuf_refuses(tmp_path: Path) -> None:
    good = echo_bytes(PROMISED)
    start = good.index(b"echo")
    path = tmp_path / "m.onnx"
    path.write_bytes(good[: start - 2] + b"\xff\xff\xff" + good[start + 1 :])  # the graph's inside, its outside is well
    with pytest.raises(UsageError) as caught:
        read_model(path)
    assert caught.value.finding.code == "AS041"


@pytest.mark.parametrize("seed", range(3))
def test_random_bytes_never_do_worse_than_a_finding(seed: int) -> None:
    random = np.random.default_rng(seed)
    good = bytearray(echo_bytes(PROMISED))
    for _ in range(300):
        damaged = bytearray(good)
        for _ in range(int(random.integers(1, 4))):
            damaged[int(random.integers(len(damaged)))] = int(random.integers(256))
        try:
            find_contract(bytes(damaged))
        except UsageError as error:
            assert error.finding.code in ("AS041", "AS042", "AS045", "AS046")
