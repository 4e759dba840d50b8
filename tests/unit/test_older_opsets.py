"""Opsets 11 to 16: the same answers in older forms, or a refusal that names the operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import pytest
import torch
import torch.nn.functional as F

import anyshape
from anyshape import compat

LAYER = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
LSTM = torch.nn.LSTM(8, 6, batch_first=True)


class Function(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def inputs(batch: int = 3, seq: int = 5) -> torch.Tensor:
    return torch.randn(batch, seq, 8)


def arithmetic(x: torch.Tensor) -> Any:
    whole = (x * 5).long()
    return (
        torch.where(x >= 0.5, x, x**2) + (x <= 0),
        whole.clamp(1, 3) + torch.maximum(whole, 2 - whole),
        F.hardswish(x),
    )


def shapes(x: torch.Tensor) -> Any:
    pieces = (*x.chunk(2, 2), *x.tensor_split(3, 1))
    return x.view(x.shape[0], -1).expand(2, -1, -1).flatten(0, 1), x.triu(1) + x.tril(-1), *pieces


MODELS: dict[str, Callable[..., Any]] = {
    "arithmetic": arithmetic,
    "shapes": shapes,
    "axes": lambda x: (x.softmax(1), x.log_softmax(-1), x.sum(1), F.layer_norm(x, (8,)), x.argmax(1), x.amax(2)),
    "resizing": lambda x: F.interpolate(x[:, None], scale_factor=1.5, mode="bilinear"),
    "branch": lambda x: x.amax(1) * 2 if x.shape[0] > 3 else x.amax(1) + 1,
    "transformer": LAYER.eval(),
    "recurrent": lambda x: LSTM(x)[0],
}


@pytest.mark.parametrize("opset", [11, 12, 13, 14, 15, 16])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.long_table
def test_the_file_has_the_opset_and_is_right(name: str, opset: int) -> None:
    model = MODELS[name]
    result = anyshape.export(model if isinstance(model, torch.nn.Module) else Function(model), inputs, opset=opset)
    proto = result.model_proto
    onnx.checker.check_model(proto, full_check=True)
    assert [entry.version for entry in proto.opset_import if entry.domain == ""] == [opset]
    assert result.verdict.passed and result.contract.strategy == "symbolic"
    assert ("AS427" in [finding.code for finding in result.findings]) == (opset < 13)


def test_an_empty_selection_is_reshaped_as_before(tmp_path: Any) -> None:
    def selected(x: torch.Tensor) -> torch.Tensor:
        return x[x[:, 0] > 0].view(-1, 2, 4)

    result = anyshape.export(selected, lambda n=3: torch.randn(n, 8), tmp_path / "m.onnx", opset=13)
    answer = anyshape.load(tmp_path / "m.onnx")(torch.full((3, 8), -1.0))
    assert result.verdict.passed and answer.shape == (0, 2, 4)


@pytest.mark.parametrize(
    ("function", "opset", "words"),
    [
        (lambda x: x.long() & 3, 16, "BitwiseAnd came with opset 18"),
        (lambda x: x.index_add(1, torch.tensor([0, 1, 0]), x[:, :3] * 2), 15, "has no reduction at opset 15"),
        (lambda x: F.grid_sample(x[:, None], x[:, :, None, :2].tanh()), 15, "GridSample came with opset 16"),
        (lambda x: (x * 3).to(torch.int8) + 1, 13, "INT8 at opset 13"),
    ],
    ids=["bitwise", "scatter-by-sum", "grid-sample", "small-integers"],
)
def test_what_an_opset_does_not_define_is_refused_by_operator(
    function: Callable[..., Any], opset: int, words: str
) -> None:
    with pytest.raises(anyshape.PromiseBroken) as caught:
        anyshape.export(Function(function), lambda batch=3: torch.randn(batch, 4, 8), opset=opset, strategy="symbolic")
    assert caught.value.finding.code == "AS203"
    assert words in (caught.value.finding.why or "")


def test_below_13_values_cannot_be_checked_by_the_graph() -> None:
    with pytest.raises(anyshape.AnyshapeError, match="AS428 opset-without-checks"):
        anyshape.export(torch.nn.ReLU(), inputs, opset=12, enforce_values=True)


def test_below_13_a_size_outside_the_contract_is_refused_by_load_alone(tmp_path: Any) -> None:
    with pytest.warns(compat.NotHonoured, match="AS427"):
        compat.export(
            torch.nn.ReLU(),
            (torch.randn(3, 4),),
            tmp_path / "m.onnx",
            opset_version=11,
            dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=8)},),
        )
    with pytest.raises(anyshape.AnyshapeError):
        anyshape.load(tmp_path / "m.onnx")(torch.randn(9, 4))
