"""Models that hide their sizes from torch are learned from traces, or refused by the line that no rule explains."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from tests.learned import learn
from torch import nn

from anyshape.capture.generalized import capture_generalized, is_settled
from anyshape.findings import PromiseBroken, Source
from anyshape.records.captured import Guard, Region

SIZES = [{"batch": 1, "length": 1}, {"batch": 2, "length": 2}, {"batch": 3, "length": 13}, {"batch": 5, "length": 64}]


def _inputs(batch: int = 3, length: int = 5) -> tuple[torch.Tensor]:
    return (torch.randn(batch, length, 8),)


class IntOfShape(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length = int(x.shape[0]), int(str(x.shape[1]))
        return x.reshape(batch * length, 8).view(batch, -1)


class NumpyOfShape(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count = int(np.prod(x.shape[:2]))
        return x.reshape(count, 8) / count


class ItemOfSize(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.tensor(x.shape).prod().item() + torch.arange(x.shape[1]).sum().item()


class FloatsOfSize(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / math.sqrt(x.shape[1]) * math.log(x.shape[1] + 1) + torch.full((8,), 1 / x.shape[0])


class MaskFromLists(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[1]
        mask = torch.tensor([[float(row >= column) for column in range(length)] for row in range(length)])
        places = torch.tensor([[row * 2 + column for column in range(length)] for row in range(length)])
        return (x @ x.transpose(1, 2)) * mask + places


class PadToMultiple(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        x = nn.functional.pad(x, (0, 0, 0, (4 - int(length) % 4) % 4))
        return x.view(batch, int(x.shape[1]) // 4, 4, width).mean(2)


class Slices(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        length = int(x.shape[1])
        return x[:, : min(length, 8)], x[:, length // 2 :], x[:, -1:], x[:, ::2], x[:, -(length // 2) - 1 :]


class Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, 64, 8))
        self.linear = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
        return self.linear(x + self.table[:, : int(x.shape[1])]), x.shape[1] * 2


MODELS = [IntOfShape, NumpyOfShape, ItemOfSize, FloatsOfSize, MaskFromLists, PadToMultiple, Slices]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_sizes_hidden_from_torch_stay_dynamic(model: type[nn.Module]) -> None:
    learned = learn(capture_generalized, model(), _inputs)
    assert learned.captured.strategy == "generalized"
    assert learned.differences(SIZES) == []


def test_weights_stay_initializers_under_their_names() -> None:
    learned = learn(capture_generalized, Weighted(), _inputs, ["length <= 64"])
    assert learned.differences(SIZES) == []
    assert {"module.table", "module.linear.bias"} <= set(learned.model.graph.initializers)


def test_the_capture_says_from_how_many_traces_it_was_fitted() -> None:
    learned = learn(capture_generalized, IntOfShape(), _inputs)
    assert "fitted from 8 traces, predicted 8 unseen ones" in [guard.text for guard in learned.captured.guards]


class BranchOnSize(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if int(x.shape[1]) > 4:
            return x[:, :4].sum(1)
        return x.mean(1)


class BranchOnParity(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if int(x.shape[1]) % 2 == 1:
            x = torch.cat([x, x[:, -1:]], 1)
        return x.view(x.shape[0], int(x.shape[1]) // 2, 16)


class BranchOnTwo(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if int(x.shape[0]) > int(x.shape[1]) else x.cumsum(1)


REGIONS = [(BranchOnSize, "length >= 5"), (BranchOnParity, "length % 2 == 0"), (BranchOnTwo, "batch - length >= 1")]


@pytest.mark.parametrize(("model", "condition"), REGIONS, ids=lambda value: getattr(value, "__name__", None))
def test_a_branch_on_sizes_becomes_two_regions(model: type[nn.Module], condition: str) -> None:
    learned = learn(capture_generalized, model(), _inputs)
    assert str(learned.captured.regions[0].condition) == condition
    lengths = [{"batch": batch, "length": length} for batch in (1, 6) for length in (1, 2, 4, 5, 6, 31)]
    assert {learned.region_of(sizes) for sizes in lengths} == {0, 1}
    assert learned.differences(lengths) == []


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x * 2
        return x - 1


class ValueAsSize(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, : int(x.abs().max().item())]


class NoRule(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * ((x.shape[1] * 7919) % 104729 % 97)


class NoRuleForTable(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.tensor([(place * 7919) % 104729 % 97 for place in range(x.shape[1])]).view(1, -1, 1)


REFUSED: list[tuple[type[nn.Module], str, str]] = [
    (Branch, "AS121", "if x.sum() > 0:"),
    (ValueAsSize, "AS121", "return x[:, : int(x.abs().max().item())]"),
    (NoRule, "AS120", "return x * ((x.shape[1]"),
    (NoRuleForTable, "AS123", "return x + torch.tensor"),
]


@pytest.mark.parametrize(("model", "code", "line"), REFUSED, ids=lambda value: getattr(value, "__name__", None))
def test_what_no_rule_explains_is_refused_by_its_line(model: type[nn.Module], code: str, line: str) -> None:
    with pytest.raises(PromiseBroken) as caught:
        learn(capture_generalized, model(), _inputs)
    where: Any = caught.value.finding.where
    assert caught.value.finding.code == code
    assert isinstance(where, Source)
    assert where.text.startswith(line)


def test_the_module_is_left_as_it_was() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))
            self.last: Any = None

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            self.last = x
            return x * int(x.shape[1])

    module = Counting()
    learn(capture_generalized, module, _inputs)
    assert module.last is None
    assert module.calls == 0


def _exported(*guards: tuple[str, str]) -> Any:
    found = tuple(Guard(None, text, None, False, status) for text, status in guards)  # type: ignore[arg-type]
    return Region(None, {}, found, {})  # type: ignore[arg-type]


def test_a_program_is_exported_at_further_sizes_until_it_has_the_same_open_conditions_twice() -> None:
    proved, one, other = _exported(("n > 0", "proved")), _exported(("n != 1", "refuted")), _exported(("m", "refuted"))
    assert is_settled([proved])
    assert is_settled([one, proved])
    assert not is_settled([one])
    assert not is_settled([one, other])
    assert is_settled([one, other, other])
