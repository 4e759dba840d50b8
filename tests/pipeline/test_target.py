"""target="onnxruntime": the file has the fused operators of onnxruntime's optimizer, and is verified with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

import anyshape
from anyshape.exporting import targets
from anyshape.findings import UsageError
from anyshape.runtime.child_messages import RuntimeRejected


class Block(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + self.narrow(nn.functional.gelu(self.wide(x))))


def inputs(batch: int = 3, seq: int = 5) -> torch.Tensor:
    return torch.randn(batch, seq, 16)


def export(model: nn.Module, path: Path, **options: object) -> anyshape.Export:
    torch.manual_seed(0)
    given = {"where": ["1 <= batch <= 8", "1 <= seq <= 16"], "target": "onnxruntime", **options}
    return anyshape.export(model.eval(), inputs, path, **given)  # type: ignore[arg-type]


def operators(path: Path) -> set[str]:
    return {f"{node.domain}::{node.op_type}" for node in onnx.load(path).graph.node}


def shapes(values: object) -> list[list[str | int]]:
    return [[axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim] for value in values]  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def fused(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, nn.Module, anyshape.Export]:
    path, model = tmp_path_factory.mktemp("target") / "m.onnx", Block()
    return path, model, export(model, path)


def test_the_file_has_fused_operators_and_the_contract_names_the_runtime(
    fused: tuple[Path, nn.Module, anyshape.Export],
) -> None:
    path, _, result = fused
    assert "com.microsoft::BiasGelu" in operators(path)
    assert result.contract.target == "onnxruntime" and result.findings == ()
    assert result.verdict.passed and len(result.verdict.tried) > 8
    assert {each.domain for each in onnx.load(path).opset_import} == {"", "com.microsoft"}


def test_names_and_shapes_of_inputs_and_outputs_are_kept(fused: tuple[Path, nn.Module, anyshape.Export]) -> None:
    graph = onnx.load(fused[0]).graph
    assert [value.name for value in (*graph.input, *graph.output)] == ["x", "output"]
    assert shapes((*graph.input, *graph.output)) == [["batch", "seq", 16], ["batch", "seq", 16]]


def test_nodes_keep_the_lines_of_user_code(fused: tuple[Path, nn.Module, anyshape.Export]) -> None:
    lines = [entry.value for node in onnx.load(fused[0]).graph.node for entry in node.metadata_props]
    assert any("test_target.py" in line for line in lines)


def test_the_loaded_file_returns_what_the_model_returns(fused: tuple[Path, nn.Module, anyshape.Export]) -> None:
    path, model, _ = fused
    x = torch.randn(7, 11, 16)
    torch.testing.assert_close(anyshape.load(path)(x), model(x).detach(), rtol=1e-4, atol=1e-5)


def test_the_graph_refuses_sizes_outside_its_contract(fused: tuple[Path, nn.Module, anyshape.Export]) -> None:
    session = onnxruntime.InferenceSession(str(fused[0]), providers=["CPUExecutionProvider"])
    with pytest.raises(Exception, match=r"batch of .x. must be 1 to 8"):
        session.run(None, {"x": np.zeros((9, 3, 16), np.float32)})


def test_large_weights_are_the_tensors_of_the_model(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(16, 600), nn.Linear(600, 600), nn.GELU())
    result = export(model, tmp_path / "m.onnx", external_data=True, enforce="load")
    assert result.contract.target == "onnxruntime" and next(tmp_path.glob("m.onnx.*.data")).stat().st_size > 1_400_000
    weights = [value.const_value for value in result.model.graph.initializers.values()]
    assert not any(type(weight).__name__ == "ExternalTensor" for weight in weights)
    x = torch.randn(2, 3, 16)
    torch.testing.assert_close(anyshape.load(tmp_path / "m.onnx")(x), model(x).detach(), rtol=1e-4, atol=1e-5)


def test_a_wrong_optimizer_leaves_the_portable_file_and_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sabotaged(source: Path, target: Path) -> None:
        model = onnx.load(source)
        next(node for node in model.graph.node if node.op_type == "Erf").op_type = "Tanh"
        onnx.save(model, target)

    monkeypatch.setattr(targets, "optimize_file", sabotaged)
    result = export(Block(), tmp_path / "m.onnx")
    assert [finding.code for finding in result.findings] == ["AS423"] and result.is_kept
    assert "changed what the file returns" in result.findings[0].why
    assert result.contract.target == "" and "::Erf" in operators(tmp_path / "m.onnx")


@pytest.mark.parametrize("renamed", ["input", "output"])
def test_an_optimizer_that_renames_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renamed: str) -> None:
    def renaming(source: Path, target: Path) -> None:
        model = onnx.load(source)
        getattr(model.graph, renamed)[0].name += "_2"
        onnx.save(model, target)

    monkeypatch.setattr(targets, "optimize_file", renaming)
    result = export(nn.ReLU(), tmp_path / "m.onnx")
    assert [finding.code for finding in result.findings] == ["AS423"] and "other names" in result.findings[0].why


def test_an_optimizer_that_writes_nothing_leaves_the_portable_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rejecting(source: Path, target: Path) -> None:
        raise RuntimeRejected("its process ended with status -11")

    monkeypatch.setattr(targets, "optimize_file", rejecting)
    result = export(nn.ReLU(), tmp_path / "m.onnx")
    assert [finding.code for finding in result.findings] == ["AS423"] and "status -11" in result.findings[0].why


def test_a_wrong_model_is_an_error_about_the_model(tmp_path: Path) -> None:
    class Baked(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.view(3, -1)

    with pytest.raises(anyshape.PromiseBroken) as broken:
        export(Baked(), tmp_path / "m.onnx")
    assert "AS423" not in [finding.code for finding in broken.value.findings]


def test_branches_on_sizes_and_values_are_optimized_as_one_file(tmp_path: Path) -> None:
    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = Block()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.shape[0] > 4:
                return self.block(x)
            return self.block(x) * 2 if x.sum() > 0 else x - 1

    model = Branches()
    result = export(model, tmp_path / "m.onnx")
    assert result.contract.target == "onnxruntime"
    for size in (2, 6):
        for sign in (1, -1):
            x = sign * torch.rand(size, 3, 16)
            torch.testing.assert_close(anyshape.load(tmp_path / "m.onnx")(x), model(x).detach(), rtol=1e-4, atol=1e-5)


def test_a_file_without_fused_operators_is_for_any_runtime(tmp_path: Path) -> None:
    result = export(nn.ReLU(), tmp_path / "m.onnx", enforce="load")
    assert result.contract.target == "" and result.findings == () and operators(tmp_path / "m.onnx") == {"::Relu"}


def test_an_unknown_target_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="AS060"):
        export(nn.ReLU(), tmp_path / "m.onnx", target="tensorrt")


def test_a_checked_file_may_have_fused_operators(fused: tuple[Path, nn.Module, anyshape.Export]) -> None:
    path, model, _ = fused
    assert anyshape.check(path, model, inputs, where=["1 <= batch <= 8", "1 <= seq <= 16"]).passed
