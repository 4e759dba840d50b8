"""The IR of `anyshape deploy --to openvino`: ranges of axes, run against onnxruntime or the model, and kept only if equal."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.deployed import DECODER_VALUES, Decoder, decoder_inputs, export_decoder, read_ir_shapes

import anyshape
from anyshape.deploying import openvino_target
from anyshape.runtime import ChildRunner, RuntimeFailed
from anyshape.runtime.openvino_session import OpenvinoSession

pytestmark = pytest.mark.skipif(find_spec("openvino") is None, reason="openvino is not installed")


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_decoder(tmp_path_factory.mktemp("openvino") / "m.onnx")


def test_the_ir_has_the_ranges_of_the_contract_and_answers_as_the_file(decoder: Path, tmp_path: Path) -> None:
    deployed = anyshape.deploy(decoder, "openvino", tmp_path / "ir")
    assert read_ir_shapes(tmp_path / "ir" / "model.xml") == {
        "ids": "[1..8,1..32]",
        "past": "[1..8,..31,8]",
        "mask": "[1..8,1..32]",
    }
    assert deployed.facts["sizes_compared"] >= 10
    inputs = {name: value.numpy() for name, value in decoder_inputs(batch=5, past=2, seq=6).items()}
    expected = anyshape.load(decoder)(**inputs)
    for one, other in zip(expected, OpenvinoSession(tmp_path / "ir" / "model.xml").run(inputs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_what_openvino_answers_outside_the_contract_is_told_and_written(decoder: Path, tmp_path: Path) -> None:
    deployed = anyshape.deploy(decoder, "openvino", tmp_path / "ir")
    assert [finding.code for finding in deployed.findings] == ["AS557"]
    contract = json.loads((tmp_path / "ir" / "contract.json").read_text())
    assert [finding["code"] for finding in contract["findings"]] == ["AS557"]
    broken = {name: value.numpy() for name, value in decoder_inputs(batch=9).items()}
    with ChildRunner(tmp_path / "ir" / "model.xml", runtime="openvino") as runner, pytest.raises(RuntimeFailed):
        runner.run(broken)  # a range is refused by OpenVINO itself; a relation is not


def test_the_ir_is_compared_with_the_model_where_there_is_one(decoder: Path, tmp_path: Path) -> None:
    deployed = anyshape.deploy(
        decoder, "openvino", tmp_path / "ir", model=Decoder(), inputs=decoder_inputs, max_sizes={"batch": 4}
    )
    assert "equal to the PyTorch model at" in str(deployed)
    assert read_ir_shapes(tmp_path / "ir" / "model.xml")["ids"] == "[1..4,1..32]"


def test_an_ir_that_differs_from_the_model_is_not_kept(decoder: Path, tmp_path: Path) -> None:
    class Other(Decoder):
        def forward(
            self, ids: torch.Tensor, past: torch.Tensor, mask: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor]:
            logits, present = super().forward(ids, past, mask)
            return logits + 0.01, present

    with pytest.raises(anyshape.PromiseBroken, match="AS305"):
        anyshape.deploy(decoder, "openvino", tmp_path / "ir", model=Other(), inputs=decoder_inputs)
    assert list(tmp_path.iterdir()) == []


def test_an_ir_that_differs_from_the_file_is_not_kept(
    decoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Shifted(Decoder):
        def forward(
            self, ids: torch.Tensor, past: torch.Tensor, mask: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor]:
            logits, present = super().forward(ids, past, mask)
            return logits, present * 1.001

    other = tmp_path / "other.onnx"
    anyshape.export(
        Shifted(), decoder_inputs, other, where=["batch <= 8", "past >= 0", "past + seq <= 32"], values=DECODER_VALUES
    )
    save = openvino_target.save_ir
    monkeypatch.setattr(openvino_target, "save_ir", lambda model, target, shapes: save(other, target, shapes))
    with pytest.raises(anyshape.PromiseBroken, match="AS559 runtime-differs"):
        anyshape.deploy(decoder, "openvino", tmp_path / "ir")
    assert [each.name for each in tmp_path.iterdir()] == ["other.onnx"]
