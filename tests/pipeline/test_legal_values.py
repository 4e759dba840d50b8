"""Integer inputs shown by an example only: exported, with learned bounds that hold in the contract and at run time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import anyshape

D = torch.export.Dim.DYNAMIC


class Pick(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return x[index] * 2


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(3, 4)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Any:
        output, last = self.rnn(pack_padded_sequence(x, lengths))
        return pad_packed_sequence(output)[0], last


class LastOfEach(nn.Module):
    def forward(self, x: torch.Tensor, lens: torch.Tensor) -> torch.Tensor:
        return x.gather(1, (lens - 1)[:, None])


def lengths_from_zero(b: int = 3, n: int = 5) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(b, n), "lens": torch.randint(0, n + 1, (b,))}


def test_a_function_that_makes_refused_values_is_named_with_the_values_that_are_taken() -> None:
    with pytest.raises(anyshape.PromiseBroken) as caught:
        anyshape.export(LastOfEach(), lengths_from_zero)
    finding = caught.value.finding
    assert finding.code == "AS316"
    assert "your function makes 0 for 'lens'" in finding.what
    assert 'values={"lens": "1 <= lens <= n"}' in finding.fix
    assert finding.where is not None and "gather" in finding.where.text


def test_declared_values_replace_those_of_a_function_that_are_outside(tmp_path: Path) -> None:
    values = {"lens": "1 <= lens <= n"}
    result = anyshape.export(LastOfEach(), lengths_from_zero, tmp_path / "m.onnx", values=values)
    assert result.findings == ()
    assert result.contract.values == values


def test_an_index_is_bounded_by_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    result = anyshape.export(
        Pick(), (torch.randn(5, 3), torch.tensor([0, 2, 4])), path, dynamic={"x": "rows 3", "index": "n"}
    )
    assert result.contract.values == {"index": "0 <= index < rows"}
    assert [finding.code for finding in result.findings] == ["AS315"]
    loaded, x = anyshape.load(path), torch.randn(9, 3)
    index = torch.tensor([8, 0, 8, 3, 1])
    torch.testing.assert_close(loaded(x, index), Pick()(x, index))
    with pytest.raises(anyshape.ContractBroken, match="AS421"):
        loaded(x, torch.tensor([9]))


def test_lengths_of_a_packed_sequence_are_learned(tmp_path: Path) -> None:
    path, model = tmp_path / "m.onnx", Packed().eval()
    result = anyshape.export(
        model, (torch.randn(7, 3, 3), torch.tensor([7, 4, 2])), path, dynamic=({0: D, 1: D}, {0: D})
    )
    assert result.contract.values == {"lengths": "1 <= lengths <= x_0"}
    loaded, x, lengths = anyshape.load(path), torch.randn(11, 4, 3), torch.tensor([9, 9, 3, 1])
    for actual, expected in zip(loaded(x, lengths), model(x, lengths), strict=True):
        torch.testing.assert_close(actual, expected)


def test_declared_values_are_kept_where_inputs_are_made_from_an_example(tmp_path: Path) -> None:
    result = anyshape.export(
        Pick(),
        (torch.randn(5, 3), torch.tensor([0, 2, 4])),
        tmp_path / "m.onnx",
        dynamic={"x": "rows 3", "index": "n"},
        values={"index": "0 <= index < rows"},
    )
    assert not result.findings


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(11, 4, mode="sum")

    def forward(self, ids, offsets):
        return self.bag(ids, offsets)


def test_offsets_that_begin_with_zero_and_rise_are_learned() -> None:
    """Others are refused, or give what lies in unfilled memory, which is no sign that the model is random."""
    example = (torch.tensor([8, 10, 10, 0, 5, 6, 7, 9]), torch.tensor([0, 1, 4]))
    result = anyshape.export(Bag(), example, dynamic={"ids": "n", "offsets": "bags"})
    (finding,) = result.findings
    assert finding.code == "AS315"
    assert "0 <= ids <= 10 and 0 <= offsets <= n, offsets rising, the first at its lowest" in finding.what


class Categories(nn.Module):
    """Each column goes to a table of its own."""

    def __init__(self, rows: tuple[int, ...]) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(count, 3) for count in rows])

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.cat([table(ids[:, at].long()) for at, table in enumerate(self.tables)], 1)


@pytest.mark.parametrize("rows", [(4, 5, 4), (4, 50, 7)], ids=str)
def test_categories_by_column_are_taken(rows: tuple[int, ...]) -> None:
    """The largest numbers of two columns are no bound of the third one."""
    ids = torch.stack([(torch.arange(8) * 3 + 1) % count for count in rows], 1)
    ids[0] = torch.tensor(rows) - 1
    result = anyshape.export(Categories(rows), (ids,), None, dynamic={"ids": "batch _"})
    assert result.strategy == "symbolic"
    assert result.contract.domain.dim("batch").max is None


class _OneTable(nn.Module):
    """The categories of all columns lie in one table, one column behind the other."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Embedding(15, 4)
        self.register_buffer("starts", torch.tensor([0, 5, 12]))

    def forward(self, categories):
        return self.rows(categories + self.starts).sum(1)


def test_categories_of_one_table_are_drawn_column_by_column(tmp_path) -> None:
    example = torch.tensor([[4, 6, 2], [0, 1, 0], [3, 0, 1], [2, 5, 2]])
    result = anyshape.export(_OneTable(), example, tmp_path / "m.onnx", dynamic={"categories": "batch _"})
    assert (result.contract.status, result.strategy) == ("kept", "symbolic")
    assert result.findings == ()
