"""A dim that answers at one size only: the layer or the tensor that fixes it is named, with the line that makes it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import anyshape
from anyshape.findings import Finding


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.ReLU(), nn.Linear(10, 5))  # makes it

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


class Flattened(nn.Module):
    """At t = 1 and 2 the kernel is larger than its input; at all other sizes the linear layer is the cause."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 3, 3)
        self.fc = nn.Linear(24, 5)  # makes it

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.conv(x).flatten(1))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(7, 5, batch_first=True)  # makes it

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.rnn(x)[0]


class Factor(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(12, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.w


def refused(module: nn.Module, x: torch.Tensor, words: str) -> Finding:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(module, x, dynamic={"x": words})
    assert broken.value.finding.code == "AS102"
    return broken.value.finding


@pytest.mark.parametrize(
    ("module", "x", "words", "says"),
    [
        (Head(), torch.randn(3, 10), "b n", "'net.1' is Linear with in_features=10"),
        (Recurrent(), torch.randn(2, 4, 7), "b t n", "'rnn' is LSTM with input_size=7"),
        (Flattened(), torch.randn(2, 2, 10), "b 2 t", "'fc' is Linear with in_features=24"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, nn.Module) else "",
)
def test_the_layer_and_the_line_that_makes_it_are_named(
    module: nn.Module, x: torch.Tensor, words: str, says: str
) -> None:
    why = refused(module, x, words).why
    assert says in why
    line = int(why.rpartition(".py:")[2].partition(")")[0])
    assert "# makes it" in Path(__file__).read_text(encoding="utf-8").splitlines()[line - 1]


def test_the_width_of_a_layer_is_to_be_declared_as_a_number() -> None:
    finding = refused(Head(), torch.randn(3, 10), "b n")
    assert finding.fix == "n is the width of 'net.1', which its weights fix: declare a number, x: b 10"


def test_the_refusal_that_is_shown_has_the_cause_of_those_nearest_to_the_one_size() -> None:
    finding = refused(Flattened(), torch.randn(2, 2, 10), "b 2 t")
    assert "mat1 and mat2" in finding.why
    assert finding.fix.startswith("let 'fc' take 24 at every t: ")


def test_a_factor_that_the_model_holds_is_named_and_no_part_of_it_is_proposed() -> None:
    finding = refused(Factor(), torch.randn(3, 12), "b n")
    assert "'w', which the model holds with shape [12, 4], is used there." in finding.why
    assert finding.fix == "n is an axis of 'w', which the model holds: declare a number, x: b 12"


class WritesColumns(nn.Module):
    """Takes as many columns as there are indices: only the number of rows is that of the table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.zeros(1, 8192, 4)

    def forward(self, index: torch.Tensor, update: torch.Tensor) -> torch.Tensor:
        copy = self.table.clone()
        copy[..., index] = update
        return copy


def test_a_dim_that_has_to_equal_another_is_not_said_to_have_one_size() -> None:
    inputs = {"index": torch.tensor([0, 3, 2, 1]), "update": torch.randn(8192, 4)}
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(WritesColumns(), inputs, dynamic={"index": "chosen", "update": "rows columns"})
    assert [finding.about for finding in broken.value.findings] == [("rows",)]
    assert "only for rows = 8192 or 1" in str(broken.value)
