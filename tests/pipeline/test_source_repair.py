"""Modules with hard-coded sizes: edited where one reading fits, left alone where more do (`make repair-modules`)."""

from __future__ import annotations

import importlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import anyshape
from anyshape.cli.main import app
from anyshape.contract import read_contract
from anyshape.exporting.source_repair import repair_module
from anyshape.findings import PromiseBroken
from anyshape.inputs import declare

REPAIR = Path(__file__).parents[2] / "benchmarks" / "repair"
NAMES = (
    "view",
    "expand",
    "zeros",
    "arange",
    "mask",
    "positions",
    "batch-on-self",
    "product",
    "grid-in-init",
    "waves",
    "lengths",
    "default",
    "flat",
    "batch-of-one",
    "rest",
    "resize",
    "loop",
    "both",
    "global",
    "list",
    "state",
    "state-pair",
    "strided",
    "trap-chunks",
    "trap-loop-stack",
    "helper",
    "init-hidden",
    "own-mask",
    "inner",
    "class-token",
    "grid",
    "equal",
    "trap-equal",
    "trap-heads",
    "trap-hidden",
    "trap-factor",
    "trap-mean",
    "trap-last",
    "trap-pairs",
    "trap-reversed",
    "trap-fifths",
    "trap-unbiased",
    "trap-last-mask",
    "trap-blocks",
    "trap-top",
    "trap-scale",
    "trap-pool",
    "trap-positions",
    "trap-zero-positions",
    "trap-linear",
    "trap-assert",
    "trap-first-five",
    "trap-square",
    "trap-name-twice",
    "trap-state",
    "trap-rotate",
    "trap-decoder",
    "cut",
    "trap-cut-open",
    "trap-shares",
    "trap-weights",
    "trap-count",
    "trap-both-counts",
)


@pytest.fixture(scope="module")
def rows() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPAIR))
        yield {row.name: row for row in importlib.import_module("hardcoded").ALL}


def made(make: Any) -> torch.nn.Module:
    torch.manual_seed(0)
    module: torch.nn.Module = make().eval()
    return module


def test_every_row_is_tested(rows: Any) -> None:
    assert sorted(rows) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_repair_is_right_or_refused(name: str, rows: Any) -> None:
    row = rows[name]
    module = made(row.make)
    declared = declare(module, row.inputs, where=row.where)
    if row.repaired is None:
        with pytest.raises(PromiseBroken) as refused:
            repair_module(module, declared)
        assert "hardcoded.py" in str(refused.value)
        return
    found = repair_module(module, declared)
    assert found is not None
    meant = made(row.repaired)
    for sizes in row.others:
        inputs = row.inputs(**sizes)
        with torch.no_grad():
            torch.testing.assert_close(found[0](**inputs), meant(**inputs))


@pytest.mark.parametrize("name", ["both", "class-token"])
def test_the_file_the_diff_and_the_metadata_of_a_repair(name: str, rows: Any, tmp_path: Path) -> None:
    row = rows[name]
    result = anyshape.export(made(row.make), row.inputs, tmp_path / "m.onnx", repair=True)
    assert result.is_kept and result.repair is not None
    assert result.findings[-1].code == "AS506"
    loaded, meant = anyshape.load(tmp_path / "m.onnx"), made(row.repaired)
    for sizes in row.others:
        inputs = row.inputs(**sizes)
        with torch.no_grad():
            torch.testing.assert_close(loaded(**inputs), meant(**inputs), rtol=1e-4, atol=1e-5)
    written = json.loads({each.key: each.value for each in result.model_proto.metadata_props}["anyshape.repaired"])
    assert written["diff"] == result.repair.diff
    assert written["evidence"] == list(result.repair.evidence)
    assert "AS506" in [finding.code for finding in read_contract(tmp_path / "m.onnx")[0].findings]
    after = patched(REPAIR / "hardcoded.py", result.repair.diff, tmp_path)
    for edit in result.repair.edits:
        assert edit.after in after.splitlines()[edit.source.line - 1]


def patched(file: Path, diff: str, folder: Path) -> str:
    """The file after `git apply`, in another folder."""
    copy = folder / file.name
    copy.write_bytes(file.read_bytes())
    path = diff.splitlines()[0].removeprefix("--- a/")
    (folder / "fix.patch").write_text(diff.replace(path, file.name))
    subprocess.run(["git", "apply", "fix.patch"], cwd=folder, check=True, capture_output=True)
    return copy.read_text()


class TwoReadings(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(3, 5, 8).sum(1) / 5


class Mean(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(1)


class Fifths(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(1) / 5


class Halves(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(1) / 2


def frames(batch: int = 3, seq: int = 5) -> torch.Tensor:
    return torch.randn(batch, seq, 8)


def test_without_repair_the_model_is_refused_with_its_line() -> None:
    with pytest.raises(PromiseBroken, match=r"return x\.view\(3, 5, 8\)"):
        anyshape.export(TwoReadings(), frames)


def test_two_readings_are_both_shown_beside_the_refusal() -> None:
    with pytest.raises(PromiseBroken, match=r"'5' has 2 readings that fit: 5 or x\.shape\[1\]") as broken:
        anyshape.export(TwoReadings(), frames, repair=True)
    assert [finding.code for finding in broken.value.findings][-1] == "AS502"
    assert broken.value.finding.code == "AS102"


@pytest.mark.parametrize(("meant", "edits"), [(Mean(), 3), (Fifths(), 2)])
def test_the_repaired_module_settles_two_readings(meant: torch.nn.Module, edits: int) -> None:
    result = anyshape.export(TwoReadings(), frames, repair=True, repaired=meant)
    assert result.repair is not None and len(result.repair.edits) == edits
    assert "equal to `repaired`" in result.repair.evidence[-1]


def test_a_repaired_module_that_no_edit_equals_is_said() -> None:
    with pytest.raises(PromiseBroken, match="AS504 repair-differs"):
        anyshape.export(TwoReadings(), frames, repair=True, repaired=Halves())


def test_a_model_that_follows_its_sizes_is_exported_as_it_is() -> None:
    result = anyshape.export(Mean(), frames, repair=True)
    assert result.repair is None and result.findings == ()


class View(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(3, 10)


def test_a_stripped_repair_shows_no_source() -> None:
    result = anyshape.export(View(), lambda batch=3: torch.randn(batch, 10), repair=True, strip_source=True)
    assert result.repair is not None and result.repair.diff == ""
    assert b"x.shape[0]" not in result.model_proto.SerializeToString()


def test_the_command_line_writes_the_diff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = (
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x.view(3, 10)\n\n\n"
        "model = Net()\n\n\ndef inputs(batch=3):\n    return torch.randn(batch, 10)"
    )
    Path("net.py").write_text(source)
    run = CliRunner().invoke(app, ["export", "net.py", "-o", "m.onnx", "--write-diff", "fix.patch", "-q"])
    assert run.exit_code == 0, run.output
    subprocess.run(["git", "apply", "fix.patch"], check=True)
    assert Path("net.py").read_text() == source.replace("view(3,", "view(x.shape[0],")
