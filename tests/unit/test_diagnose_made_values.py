"""A refusing model is called again to blame the values that we made only where we made any."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from anyshape.diagnose.value_findings import diagnose_made_values
from anyshape.inputs import Declared, declare
from anyshape.records.explored import Explored
from anyshape.records.verdict import Refusal


class Table(nn.Module):
    def __init__(self, calls: list[int]) -> None:
        super().__init__()
        self.note = calls.append
        self.table = nn.Embedding(4, 2)

    def forward(self, x: torch.Tensor) -> Any:
        self.note(len(x))
        if len(x) > 5 and int(x.max()) > 1:
            raise IndexError("index out of range")
        return self.table(x.long().clamp(0, 3))


def refused_at(sizes: dict[str, int]) -> Explored:
    refused = (Refusal(sizes, "IndexError: index out of range"),)
    return Explored(rules=(), answered=({"n": 3},), corners=(), refused=refused, pinned={}, is_explained=False)


def diagnose(declared: Declared, module: Table, calls: list[int]) -> list[str]:
    calls.clear()
    return [finding.code for finding in diagnose_made_values(module, declared, refused_at({"n": 40}))]


def test_values_of_a_function_or_of_floats_are_not_ours_to_blame() -> None:
    calls: list[int] = []
    module = Table(calls)
    by_function = declare(module, lambda n=3: {"x": torch.randint(4, (n,))})
    of_floats = declare(module, torch.zeros(3), dynamic={"x": "n"})
    for declared in (by_function, of_floats):
        assert diagnose(declared, module, calls) == [] and calls == []


def test_integers_that_we_made_are() -> None:
    calls: list[int] = []
    module = Table(calls)
    declared = declare(module, torch.tensor([0, 3, 2]), dynamic={"x": "n"})
    assert diagnose(declared, module, calls) == ["AS027"] and calls
