"""Indices below 0: a file refuses them where the module does, whatever the declaration."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import anyshape


class Looked(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(10, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table(ids)


class Selected(Looked):
    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table.weight.index_select(0, ids[0])


class FromOne(Looked):
    """Numbers from 1 on, joined with others: 0 is none of them."""

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table(torch.cat([ids - 1 + 1, ids], 1))


class CountedFromTheEnd(Looked):
    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table.weight[ids]


def inputs(n: int = 3) -> dict[str, torch.Tensor]:
    return {"ids": torch.randint(0, 10, (n, 5))}


@pytest.mark.parametrize("module", [Looked(), Selected(), FromOne()], ids=lambda each: type(each).__name__)
def test_a_table_refuses_them(module: torch.nn.Module, tmp_path) -> None:
    anyshape.export(module, inputs, tmp_path / "m.onnx")
    loaded = anyshape.load(tmp_path / "m.onnx")
    given = inputs(4)
    np.testing.assert_array_equal(loaded(**given), module(**given).detach())
    with pytest.raises(anyshape.AnyshapeError, match="an index beyond its table"):
        loaded(ids=-given["ids"] - 1)


def test_an_index_in_brackets_counts_from_the_end(tmp_path) -> None:
    module = CountedFromTheEnd()
    anyshape.export(module, inputs, tmp_path / "m.onnx")
    given = {"ids": -inputs(4)["ids"] - 1}
    np.testing.assert_array_equal(anyshape.load(tmp_path / "m.onnx")(**given), module(**given).detach())
