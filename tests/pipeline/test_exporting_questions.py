"""A model that runs other code when it is exported is compared with eager mode, and the line that asks is named."""

from __future__ import annotations

import pytest
import torch

import anyshape


def choose(usual, exported):
    return exported if torch.compiler.is_exporting() else usual


class Otherwise(torch.nn.Module):
    def forward(self, x):
        return choose(lambda x: x * 2, lambda x: x * 3)(x)


class Alike(torch.nn.Module):
    def forward(self, x):
        return choose(lambda x: x * 2, lambda x: x + x)(x)


def test_the_line_that_asks_is_named_where_the_file_differs() -> None:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(Otherwise(), lambda n=3: torch.randn(n), strategy="symbolic")
    (finding,) = broken.value.findings
    assert finding.code == "AS305"
    assert "test_exporting_questions.py:12 is True in a capture only" in finding.why


def test_a_model_that_asks_and_answers_alike_is_kept() -> None:
    assert anyshape.export(Alike(), lambda n=3: torch.randn(n)).is_kept
