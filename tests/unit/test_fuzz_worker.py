"""The generator of damaged inputs makes the same cases from a seed, and its judgement can fail."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from anyshape.findings import Finding, InternalError, UsageError

FUZZ = Path(__file__).parents[2] / "benchmarks" / "fuzz"


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FUZZ)
    before = set(sys.modules)
    import worker

    yield worker
    for name in set(sys.modules) - before:
        if name in ("worker", "damaged_files", "odd_sources"):
            del sys.modules[name]


def raising(error: BaseException) -> Callable[[], Any]:
    def call() -> Any:
        raise error

    return call


def test_what_is_no_finding_is_not_clean(worker: Any) -> None:
    finding = Finding(code="AS505", name="unsafe-file", what="x")
    fault = Finding(code="AS901", name="internal-error", what="x")
    assert worker._outcome(raising(UsageError(finding)))[:2] == ("finding", "AS505")
    assert worker._outcome(raising(InternalError(fault)))[:2] == ("AS901", "AS901")
    assert worker._outcome(raising(ValueError("x")))[:2] == ("raw", "ValueError")
    assert worker._outcome(raising(GeneratorExit()))[:2] == ("raw", "GeneratorExit")
    assert worker._outcome(lambda: None)[0] == "accepted"


def test_a_file_that_appears_beside_the_working_folder_is_seen(worker: Any, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    before = worker._listing(tmp_path)
    (tmp_path / "work" / "inside").write_bytes(b"x")
    assert worker._listing(tmp_path) == before
    (tmp_path / "outside").write_bytes(b"x")
    assert worker._listing(tmp_path) != before


def test_a_case_is_the_same_for_the_same_seed(worker: Any) -> None:
    import damaged_files
    import odd_sources

    for seed in range(20):
        made = [odd_sources.model_file(Random(seed)) + odd_sources.manifest(Random(seed)) for _ in range(2)]
        damaged = [damaged_files.damage_bytes(bytes(range(200)), Random(seed)) for _ in range(2)]
        assert made[0] == made[1] and damaged[0] == damaged[1] != bytes(range(200))
