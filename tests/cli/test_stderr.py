"""Stderr has our own words and nothing else: no traceback, graph or log line of another library, unless -vv asks for them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

MODELS = """
import torch
from torch import nn
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 4, batch_first=True)
    def forward(self, x):
        return self.lstm(x)[0]
class Unsupported(nn.Module):
    def forward(self, x):
        return torch.linalg.eig(x @ x.transpose(1, 2)).eigenvalues.abs()
class ByValues(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x - 1
class Baked(nn.Module):
    def forward(self, x):
        return x.view(3, -1)
class Guarded(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[0] * x.shape[1] % 3 == 0 else torch.tensor(x) + 1
def inputs(batch=3, seq=5):
    return torch.randn(batch, seq, 4)
where = ["1 <= batch <= 4", "1 <= seq <= 6"]
"""
SCRIPT = """
import sys, anyshape, models
for name in sys.argv[1:]:
    try:
        anyshape.export(getattr(models, name)(), models.inputs, where=models.where)
    except anyshape.PromiseBroken:
        pass
"""
NAMES = ("Recurrent", "Unsupported", "ByValues", "Baked", "Guarded")
_PROGRESS = re.compile(r"anyshape: [a-z].*")
_FINDING = re.compile(
    r"AS\d{3} [a-z-]+: .*|  (Where|Why|Fix|Fix \(not tried\)|Or|Replay|More): .*|    .*|warning: .*|error: .*|"
)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anyshape", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stderr")
    (folder / "models.py").write_text(MODELS)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_stderr_has_progress_and_findings_only(folder: Path, name: str) -> None:
    done = run(folder, "export", f"models.py:{name}", "-o", f"{name}.onnx")
    assert done.returncode in (0, 1), done.stderr
    foreign = [line for line in done.stderr.splitlines() if not (_PROGRESS.fullmatch(line) or _FINDING.fullmatch(line))]
    assert foreign == []
    assert not any(words in done.stderr for words in ("Traceback", "torch.ops", "graph("))


def test_vv_shows_what_torch_said(folder: Path) -> None:
    command = ("export", "models.py:ByValues", "-o", "v.onnx", "--strategy", "symbolic")
    quiet, loud = run(folder, *command, "-v"), run(folder, *command, "-vv")
    assert "Traceback" not in quiet.stderr and "AS111" in quiet.stderr
    assert "Traceback" in loud.stderr and "GuardOnDataDependentSymNode" in loud.stderr
    assert quiet.stdout == loud.stdout


def test_python_calls_print_nothing_on_stderr(folder: Path) -> None:
    (folder / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py", *NAMES], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
