"""Errors as a caller of a public function sees them."""

from __future__ import annotations

import traceback

import pytest
import torch

import anyshape
from anyshape.findings import InternalError, raises_for_caller
from anyshape.findings.finding import Finding

FINDING = Finding(code="AS060", name="unknown-choice", what="enforce cannot be 3.")


def failing(kind: type[anyshape.AnyshapeError]) -> None:
    def inner() -> None:
        try:
            raise KeyError("of anyshape's own code")
        except KeyError:
            raise kind(FINDING) from ValueError("the cause")

    inner()


def frames(kind: type[anyshape.AnyshapeError]) -> list[str]:
    with pytest.raises(kind) as caught:
        raises_for_caller(failing)(kind)
    assert isinstance(caught.value.__cause__, ValueError)
    return [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


def test_a_traceback_ends_at_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANYSHAPE_TRACEBACK", raising=False)
    assert frames(anyshape.AnyshapeError) == ["frames", "run"]
    assert "inner" in frames(InternalError)
    monkeypatch.setenv("ANYSHAPE_TRACEBACK", "1")
    assert "inner" in frames(anyshape.AnyshapeError)


def test_a_notebook_shows_the_finding_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANYSHAPE_TRACEBACK", raising=False)
    shown = "".join(anyshape.AnyshapeError(FINDING)._render_traceback_())
    assert "AS060 unknown-choice: enforce cannot be 3." in shown and "Traceback" not in shown
    monkeypatch.setenv("ANYSHAPE_TRACEBACK", "1")
    with pytest.raises(NotImplementedError):
        anyshape.AnyshapeError(FINDING)._render_traceback_()


def test_an_error_of_an_export_has_no_frames_of_its_process() -> None:
    with pytest.raises(anyshape.AnyshapeError) as caught:
        anyshape.export(torch.nn.Linear(2, 2), object(), enforce="nothing")
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][1:] == ["run"]


def test_a_result_is_shown_by_its_text() -> None:
    result = anyshape.export(torch.nn.Linear(2, 2), lambda batch=3: torch.randn(batch, 2))
    assert repr(result) == str(result)
