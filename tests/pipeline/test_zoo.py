"""Every row of the zoo through the whole pipeline, with real onnxruntime: kept, or the expected code."""

from __future__ import annotations

import pytest
import torch
from tests.zoo import KEPT, ZOO, Row

import anyshape


def outcome(row: Row) -> str:
    torch.manual_seed(0)
    try:
        result = anyshape.export(row.module(), row.inputs, where=row.where)
    except anyshape.PromiseBroken as broken:
        return broken.finding.code
    assert result.verdict.passed
    return KEPT


@pytest.mark.parametrize("row", ZOO, ids=str)
@pytest.mark.long_table
def test_outcome(row: Row) -> None:
    assert outcome(row) == row.expect
