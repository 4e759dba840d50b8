"""Opset 17: the same answers in older words, or a refusal that names what 17 has no word for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import pytest
import torch
import torch.nn.functional as F

import anyshape


class Function(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def inputs(batch: int = 3, seq: int = 5) -> torch.Tensor:
    return torch.randn(batch, seq, 8)


MODELS = {
    "reductions": lambda x: (x.amax(1), x.prod(1), x.mean((0, 2)), x.norm(dim=2), x.logsumexp(1), x.var(1)),
    "padding": lambda x: F.pad(x, (1, 2)),
    "pieces": lambda x: (*x.chunk(2, 2), *x.tensor_split(3, 1)),
    "resizing": lambda x: F.interpolate(x[:, None], scale_factor=1.5, mode="bilinear"),
    "pooling": lambda x: F.adaptive_avg_pool1d(x, 3),
    "prefixes": lambda x: x.cummax(1).values,
    "branch": lambda x: x.amax(1) * 2 if x.shape[0] > 3 else x.amax(1) + 1,
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.long_table
def test_the_file_has_opset_17_and_is_right(name: str) -> None:
    result = anyshape.export(Function(MODELS[name]), inputs, opset=17)
    proto = result.model_proto
    onnx.checker.check_model(proto, full_check=True)
    assert [entry.version for entry in proto.opset_import if entry.domain == ""] == [17]
    assert result.verdict.passed


@pytest.mark.parametrize(
    ("function", "word"),
    [
        (lambda x: x.long() & 3, "BitwiseAnd"),
        (lambda x: x.scatter_reduce(1, torch.zeros_like(x, dtype=torch.int64), x, "amax"), "ScatterElements"),
    ],
    ids=["bitwise", "scatter-by-maximum"],
)
def test_what_17_has_no_word_for_is_refused_by_name(function: Callable[..., Any], word: str) -> None:
    with pytest.raises(anyshape.PromiseBroken) as caught:
        anyshape.export(Function(function), inputs, opset=17)
    assert caught.value.finding.code == "AS203"
    assert word in (caught.value.finding.why or "")
