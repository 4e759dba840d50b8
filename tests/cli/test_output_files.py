"""No command destroys a file: outputs replace neither what is read, nor each other, nor files of another kind."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from anyshape.cli.main import _ending_of
from anyshape.cli.outcome import Interrupted, Outcome, with_outcome
from anyshape.saving import write_atomically

NET = """
import torch
def model():
    return torch.nn.Linear(4, 2)
def inputs(batch=3):
    return torch.randn(batch, 4)
"""


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anyshape", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    (folder / "m.py").write_text(NET, encoding="utf-8")
    done = run("export", "m.py", "-o", "m.onnx", "--report", "page.html", "-q", cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    (folder / "link.onnx").symlink_to("m.py")
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


REFUSED = [
    ("export m.py -o m.py", "AS070"),
    ("export m.py -o m.py --overwrite", "AS070"),
    ("export m.py:model -o ./m.py --overwrite", "AS070"),
    ("export m.py -o link.onnx --overwrite", "AS070"),
    ("export m.py -o new.onnx --report m.py --overwrite", "AS070"),
    ("export m.py -o new.onnx --repair --write-diff m.py --overwrite", "AS070"),
    ("export m.py -o notes.txt", "AS072"),
    ("export m.py -o new.onnx --report notes.txt", "AS072"),
    ("export m.py -o new.onnx --report m.onnx", "AS072"),
    ("export m.py -o m.onnx --report m.onnx --overwrite", "AS071"),
    ("export m.py -o page.html", "AS072"),
    ("fix m.onnx -d 'input: batch 4' -o m.onnx --overwrite", "AS070"),
    ("fix m.onnx -d 'input: batch 4' -o new.onnx -m m.py -o m.py --overwrite", "AS070"),
    ("freeze m.onnx batch=1 -o m.onnx --overwrite", "AS070"),
    ("freeze m.onnx batch=1 -o notes.txt", "AS072"),
    ("check m.onnx -m m.py --report m.onnx --overwrite", "AS070"),
    ("check m.onnx -m m.py --sign --report m.onnx --overwrite", "AS070"),
    ("compare m.onnx m.onnx -m m.py --report m.py --overwrite", "AS070"),
    ("bench m.onnx -m m.py --plot m.py --overwrite", "AS070"),
    ("bench m.onnx -m m.py --plot notes.txt", "AS072"),
    ("batch m.py -o out --report m.py --overwrite", "AS070"),
    ("batch m.py -o out --report notes.txt", "AS072"),
    ("batch batch.toml -o out --report m.py --overwrite", "AS070"),
    ("deploy m.onnx --to tensorrt -o .", "AS070"),
]


@pytest.mark.parametrize(("words", "code"), REFUSED, ids=[words for words, _ in REFUSED])
@pytest.mark.long_table
def test_a_command_that_would_destroy_a_file_is_refused_and_all_stays(
    words: str, code: str, exported: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "here"
    shutil.copytree(exported, folder, symlinks=True)
    (folder / "batch.toml").write_text('[[model]]\nsource = "m.py"\n', encoding="utf-8")
    before = content(folder)
    done = run(*shlex.split(words), cwd=folder)
    assert done.returncode == 2 and f"\n{code} " in f"\n{done.stderr}", done.stderr
    assert content(folder) == before


def test_a_batch_replaces_no_summary_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(NET, encoding="utf-8")
    (tmp_path / "summary.md").write_text("# My project", encoding="utf-8")
    done = run("batch", "m.py", "-o", ".", cwd=tmp_path)
    assert (done.returncode, done.stderr.split()[0]) == (2, "AS072"), done.stderr
    assert sorted(content(tmp_path)) == ["m.py", "summary.md"]


def test_overwrite_and_files_of_the_same_kind_are_replaced(exported: Path, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    shutil.copytree(exported, folder, symlinks=True)
    before = content(folder)
    done = run("export", "m.py", "-o", "m.onnx", "--report", "page.html", "--seed", "1", "-q", cwd=folder)
    assert done.returncode == 0, done.stderr
    done = run("export", "m.py", "-o", "notes.txt", "--overwrite", "-q", cwd=folder)
    assert done.returncode == 0, done.stderr
    changed = {name for name, data in content(folder).items() if data != before[name]}
    assert changed == {"m.onnx", "page.html", "notes.txt"}


WAITING = """
import sys, time, torch
def model():
    return torch.nn.Linear(4, 2)
def inputs(batch=3):
    sys.stderr.write("waiting\\n")
    sys.stderr.flush()
    time.sleep(100)
"""


def start_waiting(folder: Path) -> subprocess.Popen[str]:
    """An export that waits while a temporary folder of its own lies beside its output."""
    (folder / "m.py").write_text(WAITING, encoding="utf-8")
    command = [sys.executable, "-m", "anyshape", "export", "m.py", "-o", "out/", "-q"]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while process.stderr.readline() != "waiting\n":
        assert process.poll() is None
    return process


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_ends_a_command_in_order(tmp_path: Path, name: str) -> None:
    process = start_waiting(tmp_path)
    assert len(list(tmp_path.glob(".anyshape-*.tmp"))) == 1
    process.send_signal(getattr(signal, name))
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said.splitlines()[-1]) == (130, "interrupted: nothing was written.")
    assert list(tmp_path.glob(".anyshape-*")) == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_what_a_killed_writer_left_goes_with_the_next_write_and_that_of_a_living_one_stays(tmp_path: Path) -> None:
    killed = start_waiting(tmp_path)
    (left,) = tmp_path.glob(".anyshape-*.tmp")
    killed.kill()
    killed.communicate(timeout=60)
    assert left.is_dir()
    living = start_waiting(tmp_path)
    try:
        (own,) = tmp_path.glob(".anyshape-*.tmp")
        assert own != left
        write_atomically(tmp_path / "m.onnx", lambda stream: stream.write(b"another"))
        assert own.is_dir()
    finally:
        living.kill()
        living.communicate(timeout=60)


@pytest.mark.parametrize("names", [[], ["o.onnx"], ["o.onnx", "r.html"]])
def test_an_interrupted_command_lists_what_it_wrote_before(tmp_path: Path, names: list[str]) -> None:
    def command(output: Path, report: Path) -> Outcome:
        for path in (output, report):
            if path.name in names:
                write_atomically(path, lambda stream: stream.write(b"new"))
        raise KeyboardInterrupt

    (tmp_path / "o.onnx").write_bytes(b"\x08\x08\x3a\x00")
    with pytest.raises(Interrupted) as caught:
        with_outcome(command)(output=tmp_path / "o.onnx", report=tmp_path / "r.html")
    said = ", ".join(repr(str(tmp_path / name)) for name in names)
    assert (
        _ending_of(caught.value).words
        == f"interrupted: {f'{said} was written before' if said else 'nothing was written'}."
    )
