"""What the system refuses is a usage error by name, never a fault of ours."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from anyshape.cli.main import _ending_of, app
from anyshape.cli.outcome import Outcome, with_outcome
from anyshape.findings import UsageError

COMMANDS = ("export", "axes", "batch", "check", "compare", "bench", "inspect", "fix", "freeze", "deploy", "explain")
NET = """
import torch
def model():
    return torch.nn.Linear(4, 2)
def inputs(batch=3):
    return torch.randn(batch, 4)
"""


def run(words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A line of a shell in which `anyshape` is the command."""
    line = words.replace("anyshape", f"{sys.executable} -m anyshape", 1)
    return subprocess.run(["sh", "-c", line], cwd=cwd, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_without_arguments_is_a_usage_error(name: str) -> None:
    with pytest.raises(Exception) as caught:
        app([name], standalone_mode=False)
    ending = _ending_of(caught.value)
    assert (ending.status, ending.findings[0].code) == (2, "AS036")
    assert "Missing argument" in ending.words


@pytest.mark.parametrize(
    ("number", "path", "code", "words"),
    [
        (errno.ENOSPC, None, "AS053", "a temporary file cannot be written: the disk is full."),
        (errno.ENOSPC, "m.onnx", "AS053", "'m.onnx' cannot be written: the disk is full."),
        (errno.ENAMETOOLONG, "m" * 300, "AS073", "cannot be used: File name too long."),
        (errno.EACCES, "m.onnx", "AS073", "'m.onnx' cannot be used: Permission denied."),
        (errno.EMFILE, None, "AS073", "a file cannot be used: Too many open files."),
    ],
)
def test_an_error_of_the_system_is_a_usage_error(number: int, path: str | None, code: str, words: str) -> None:
    def command() -> Outcome:
        raise OSError(number, os.strerror(number), path)

    with pytest.raises(UsageError) as caught:
        with_outcome(command)()
    assert caught.value.finding.code == code and words in caught.value.finding.what
    assert _ending_of(caught.value).status == 2


def test_an_error_that_may_be_a_fault_of_ours_stays_one() -> None:
    def command() -> Outcome:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "inner.json")

    with pytest.raises(FileNotFoundError) as caught:
        with_outcome(command)()
    assert _ending_of(caught.value).status == 3


def test_a_fault_of_ours_is_reported_where_no_file_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", refuse)
    ending = _ending_of(RuntimeError("broken"))
    assert ending.status == 3 and "RuntimeError: broken" in ending.words


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("system")
    (folder / "m.py").write_text(NET, encoding="utf-8")
    return folder


needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has /dev/full")


@needs_full
def test_a_full_stdout_is_an_output_that_cannot_be_written(folder: Path) -> None:
    done = run("anyshape export m.py -o m.onnx -q > /dev/full", folder)
    assert (done.returncode, done.stderr.split()[0]) == (2, "AS074"), done.stderr
    assert "'m.onnx' was written before" in done.stderr and (folder / "m.onnx").is_file()
    for words in ("anyshape inspect m.onnx --json", "anyshape --help", "anyshape --version"):
        done = run(f"{words} > /dev/full", folder)
        assert (done.returncode, done.stderr.split()[0]) == (2, "AS074"), done.stderr


@needs_full
@pytest.mark.parametrize("where", [">&-", "2> /dev/full", "2>&-", "<&- >&- 2>&-", "| true"])
def test_what_nobody_asked_to_see_changes_no_status(folder: Path, where: str) -> None:
    assert run(f"anyshape explain AS102 {where}", folder).returncode == 0
    assert run(f"anyshape export m.py -o seen.onnx {where}", folder).returncode == 0
    if "|" not in where:
        assert run(f"anyshape inspect none.onnx {where}", folder).returncode == 2


def test_a_working_folder_that_was_removed_is_named(folder: Path) -> None:
    done = run("mkdir gone && cd gone && rmdir ../gone && anyshape explain AS102", folder)
    assert (done.returncode, done.stderr.split()[0]) == (2, "AS073"), done.stderr
    done = run("mkdir gone && cd gone && rmdir ../gone && anyshape --version", folder)
    assert done.returncode == 0, done.stderr


LONG = "a" * 300


@pytest.mark.parametrize(
    "words",
    [
        f"export m.py -o {LONG}.onnx",
        f"export {LONG}.py -o x.onnx",
        f"inspect {LONG}",
        f"freeze {LONG} batch=1 -o x.onnx",
        f"batch {LONG}.py -o rows",
    ],
    ids=lambda words: words[:20],
)
def test_a_name_that_is_too_long_is_named(folder: Path, words: str) -> None:
    done = run(f"anyshape {words}", folder)
    assert done.returncode == 2 and "File name too long" in done.stderr, done.stderr
