"""The comparisons of one file in shares: together they show what the whole plan shows, also where the file is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import anyshape
from anyshape.checking.compare_file import compare_file
from anyshape.inputs import declare
from anyshape.records.verdict import Verdict
from anyshape.verify import VerifyOptions, VerifyRequest, verify
from anyshape.verify.tally import join_verdicts


class Head(torch.nn.Module):
    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.cumsum(1) if x.shape[1] < self.limit else x * 2


def inputs(batch: int = 3, seq: int = 5) -> torch.Tensor:
    return torch.randn(batch, seq, 4)


def compared(path: Path, module: torch.nn.Module, run: Any = verify) -> tuple[Verdict, tuple[anyshape.Finding, ...]]:
    declared = declare(module, inputs, where=["1 <= batch <= 8", "1 <= seq <= 40"])
    return compare_file(path, module, declared, VerifyOptions(), None, lambda *told: None, run=run)


def in_shares(request: VerifyRequest, count: int = 2) -> Verdict:
    shares = [verify(replace(request, options=replace(request.options, share=(k, count)))) for k in range(count)]
    assert all(share.trials < sum(each.trials for each in shares) for share in shares)
    return join_verdicts(shares, [*request.sizes, *request.once])


@pytest.mark.slow
def test_shares_show_together_what_the_whole_shows(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    where = ["1 <= batch <= 8", "1 <= seq <= 40"]
    anyshape.export(Head(1000), inputs, path, where=where, verify="none")
    whole, no_findings = compared(path, Head(1000))
    joined, findings = compared(path, Head(1000), in_shares)
    assert whole.passed and findings == no_findings == ()
    assert replace(joined, seconds=whole.seconds) == whole
    # The file does not follow a model that is another one from 20 on: a share finds it, and with it the whole.
    wrong, errors = compared(path, Head(20), in_shares)
    assert not wrong.passed and errors[0].severity.value == "error"
    assert wrong.smallest_failure is not None and wrong.smallest_failure.sizes["seq"] == 20


def test_a_size_that_no_share_has_is_untried() -> None:
    shares = [Verdict(tried=({"n": 1},)), Verdict(tried=({"n": 2},))]
    joined = join_verdicts(shares, [{"n": 1}, {"n": 2}, {"n": 3}])
    assert [dict(each) for each in joined.tried] == [{"n": 1}, {"n": 2}]
    assert [dict(each.sizes) for each in joined.untried] == [{"n": 3}]
