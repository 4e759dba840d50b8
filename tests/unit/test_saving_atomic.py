"""A file is there whole or not at all."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

from anyshape.findings import UsageError
from anyshape.saving import check_writable, write_atomically

OLD, NEW = b"old", b"new and longer"


def writing(data: bytes = NEW, error: BaseException | None = None):  # type: ignore[no-untyped-def]
    def write(stream: BinaryIO) -> None:
        stream.write(data)
        if error is not None:
            raise error

    return write


def code(path: Path, error: BaseException | None = None) -> str:
    with pytest.raises(UsageError) as caught:
        write_atomically(path, writing(error=error))
    return caught.value.finding.code


def test_a_new_file_has_the_bytes_and_nothing_else_is_there(tmp_path: Path) -> None:
    write_atomically(tmp_path / "m.onnx", writing())
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"m.onnx": NEW}


def test_an_old_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(OLD)
    write_atomically(path, writing())
    assert path.read_bytes() == NEW


@pytest.mark.parametrize(
    "error", [RuntimeError("no"), KeyboardInterrupt(), SystemExit(1)], ids=lambda e: type(e).__name__
)
@pytest.mark.parametrize("before", [{}, {"m.onnx": OLD}], ids=["new", "old"])
def test_whatever_happens_while_writing_leaves_all_as_it_was(
    tmp_path: Path, error: BaseException, before: dict[str, bytes]
) -> None:
    for name, data in before.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(type(error)):
        write_atomically(tmp_path / "m.onnx", writing(error=error))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOSPC, "AS053"),
        (errno.EDQUOT, "AS053"),
        (errno.EACCES, "AS052"),
        (errno.EROFS, "AS052"),
        (errno.EIO, "AS054"),
    ],
)
def test_a_refusal_of_the_system_has_its_own_words(tmp_path: Path, number: int, expected: str) -> None:
    (tmp_path / "m.onnx").write_bytes(OLD)
    assert code(tmp_path / "m.onnx", OSError(number, os.strerror(number))) == expected
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [OLD]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_refusal_at_the_last_moment_leaves_nothing(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os if step == "fsync" else Path, step, refuse)
    assert code(tmp_path / "m.onnx") == "AS053"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert code(tmp_path / "no" / "m.onnx") == "AS050"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    assert code(tmp_path) == "AS051"


def test_a_device_is_not_replaced() -> None:
    assert code(Path(os.devnull)) == "AS051"


def test_a_name_that_is_too_long_is_said_to_be_one(tmp_path: Path) -> None:
    assert code(tmp_path / ("m" * 300)) == "AS054"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no umask")
def test_permissions_are_those_of_any_new_file_or_of_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "ordinary").write_bytes(NEW)
    write_atomically(tmp_path / "m.onnx", writing())
    assert (tmp_path / "m.onnx").stat().st_mode == (tmp_path / "ordinary").stat().st_mode
    (tmp_path / "m.onnx").chmod(0o640)
    write_atomically(tmp_path / "m.onnx", writing())
    assert (tmp_path / "m.onnx").stat().st_mode & 0o777 == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "m.onnx"
    link.symlink_to(tmp_path / "real" / "m.onnx")
    write_atomically(link, writing())
    assert link.is_symlink()
    assert (tmp_path / "real" / "m.onnx").read_bytes() == NEW


def test_a_place_that_can_be_written_to_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(OLD)
    check_writable(tmp_path / "m.onnx")
    check_writable(tmp_path / "other.onnx")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [OLD]


@pytest.mark.parametrize("name", ["no/m.onnx", "."])
def test_a_place_that_cannot_be_written_to_is_found_before_the_work(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        check_writable(tmp_path / name)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_write_that_really_fails_leaves_nothing(tmp_path: Path) -> None:
    script = (
        "import resource, anyshape.saving as saving\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        f"saving.write_atomically({str(tmp_path / 'm.onnx')!r}, lambda stream: stream.write(bytes(10_000)))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "AS054 cannot-write" in ended.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_in_another_process_leaves_nothing(tmp_path: Path) -> None:
    script = (
        "import sys, time, anyshape.saving as saving\n"
        "def write(stream):\n"
        "    stream.write(bytes(1000)); stream.flush(); print('writing', flush=True); time.sleep(60)\n"
        f"saving.write_atomically({str(tmp_path / 'm.onnx')!r}, write)"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"writing\n"
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
    assert process.returncode != 0
    assert list(tmp_path.iterdir()) == []
