"""Every example runs as its README says, in an empty folder, and prints what stands beside it.

The seeds of the first three are somebody else's scripts for torch.onnx.export: one import and one name differ, nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deployed import check_triton
from tests.pages import Reader

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
SEEDS = {path.stem.removeprefix("seed_"): path for path in sorted((Path(__file__).parent / "data").glob("seed_*.txt"))}
FOLDERS = sorted(path for path in EXAMPLES.iterdir() if path.is_dir() and path.name[0].isdigit())


def run(command: list[str], folder: Path) -> str:
    """What a command prints. AssertionError, with what it said, if it does not end well."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_output(script: Path, folder: Path) -> None:
    """Run a script; AssertionError if it prints something else than the file beside it."""
    printed = run([sys.executable, str(script)], folder)
    expected = script.parent / "expected_output.txt"
    if expected.exists():
        assert printed == expected.read_text(encoding="utf-8")


def scripts() -> list[Path]:
    return [script for folder in FOLDERS for name in ("main.py", "seed.py") if (script := folder / name).exists()]


@pytest.mark.parametrize("script", scripts(), ids=lambda script: script.relative_to(EXAMPLES).as_posix())
def test_an_example_prints_what_stands_beside_it(script: Path, tmp_path: Path) -> None:
    check_output(script, tmp_path)
    files = list(tmp_path.glob("*.onnx"))
    assert files
    for file in files:
        check_triton(file, tmp_path / f"{file.stem}-triton")


def test_the_demo_runs(tmp_path: Path) -> None:
    printed = run([sys.executable, str(EXAMPLES / "demo.py")], tmp_path)
    assert printed.count("\nkept: ") == 3
    assert "AS102 size-baked-in: " in printed
    assert printed.endswith("at batch 64, the file gives x itself: True\n")


@pytest.mark.parametrize(
    "folder", [each for each in FOLDERS if (each / "model.py").exists()], ids=lambda each: each.name
)
def test_an_example_is_exported_by_the_command_line(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = Reader(tmp_path).run_console(f"anyshape export {folder / 'model.py'} -o model.onnx --quiet")
    assert said.startswith("kept: model.onnx ")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda each: each.name)
def test_an_example_has_something_to_run_and_says_what(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    assert {"model.py", "seed.py"} <= names or {"README.md", "main.py", "expected_output.txt"} <= names


def changed(original: str) -> str:
    return original.replace("import torch.onnx\n", "import anyshape.compat\n").replace(
        "torch.onnx.export(", "anyshape.compat.export("
    )


@pytest.mark.parametrize("name", SEEDS)
def test_a_seed_differs_in_its_import_and_its_callee_alone(name: str) -> None:
    original = SEEDS[name].read_text(encoding="utf-8")
    assert (EXAMPLES / name / "seed.py").read_text(encoding="utf-8") == changed(original)
    lines = list(zip(original.splitlines(), changed(original).splitlines(), strict=True))
    assert sum(before != after for before, after in lines) == 2


def test_there_are_three_seeds() -> None:
    assert list(SEEDS) == ["01_linear", "02_rnn", "03_reshape"]


# Each checker is seen to fail.


def test_an_example_that_prints_something_else_is_found(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("print('one')\n")
    (tmp_path / "expected_output.txt").write_text("one\n")
    check_output(tmp_path / "main.py", tmp_path)
    (tmp_path / "expected_output.txt").write_text("two\n")
    with pytest.raises(AssertionError):
        check_output(tmp_path / "main.py", tmp_path)


def test_an_example_that_fails_is_found(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("1 / 0\n")
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        check_output(tmp_path / "main.py", tmp_path)
