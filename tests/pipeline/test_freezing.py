"""Dims made static: numbers at the inputs, fewer nodes, a renewed contract, the same answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

import anyshape
from anyshape import files
from anyshape.contract import find_contract
from anyshape.contract.digest import find_change
from anyshape.findings import DeclarationError, UsageError
from anyshape.runtime import Session

FOREIGN = (
    '<ir_version: 8, opset_import: ["" : 18]> g (float[batch, seq, 4] x) => (float[n, 2, 2] y) '
    "{ s = Shape (x) b = Slice (s, zero, two) p = ReduceProd (b) t = Concat <axis = 0> (p, rest) y = Reshape (x, t) }"
)


def foreign(folder: Path) -> Path:
    model = onnx.parser.parse_model(FOREIGN)
    numbers = {"zero": [0], "two": [2], "rest": [2, 2]}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.array(each), name) for name, each in numbers.items())
    onnx.save(model, folder / "m.onnx")
    return folder / "m.onnx"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    class Scores(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x @ x.transpose(1, 2)).reshape(x.shape[0], -1)

    path = tmp_path_factory.mktemp("frozen") / "m.onnx"
    inputs = lambda batch=3, seq=5: {"x": torch.randn(batch, seq, 4)}  # noqa: E731
    anyshape.export(Scores(), inputs, path, where=["1 <= batch <= 8", "1 <= seq <= 16"])
    return path


def test_a_frozen_file_has_numbers_fewer_nodes_and_the_same_answers(exported: Path, tmp_path: Path) -> None:
    frozen = files.freeze(exported, tmp_path / "one.onnx", {"batch": 2, "seq": 5})
    x = np.random.default_rng(0).random((2, 5, 4)).astype(np.float32)
    assert np.allclose(Session(frozen.path).run({"x": x})[0], Session(exported).run({"x": x})[0], atol=1e-6)
    shape = onnx.load(frozen.path).graph.input[0].type.tensor_type.shape
    assert [dim.dim_value for dim in shape.dim] == [2, 5, 4]
    assert frozen.folded > 0


def test_the_contract_is_renewed(exported: Path, tmp_path: Path) -> None:
    frozen = files.freeze(exported, tmp_path / "one.onnx", {"batch": 2})
    contract = find_contract(frozen.path)
    assert contract is not None and contract.status == "kept"
    assert contract.domain.names == ("seq",)
    assert str(contract.inputs[0]) == "x: float32[2, seq, 4]"
    assert find_change(frozen.path, contract, weights=True) is None
    loaded = anyshape.load(frozen.path)
    assert loaded(x=np.zeros((2, 7, 4), np.float32)).shape == (2, 49)
    with pytest.raises(anyshape.ContractBroken):
        loaded(x=np.zeros((3, 7, 4), np.float32))


def test_a_file_without_a_contract_gets_none(tmp_path: Path) -> None:
    frozen = files.freeze(foreign(tmp_path), tmp_path / "one.onnx", {"batch": 2, "seq": 3})
    assert not frozen.has_contract and find_contract(frozen.path) is None
    assert [node.op_type for node in onnx.load(frozen.path).graph.node] == ["Reshape"]


def test_sizes_outside_the_contract_and_unknown_dims_are_refused(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as outside:
        files.freeze(exported, tmp_path / "one.onnx", {"batch": 9})
    assert outside.value.finding.code == "AS064"
    with pytest.raises(DeclarationError) as unknown:
        files.freeze(exported, tmp_path / "one.onnx", {"bacth": 2})
    assert unknown.value.finding.code == "AS001"
    assert not (tmp_path / "one.onnx").exists()


def test_a_fixed_file_can_be_frozen_again(tmp_path: Path) -> None:
    static = '<ir_version: 8, opset_import: ["" : 18]> g (float[2, 6] x) => (float[2, 2, 3] y) { y = Reshape (x, s) }'
    model = onnx.parser.parse_model(static)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([2, 2, 3]), "s"))
    onnx.save(model, tmp_path / "static.onnx")
    files.fix(tmp_path / "static.onnx", tmp_path / "dynamic.onnx", {"x": "batch 6"})
    frozen = files.freeze(tmp_path / "dynamic.onnx", tmp_path / "one.onnx", {"batch": 5})
    assert Session(frozen.path).run({"x": np.zeros((5, 6), np.float32)})[0].shape == (5, 2, 3)
