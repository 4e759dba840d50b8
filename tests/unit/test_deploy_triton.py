"""Triton's model repository, read by Triton's own protobuf: axes, types, batching where rows are independent, warm-up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from google.protobuf import text_format
from tests.deployed import check_triton_config, export_decoder, read_triton_config, triton_protobuf

import anyshape
from anyshape.deploying.triton_target import text


@pytest.fixture(scope="module")
def protobuf() -> Any:
    return triton_protobuf()


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_decoder(tmp_path_factory.mktemp("triton") / "m.onnx")


def test_a_shared_batch_axis_is_left_to_triton(decoder: Path, protobuf: Any, tmp_path: Path) -> None:
    deployed = anyshape.deploy(decoder, "triton", tmp_path / "out", at={"batch": 4, "past": 1, "seq": 8})
    config = read_triton_config(tmp_path / "out", protobuf)
    assert config.max_batch_size == 8 and config.backend == "onnxruntime"
    assert {each.name: list(each.dims) for each in config.input} == {"ids": [-1], "past": [-1, 8], "mask": [-1]}
    assert {each.name: list(each.dims) for each in config.output} == {"logits": [-1, 5], "present": [-1, 8]}
    assert list(config.dynamic_batching.preferred_batch_size) == [4]
    assert [each.name for each in config.model_warmup] == ["smallest", "usual", "largest"]
    assert [each.batch_size for each in config.model_warmup] == [1, 4, 8]
    check_triton_config(config, decoder, tmp_path / "out", protobuf)
    assert "refuses 6 of 6 calls outside the contract" in str(deployed)


class OverRows(torch.nn.Module):
    """Every row depends on all rows, though the shapes do not show it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.softmax(0)


def exported(tmp_path: Path, module: torch.nn.Module, inputs: Any, *where: str, **options: Any) -> Path:
    anyshape.export(module, inputs, tmp_path / "m.onnx", where=where, verify="quick", **options)
    return tmp_path / "m.onnx"


@pytest.mark.parametrize(
    ("module", "where", "why"),
    [
        (OverRows(), ["1 <= batch <= 8"], "output 'output' of a row depends on the other rows of its batch"),
        (torch.nn.ReLU(), ["2 <= batch <= 8"], "batch does not take every size from 1 on"),
        (torch.nn.ReLU(), ["1 <= batch <= 8", "batch % 2 == 0"], "batch does not take every size from 1 on"),
        (torch.nn.ReLU(), ["1 <= batch <= 8", "batch * seq <= 24"], "a rule of the contract limits batch"),
        (torch.nn.Flatten(0), ["1 <= batch <= 8"], "no dim is the first axis of every input and output"),
    ],
)
def test_rows_that_may_not_be_put_together_are_not(
    protobuf: Any, tmp_path: Path, module: torch.nn.Module, where: list[str], why: str
) -> None:
    path = exported(tmp_path, module, lambda batch=2, seq=4: torch.randn(batch, seq), *where)
    deployed = anyshape.deploy(path, "triton", tmp_path / "out")
    config = read_triton_config(tmp_path / "out", protobuf)
    assert config.max_batch_size == 0 and not config.HasField("dynamic_batching")
    assert why in deployed.facts["why_no_batch"]
    assert list(config.input[0].dims) == [-1, -1]


def test_values_outside_zero_are_in_files_and_scalars_are_reshaped(protobuf: Any, tmp_path: Path) -> None:
    class Masked(torch.nn.Module):
        def forward(self, x: torch.Tensor, lengths: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
            return (x * (lengths[:, None] > torch.arange(x.shape[1])[None])).sum() * scale

    def inputs(batch: int = 2, seq: int = 4) -> dict[str, torch.Tensor]:
        lengths = torch.randint(1, seq + 1, (batch,))
        return {"x": torch.randn(batch, seq), "lengths": lengths, "scale": torch.tensor(2.0)}

    values = {"lengths": "1 <= lengths <= seq"}
    path = exported(tmp_path, Masked(), inputs, "1 <= batch <= 4", "1 <= seq <= 8", values=values)
    anyshape.deploy(path, "triton", tmp_path / "out")
    config = read_triton_config(tmp_path / "out", protobuf)
    assert config.output[0].HasField("reshape") and list(config.output[0].dims) == [1]
    data = (tmp_path / "out" / "m" / "warmup" / config.model_warmup[0].inputs["lengths"].input_data_file).read_bytes()
    assert (np.frombuffer(data, np.int64) >= 1).all()


def test_a_file_without_its_defence_is_told(tmp_path: Path) -> None:
    path = exported(tmp_path, torch.nn.ReLU(), lambda batch=2: torch.randn(batch, 4), "batch <= 8", enforce="load")
    deployed = anyshape.deploy(path, "triton", tmp_path / "out")
    assert [finding.name for finding in deployed.findings] == ["sizes-not-refused"]
    assert "sizes-not-refused" in (tmp_path / "out" / "contract.json").read_text()


def test_any_name_is_one_string_of_the_text_format(protobuf: Any) -> None:
    for name in ('a"b', "back\\slash", "line\nbreak", "größe", "}; name: 'x'", "\x00"):
        config = text_format.Parse(f"name: {text(name)}", protobuf.ModelConfig())
        assert config.name == name
