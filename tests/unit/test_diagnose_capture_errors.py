"""Why torch.export stops at a line: the finding speaks of what that line does."""

from __future__ import annotations

import pytest
import torch

import anyshape


class Fitted(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.lstsq(x, x.sum(1, keepdim=True)).solution


class Seeded(torch.nn.Module):
    def forward(self, x):
        return x + torch.rand(x.shape[0], 3, generator=torch.Generator().manual_seed(x.shape[0]))


def refused(model: torch.nn.Module) -> anyshape.Finding:
    with pytest.raises(anyshape.PromiseBroken) as raised:
        anyshape.export(model, lambda n=5: torch.randn(n, 3), where=["3 <= n <= 9"])
    assert raised.value.finding.code == "AS110"
    return raised.value.finding


def test_an_operator_whose_shapes_are_known_only_when_it_runs_is_named() -> None:
    finding = refused(Fitted())
    assert "aten::linalg_lstsq" in finding.why
    assert "known only when it runs" in finding.why
    assert "other operators" in finding.fix


def test_a_function_that_takes_no_open_size_is_no_matter_of_loops_and_ints() -> None:
    finding = refused(Seeded())
    assert "manual_seed" in finding.why
    assert finding.fix.startswith("write it with functions of torch that take sizes as they are")
