"""A file in the working folder that is named like a module of Python's or an installed one is not imported in its place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from anyshape.runtime.process import child_search_path

MODEL = """
import torch
from beside import factor
class Net(torch.nn.Module):
    def forward(self, x):
        return x * factor
def model():
    return Net()
def inputs(batch=3):
    return torch.randn(batch, 4)
where = ["1 <= batch <= 3"]
"""
SHADOWING = ("types", "random", "queue", "token", "signal", "onnx", "onnxscript", "z3", "rich", "numpy")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("working")
    for name in SHADOWING:
        (folder / f"{name}.py").write_text(f"raise RuntimeError('{name}.py of the working folder was imported')")
    (folder / "beside.py").write_text("factor = 2.0")
    (folder / "model.py").write_text(MODEL)
    (folder / "queue.py").write_text(MODEL)
    return folder


def run(folder: Path, command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, **environment}
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("file", ["model.py", "queue.py"])
def test_export_and_check_work_among_files_named_like_modules(folder: Path, file: str) -> None:
    command = [sys.executable, "-m", "anyshape"]
    exported = run(folder, [*command, "export", file, "-o", "m.onnx"])
    assert exported.returncode == 0, exported.stderr
    checked = run(folder, [*command, "check", "m.onnx", "--model", file])
    assert checked.returncode == 0, checked.stderr


def test_a_script_may_put_such_a_folder_on_its_search_path(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, torch, anyshape, onnx, onnxscript, z3, rich\n"
        f"sys.path.insert(0, {str(folder)!r})\n"
        "class Net(torch.nn.Module):\n"
        "    def forward(self, x): return x * 2\n"
        "anyshape.export(Net(), lambda batch=3: torch.randn(batch, 4), where=['1 <= batch <= 3'])\n"
    )
    done = run(folder, [sys.executable, str(script)])
    assert done.returncode == 0, done.stderr


def test_the_search_path_of_a_child_has_the_standard_modules_first(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [entry for entry in sys.path if entry]
    monkeypatch.setattr(sys, "path", ["", "/some/folder", *entries])
    found = child_search_path()
    standard = str(Path(os.__file__).parent)
    installed = next(place for place, entry in enumerate(found) if entry.endswith("site-packages"))
    assert found.index(standard) < installed < found.index("/some/folder")
    assert {str(Path(entry).absolute()) for entry in entries} <= set(found) and "" not in found
