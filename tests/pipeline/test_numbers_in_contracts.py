"""A Python number that follows the dims is held to their ranges and rules, by `load` and by the file itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import anyshape
from anyshape.contract.from_json import contract_from_plain
from anyshape.records.contract import contract_as_plain


class Scaled(nn.Module):
    def forward(self, x: torch.Tensor, k: int) -> torch.Tensor:
        return x * k if k < 4 else x - k


class Top(nn.Module):
    def forward(self, x: torch.Tensor, k: int) -> torch.Tensor:
        return x[:k] + k


class Counted(nn.Module):
    def forward(self, x: torch.Tensor, k: int) -> torch.Tensor:
        return x.sum(0) / k


def free(batch: int = 3, k: int = 2) -> tuple[torch.Tensor, int]:
    return torch.randn(batch, 4), k


def tied(batch: int = 3) -> tuple[torch.Tensor, int]:
    return torch.randn(batch, 4), batch + 1


@pytest.mark.parametrize(
    ("module", "inputs", "where", "legal", "others"),
    [
        (Scaled(), free, ["1 <= k <= 6"], [(2, 1), (5, 4), (2, 6)], [(2, 7), (2, 0), (2, -1)]),
        (Top(), free, ["k <= batch", "batch <= 9"], [(2, 1), (2, 2), (5, 4)], [(2, 3), (2, 0)]),
        (Counted(), tied, ["batch <= 9"], [(2, 3), (9, 10)], [(2, 2), (2, 4)]),
    ],
)
def test_numbers_outside_the_declaration_are_refused(
    module: nn.Module, inputs: Any, where: list[str], legal: Any, others: Any, tmp_path: Path
) -> None:
    path = str(tmp_path / "model.onnx")
    result = anyshape.export(module, inputs, path, where=where)
    assert contract_from_plain(contract_as_plain(result.contract)).inputs == result.contract.inputs
    session, loaded = onnxruntime.InferenceSession(path), anyshape.load(path)
    for batch, k in legal:
        x = torch.randn(batch, 4)
        (actual,) = session.run(None, {"x": x.numpy(), "k": np.array(k)})
        np.testing.assert_allclose(actual, module(x, k), rtol=1e-5)
        np.testing.assert_allclose(loaded(x, k), module(x, k), rtol=1e-5)
    for batch, k in others:
        x = torch.randn(batch, 4)
        with pytest.raises(anyshape.ContractBroken):
            loaded(x, k)
        with pytest.raises(Exception, match="anyshape AS40"):
            session.run(None, {"x": x.numpy(), "k": np.array(k)})
