"""The command line as a user meets it: real processes, their output, their exit status, what they leave behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

MODEL = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(10, 5)
    def forward(self, x):
        return self.linear(x)
def model():
    return Net()
def inputs(batch=3):
    return torch.randn(batch, 10)
where = ["1 <= batch <= 64"]
def wide():
    return torch.nn.Linear(20, 5)
def wide_inputs(rows=3):
    return torch.randn(rows, 20)
"""

LOOP = """
import torch
class Loop(torch.nn.Module):
    def forward(self, x):
        h = torch.zeros(x.shape[0], 8)
        for t in range(x.shape[1]):
            h = 0.5 * h + x[:, t]
        return h
def model():
    return Loop()
def inputs(batch=2, seq=5):
    return torch.randn(batch, seq, 8)
"""


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anyshape", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    (folder / "model.py").write_text(MODEL)
    (folder / "loop.py").write_text(LOOP)
    done = run("export", "model.py", "-o", "m.onnx", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_export_says_what_it_promises_and_reports_progress_on_stderr(folder: Path) -> None:
    done = run("export", "model.py", "-o", "again.onnx", cwd=folder)
    assert done.returncode == 0
    assert done.stdout.startswith("kept: again.onnx capture proved, file tested at ")
    assert "dim     batch 1..64" in done.stdout
    assert "anyshape: capturing" in done.stderr
    assert (folder / "again.onnx").read_bytes()


def test_a_name_picks_other_functions_of_the_file(folder: Path) -> None:
    done = run("export", "model.py:wide", "-o", "wide.onnx", "--where", "rows <= 8", "--json", "-q", cwd=folder)
    assert done.returncode == 0 and done.stderr == ""
    result = json.loads(done.stdout)
    assert result["kept"] and result["contract"]["inputs"][0]["axes"] == ["rows", 20]
    assert result["contract"]["dims"][0]["max"] == 8


def test_check_inspect_and_explain(folder: Path) -> None:
    assert run("check", "m.onnx", "--model", "model.py", cwd=folder).returncode == 0
    shown = run("inspect", "m.onnx", cwd=folder)
    assert shown.returncode == 0 and "input   input: float32[batch, 10]" in shown.stdout.replace(" x: ", " input: ")
    explained = run("explain", "as102", cwd=folder)
    assert explained.returncode == 0 and explained.stdout.startswith("# AS102 size-baked-in")


def test_a_file_that_is_wrong_at_other_lengths_is_found_out(folder: Path) -> None:
    namespace: dict = {"__name__": "loop"}
    exec(compile(LOOP, "loop.py", "exec"), namespace)
    path = folder / "loop.onnx"
    with pytest.warns(Warning):
        torch.onnx.export(
            namespace["model"](), (namespace["inputs"](),), str(path), dynamo=False, input_names=["x"],
            dynamic_axes={"x": {0: "batch", 1: "seq"}},
        )  # fmt: skip
    done = run("check", "loop.onnx", "--model", "loop.py", cwd=folder)
    assert done.returncode == 1
    assert "BROKEN: loop.onnx" in done.stdout
    assert "at batch=1, seq=" in done.stdout and "smallest failing sizes" in done.stdout
    replayed = run("check", "loop.onnx", "--model", "loop.py", "--sizes", "batch=2,seq=5", cwd=folder)
    assert replayed.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["export", "modle.py", "-o", "x.onnx"], 2, "did you mean 'model.py'"),
        (["export", "model.py", "-o", "x.onnx", "-w", "bacth <= 4"], 2, "did you mean 'batch'"),
        (["export", "model.py:wied", "-o", "x.onnx"], 2, "did you mean 'wide'"),
        (["export", "model.py", "-o", "nowhere/x.onnx"], 2, "nowhere"),
        (["export", "syntax.py", "-o", "x.onnx"], 2, "is not valid Python"),
        (["export", "model.py"], 2, "output"),
        (["check", "none.onnx", "-m", "model.py"], 2, "none.onnx"),
        (["check", "text.onnx", "-m", "model.py"], 2, "text.onnx"),
        (["check", "m.onnx", "-m", "model.py", "--sizes", "batch=x"], 2, "no size"),
        (["inspect", "text.onnx"], 2, "text.onnx"),
        (["explain", "AS999"], 2, "AS999"),
        (["exprot"], 2, "export"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_usage_has_a_clear_message_and_leaves_nothing(
    folder: Path, arguments: list[str], status: int, words: str
) -> None:
    (folder / "text.onnx").write_text("this is no ONNX file")
    (folder / "syntax.py").write_text("def model(:\n    pass\n")
    done = run(*arguments, cwd=folder)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr
    assert words in done.stderr
    assert not (folder / "x.onnx").exists()


def test_interrupting_leaves_nothing_behind(folder: Path, tmp_path: Path) -> None:
    slow = MODEL.replace("return self.linear(x)", "import time; time.sleep(0.2); return self.linear(x)")
    (tmp_path / "slow.py").write_text(slow)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "anyshape", "export", "slow.py", "-o", "x.onnx"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:  # until the work is under way
        if "trying" in line or "capturing" in line:
            break
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read()
    process.stderr.close()
    assert process.wait(30) == 130
    assert "interrupted" in rest and "Traceback" not in rest
    assert not (tmp_path / "x.onnx").exists()
    # torch makes a cache folder of its own as soon as torch._dynamo is imported; it is torch's to keep.
    assert [path for path in temporary.iterdir() if not path.name.startswith("torchinductor_")] == []


def test_a_full_disk_is_said_so_and_nothing_is_half_written(folder: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    done = run("export", "model.py", "-o", "/dev/full", cwd=folder)
    assert done.returncode == 2 and "Traceback" not in done.stderr


def test_help_teaches_by_example(folder: Path) -> None:
    done = run("--help", cwd=folder)
    assert done.returncode == 0 and "anyshape export model.py -o m.onnx" in done.stdout
    assert "def inputs(batch=3" in run("export", "--help", cwd=folder).stdout
