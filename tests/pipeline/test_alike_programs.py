"""Regions whose programs are alike share one program of the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

import anyshape
from anyshape.domain import TRUE, holds, parse_condition
from anyshape.exporting import attempts
from anyshape.records.captured import Region
from anyshape.translate.alike_programs import merge_alike


class TwoOfThree(nn.Module):
    """Three ways to two programs: the first and the last way compute the same."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 5:
            if x.shape[1] > 7:
                return self.layer(x) * 2
            return self.layer(x) + 1
        return self.layer(x) * 2


class OtherConstants(TwoOfThree):
    """Three ways to three programs: they differ by a constant tensor alone."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        factor = 2.0
        if x.shape[0] > 5:
            factor = 3.0 if x.shape[1] > 7 else 4.0
        return self.layer(x) * torch.tensor([factor, 1.0, 1.0, 1.0])


def inputs(batch: int = 3, seq: int = 5) -> dict[str, torch.Tensor]:
    return {"x": torch.randn(batch, seq, 4)}


@pytest.fixture
def translated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many programs each file was translated from."""
    counts: list[int] = []
    join = attempts.join_regions

    def counted(parts: Any, *others: Any) -> Any:
        counts.append(len(parts))
        return join(parts, *others)

    monkeypatch.setattr(attempts, "join_regions", counted)
    return counts


def assert_right(path: Path, model: nn.Module) -> None:
    session = onnxruntime.InferenceSession(path)
    for batch in (1, 5, 6, 9):
        for seq in (1, 7, 8, 11):
            x = torch.randn(batch, seq, 4)
            got = session.run(None, {"x": x.numpy()})[0]
            np.testing.assert_allclose(got, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_regions_with_one_program_are_one_branch_of_the_file(tmp_path: Path, translated: list[int]) -> None:
    model = TwoOfThree()
    result = anyshape.export(model, inputs, tmp_path / "m.onnx", isolate=False)
    assert len(result.regions) == 3
    assert translated[-1] == 2
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert [node.op_type for node in graph.node].count("If") == 1
    assert_right(tmp_path / "m.onnx", model)


def test_regions_that_differ_by_a_constant_stay_apart(tmp_path: Path, translated: list[int]) -> None:
    model = OtherConstants()
    anyshape.export(model, inputs, tmp_path / "m.onnx", isolate=False)
    assert translated[-1] == 3
    assert_right(tmp_path / "m.onnx", model)


class Scaled(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor


def region(factor: float, condition: str) -> Region:
    program = torch.export.export(Scaled(factor), (torch.randn(3),))
    return Region(program, {}, (), {"n": 3}, parse_condition(condition))


@pytest.mark.parametrize(
    "factors", [(2, 3, 2, 3), (2, 3, 3, 2), (2, 2, 3, 3), (2, 3, 4, 2), (2, 2, 2, 2), (2, 3, 4, 3)]
)
def test_each_size_is_answered_by_the_program_that_answered_it(factors: tuple[float, ...]) -> None:
    texts = ("n > 20", "n % 2 == 0", "n > 9", "n > 4")
    regions = [region(factor, text) for factor, text in zip(factors, texts, strict=True)]
    regions[-1] = replace(regions[-1], condition=TRUE)
    merged = merge_alike(regions, ())
    assert len(merged) == len(set(factors))
    for n in range(40):
        before, after = (next(part for part in parts if holds(part.condition, {"n": n})) for parts in (regions, merged))
        assert before.program.module()(torch.ones(3)).equal(after.program.module()(torch.ones(3)))
