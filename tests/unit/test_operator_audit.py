"""The audit of operators: what it opens, how it judges, who is to blame where a process dies, and what its page says."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from anyshape.findings import Finding, InternalError, PromiseBroken

AUDIT = Path(__file__).parents[2] / "benchmarks" / "operators"
FLOATS = torch.tensor([1.0, float("nan"), 3.0])


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The audit's own modules, by name."""
    monkeypatch.syspath_prepend(str(AUDIT))
    return importlib.import_module


@pytest.fixture
def with_samples(audit: Any) -> Any:
    """The same, where torch's samples can be read."""
    pytest.importorskip("expecttest")
    return audit


def row(operator: str, exporter: str, status: str, said: str = "") -> dict[str, Any]:
    return {"operator": operator, "sample": 0, "exporter": exporter, "status": status, "said": said, "seconds": 1.0}


ROWS = [
    row("abs", "torch.onnx", "pass"),
    row("abs", "anyshape", "pass"),
    row("sort", "torch.onnx", "refused"),
    row("sort", "anyshape", "pass"),
    row("svd", "torch.onnx", "refused"),
    row("svd", "anyshape", "unverified", "AS305 wrong-values | here"),
    row("lu", "torch.onnx", "wrong"),
]


def test_only_samples_that_both_have_tried_are_counted(audit: Any) -> None:
    lines = audit("page").total(ROWS).splitlines()
    assert lines[2] == "| torch.onnx | 1 | 2 | 0 | 0 | 0 | 0 | 0 | 3 |"
    assert lines[3] == "| anyshape | 2 | 0 | 1 | 0 | 0 | 0 | 0 | 3 |"


def test_the_page_has_a_row_for_what_not_both_get_right(audit: Any, tmp_path: Path) -> None:
    entries = [{"left_out": None}, {"left_out": "sparse"}, {"left_out": "sparse"}]
    audit("page").write_page(ROWS, entries, tmp_path / "operators.md")
    page = (tmp_path / "operators.md").read_text()
    assert "| `svd` | refused | unverified | AS305 wrong-values \\| here |" in page
    assert "`abs`" not in page
    assert "- 2 sparse" in page
    assert "refuses 2 samples, anyshape 1 (50 % fewer)" in page


@pytest.mark.parametrize(
    ("stage", "status"), [("exporting", "crashed"), ("running the file", "fails")], ids=["exporter", "runtime"]
)
def test_who_is_to_blame_for_a_death_is_told_by_the_last_stage(audit: Any, stage: str, status: str) -> None:
    task = audit("audit").Task(0, "abs", 0, "anyshape")
    assert task.row([{"stage": stage}, {"status": "died"}])["status"] == status


def test_no_answer_in_time_is_slow(audit: Any) -> None:
    task = audit("audit").Task(0, "abs", 0, "anyshape")
    found = task.row([{"stage": "exporting"}, {"status": "slow", "seconds": 30.0}])
    assert (found["status"], found["said"]) == ("slow", "no answer in 30 s, while exporting")


def broken(code: str) -> PromiseBroken:
    return PromiseBroken(Finding(code=code, name="a-name", what="something."))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (broken("AS201"), "refused"),
        (broken("AS305"), "unverified"),
        (InternalError(Finding(code="AS901", name="a-name", what="something.")), "crashed"),
        (ValueError("something"), "crashed"),
        (torch.onnx.OnnxExporterError("something"), "refused"),
    ],
    ids=["no-translation", "verification", "own-fault", "foreign", "torch"],
)
def test_an_error_is_a_refusal_only_where_it_is_the_exporters_own(with_samples: Any, error: Any, status: str) -> None:
    assert with_samples("judge").kind_of(error) == status


@pytest.mark.parametrize(
    ("actual", "said"),
    [
        (np.array([1, np.nan, 3], np.float32), None),
        (np.array([1, 2, 3], np.float32), "output 0: values differ"),
        (np.array([1, np.nan, 3.1], np.float32), "output 0: values differ"),
        (np.array([[1, np.nan, 3]], np.float32), "output 0: shape (3,) expected, (1, 3) given"),
        (np.array([1, np.nan, 3], np.float64), "output 0: float32 expected, float64 given"),
    ],
    ids=["same", "nan", "value", "shape", "dtype"],
)
def test_the_judge_notices(with_samples: Any, actual: Any, said: str | None) -> None:
    assert with_samples("judge")._compare((FLOATS,), [actual]) == said


def test_the_judge_allows_what_eager_itself_is_away_from_the_exact_answer(with_samples: Any) -> None:
    compare = with_samples("judge")._compare
    actual = np.array([1, np.nan, 3.1], np.float32)
    assert compare((FLOATS,), [actual], [np.array([0, 0, 0.05])]) is None
    assert compare((FLOATS,), [actual], [np.array([0.05, 0, 0])]) is not None


def axes(with_samples: Any, call: Any, *shapes: tuple[int, ...]) -> Any:
    tensors = tuple(torch.rand(shape) for shape in shapes)
    return with_samples("cases")._open_axes(lambda *given: tuple(call(*given)), tensors, False)


def test_axes_that_must_be_equal_are_opened_together(with_samples: Any) -> None:
    assert axes(with_samples, lambda x, y: [x @ y], (2, 3), (3, 4)) == {
        "d0": ((0, 0),),
        "d1": ((1, 1),),
        "d2": ((0, 1), (1, 0)),
    }


def test_an_axis_that_changes_the_number_of_outputs_stays_closed(with_samples: Any) -> None:
    assert axes(with_samples, lambda x: x.split(2, 0), (4, 3)) == {"d0": ((0, 1),)}


def test_a_longer_input_begins_with_the_sample_and_repeats_no_value(with_samples: Any) -> None:
    sample = torch.tensor([0.0, 2.0, -3.0])
    longer = with_samples("cases").grow(sample, 0, 7)
    assert torch.equal(longer[:3], sample)
    assert longer.unique().numel() == 7
