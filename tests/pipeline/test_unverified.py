"""verify="none": a file that was not compared is marked as such, and cannot be taken for one that was."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import anyshape
from anyshape.contract import find_contract
from anyshape.exporting import attempts
from anyshape.report.text import describe_export, describe_inspection


def inputs(batch: int = 3, seq: int = 5) -> torch.Tensor:
    return torch.randn(batch, seq, 4)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).mean(1)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Model, anyshape.Export]:
    path, model = tmp_path_factory.mktemp("unverified") / "m.onnx", Model()
    return path, model, anyshape.export(model, inputs, path, verify="none")


def test_nothing_is_compared_and_everything_says_so(written: tuple[Path, Model, anyshape.Export]) -> None:
    path, _, result = written
    assert result.verdict.tried == () and not result.is_kept
    assert [finding.code for finding in result.findings] == ["AS317"]
    contract = find_contract(path)
    assert contract is not None and contract.status == "unverified" and contract.tested.sizes == ()
    assert describe_export(result).startswith(f"UNVERIFIED: {path} capture proved, file not compared")
    assert describe_inspection(contract, "m.onnx", True).startswith("unverified: m.onnx")


def test_the_file_is_refused_until_it_is_compared_and_signed(
    written: tuple[Path, Model, anyshape.Export], tmp_path: Path
) -> None:
    unsigned, model, _ = written
    path = tmp_path / "m.onnx"
    shutil.copy(unsigned, path)
    with pytest.raises(anyshape.ContractBroken, match="AS425"):
        anyshape.load(path)
    assert anyshape.load(path, allow_broken=True)(inputs().numpy()).shape == (3, 6)
    assert find_contract(path).tested.worst_error == {}
    verdict = anyshape.check(path, model, inputs, sign=True)
    assert verdict.passed
    share = {each.output: pytest.approx(each.worst / each.allowed, rel=0.01) for each in verdict.outputs}
    contract = find_contract(path)
    assert share and contract.tested.worst_error == share
    assert "  error   output: " in describe_inspection(contract, "m.onnx", True)
    x = inputs(4, 7)
    np.testing.assert_allclose(anyshape.load(path)(x.numpy()), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_wrong_file_is_not_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_checks = attempts.add_checks

    def sabotaged(*given: object) -> object:
        exported = add_checks(*given)  # type: ignore[arg-type]
        next(node for node in exported.model.graph if node.op_type == "Relu").op_type = "Sigmoid"
        return exported

    monkeypatch.setattr(attempts, "add_checks", sabotaged)
    assert anyshape.export(nn.ReLU(), inputs, tmp_path / "m.onnx", verify="none").contract.status == "unverified"
    with pytest.raises(anyshape.PromiseBroken):
        anyshape.check(tmp_path / "m.onnx", nn.ReLU(), inputs, sign=True)
    contract = find_contract(tmp_path / "m.onnx")
    assert contract is not None and contract.status == "unverified"


class ByValues(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.sum() > 0 else x - 1


class Loop(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = x[:, 0]
        for step in range(1, x.shape[1]):
            total = total * 0.5 + x[:, step]
        return total


@pytest.mark.parametrize("model", [ByValues(), Loop()], ids=["values decide", "a loop"])
def test_a_capture_without_proof_needs_comparisons(model: nn.Module, tmp_path: Path) -> None:
    with pytest.raises(anyshape.PromiseBroken, match="AS426"):
        anyshape.export(model, inputs, tmp_path / "m.onnx", verify="none", time_limit=60)
    assert not (tmp_path / "m.onnx").exists()


class Shapely(nn.Module):
    """torch compares sizes with 1 here, in order to find strides: at 1 reshape gives a view, elsewhere a copy."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(4, 3, batch_first=True), nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        heads = x.transpose(0, 1)[:, :, None].expand(-1, -1, 3, -1)
        return self.head(self.lstm(x)[0]).sum() + heads.reshape(x.shape[1], x.shape[0] * 3, 4)


def test_the_choice_between_view_and_copy_needs_no_comparison(tmp_path: Path) -> None:
    model, path = Shapely().eval(), tmp_path / "m.onnx"
    assert anyshape.export(model, inputs, path, verify="none").contract.tested.capture_proved
    loaded = anyshape.load(path, allow_broken=True)
    for sizes in ((1, 1), (1, 4), (5, 1), (3, 5)):
        x = inputs(*sizes)
        np.testing.assert_allclose(loaded(x.numpy()), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


class Contiguous(nn.Module):
    """The method asks whether its tensor is contiguous, which sizes of 1 decide, before torch's dispatcher is called."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.transpose(0, 1).contiguous() * 2


def test_whether_a_method_copies_is_no_condition(tmp_path: Path) -> None:
    model, path = Contiguous(), tmp_path / "m.onnx"
    assert anyshape.export(model, inputs, path, verify="none").contract.tested.capture_proved
    loaded = anyshape.load(path, allow_broken=True)
    for sizes in ((1, 1), (1, 4), (5, 1), (3, 5)):
        x = inputs(*sizes)
        np.testing.assert_allclose(loaded(x.numpy()), model(x).numpy())


class AsksForContiguity(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        turned = x.transpose(0, 1)
        return turned * 2 if turned.is_contiguous() else turned - 1


def test_a_models_own_question_for_its_layout_is_a_condition(tmp_path: Path) -> None:
    with pytest.raises(anyshape.PromiseBroken, match=r"(?s)AS426.*Not proved: 'batch != 1'"):
        anyshape.export(AsksForContiguity(), inputs, tmp_path / "m.onnx", verify="none")


class ConvolvesAgain(nn.Module):
    """The second convolution gets channels last: torch chooses the layout of its result, by sizes of 1."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Conv2d(3, 4, 2), nn.LayerNorm(4), nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.norm(self.first(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2))


def test_the_layout_of_a_convolution_is_no_condition(tmp_path: Path) -> None:
    model, path = ConvolvesAgain(), tmp_path / "m.onnx"

    def images(batch: int = 3, h: int = 8, w: int = 9) -> torch.Tensor:
        return torch.randn(batch, 3, h, w)

    result = anyshape.export(model, images, path, where=["h >= 2", "w >= 2"], verify="none")
    assert result.contract.status == "unverified"
    verdict = anyshape.check(path, model, images)
    assert verdict.passed and any(sizes["batch"] == 1 for sizes in verdict.tried)


class Attends(nn.Module):
    """torch chooses a kernel by the sizes of the mask, and every kernel gives the same numbers."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        heads = x.unflatten(-1, (2, 4)).transpose(1, 2)
        mask = mask[:, None, None, :].expand(-1, 1, x.shape[1], -1)
        return nn.functional.scaled_dot_product_attention(heads, heads, heads, attn_mask=mask)


def test_the_kernel_of_attention_is_no_condition(tmp_path: Path) -> None:
    model, path = Attends(), tmp_path / "m.onnx"

    def tokens(batch: int = 3, seq: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(batch, seq, 8), torch.ones(batch, seq, dtype=torch.bool)

    result = anyshape.export(model, tokens, path, verify="none")
    assert result.contract.status == "unverified"
    verdict = anyshape.check(path, model, tokens)
    assert verdict.passed and any(sizes["batch"] == 1 for sizes in verdict.tried)


class WritesIntoShape(nn.Module):
    """Where seq is 1, the reshaped tensor is a view, and x changes with it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * 1.0
        flat = x.transpose(0, 1).reshape(-1, 4)
        flat += 1
        return x


class WritesIntoCopy(nn.Module):
    """The same with the method `contiguous`."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * 1.0
        turned = x.transpose(0, 1).contiguous()
        turned += 1
        return x


@pytest.mark.parametrize("model", [WritesIntoShape(), WritesIntoCopy()], ids=["reshape", "contiguous"])
def test_view_or_copy_is_a_condition_where_the_model_writes_into_tensors(model: nn.Module, tmp_path: Path) -> None:
    with pytest.raises(anyshape.PromiseBroken, match=r"(?s)AS426.*Not proved: .*!= 1") as broken:
        anyshape.export(model, inputs, tmp_path / "m.onnx", verify="none")
    assert len(broken.value.attempts) == 1


class AsksAfterReshape(nn.Module):
    """The user's own condition comes after torch's question about the same size."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.transpose(0, 1).reshape(-1, 4)
        return flat * 2 if x.shape[1] == 1 else flat - 1


def test_a_condition_of_the_users_is_seen_after_torch_has_compared_the_same_size(tmp_path: Path) -> None:
    model, path = AsksAfterReshape(), tmp_path / "m.onnx"
    result = anyshape.export(model, inputs, path, verify="none")
    assert len(result.regions) == 2
    loaded = anyshape.load(path, allow_broken=True)
    for sizes in ((1, 1), (4, 1), (3, 5)):
        x = inputs(*sizes)
        np.testing.assert_allclose(loaded(x.numpy()), model(x).detach().numpy())


def test_only_the_first_rung_is_tried_without_comparisons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stages: list[str] = []
    with pytest.raises(anyshape.PromiseBroken, match=r"(?s)AS426.*the rung 'symbolic' ended with AS"):
        anyshape.export(
            Loop(), inputs, tmp_path / "m.onnx", verify="none", progress=lambda stage, *_: stages.append(stage)
        )
    assert {stage for stage in stages if stage.startswith(("capturing", "exporting"))} == {"capturing (symbolic)"}
