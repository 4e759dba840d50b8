"""The folder of a batch: a folder for each model, results.jsonl, summary.md, and .work for what is not finished.

A model's folder is made in .work, gets its row.json last, and then its place by a rename. So a folder with a row.json is
whole, wherever it is found: after a kill, what was finished is moved to its place, and everything else in .work is removed.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyshape.batch.jobs import Job
from anyshape.batch.model_files import file_digest
from anyshape.batch.process_tree import kill_if_still
from anyshape.batch.rows import Row, row_from_plain
from anyshape.findings import Finding, UsageError
from anyshape.saving import check_writable, write_atomically
from anyshape.saving.atomic import reporting
from anyshape.saving.outputs import ROWS
from anyshape.saving.outputs import SUMMARY as SUMMARY_KIND

ROW, RESULTS, SUMMARY, _WORK, _LOCK = "row.json", "results.jsonl", "summary.md", ".work", "lock"
_FORMAT = 1
EXPORTED = "exported"
MODEL, PRINTED, LOG, NOTED, IDENTITY = "model.onnx", ".printed.json", "log.txt", ".files.txt", ".process"


@dataclass(frozen=True)
class Stored:
    """What row.json holds: the row, the digest of what was asked for, and digests of files read and written."""

    row: Row
    key: str
    read: Mapping[str, str]
    written: Mapping[str, str]


@dataclass(frozen=True)
class OutputFolder:
    """The folder of a batch, held by this process: made by `opened`."""

    path: Path

    @property
    def work(self) -> Path:
        return self.path / _WORK

    def new_folder(self, job: Job) -> Path:
        """An empty folder in which a model is exported."""
        folder = self.work / f"{job.name}-{secrets.token_hex(4)}"
        folder.mkdir()
        return folder

    def find(self, name: str) -> Stored | None:
        """The finished result of a model; None if there is none, or if a file of it was changed or removed."""
        stored = _read_row(self.path / name)
        if stored is None or any(
            not _has_digest(self.path / name / file, digest) for file, digest in stored.written.items()
        ):
            return None
        return stored

    def keep(self, folder: Path, stored: Stored) -> None:
        """Give a folder of .work, with its row, the place of the model's results."""
        content = {**_plain(stored), "format": _FORMAT}
        write_atomically(
            folder / ROW, lambda stream: stream.write(json.dumps(content, indent=1, allow_nan=False).encode())
        )
        self._put_in_place(folder, stored.row.name)

    def _put_in_place(self, folder: Path, name: str) -> None:
        target = self.path / name
        if target.exists():
            target.rename(self.work / f"old-{secrets.token_hex(4)}")
        folder.rename(target)

    def check_places(self, jobs: Iterable[Job]) -> None:
        """Raise UsageError if something that is no result of a batch has the name of a result."""
        check_writable(self.path / RESULTS, ROWS)
        check_writable(self.path / SUMMARY, SUMMARY_KIND)
        for job in jobs:
            place = self.path / job.name
            is_free = not place.exists() or (place.is_dir() and ((place / ROW).is_file() or not any(place.iterdir())))
            if not is_free:
                raise UsageError(_in_the_way(place, job))

    def write_rows(self, rows: Iterable[Row]) -> None:
        """results.jsonl with these rows and no others."""
        lines = b"".join(map(_as_line, rows))
        write_atomically(self.path / RESULTS, lambda stream: stream.write(lines), ROWS)

    def add_row(self, row: Row) -> None:
        """One more line in results.jsonl."""
        with reporting(self.path / RESULTS), (self.path / RESULTS).open("ab") as stream:
            stream.write(_as_line(row))

    def write_summary(self, text: str) -> None:
        """summary.md."""
        write_atomically(self.path / SUMMARY, lambda stream: stream.write(text.encode()), SUMMARY_KIND)

    def tidy(self) -> None:
        """End processes that a killed batch left, give finished folders their place, and remove the rest of .work."""
        folders = [each for each in self.work.iterdir() if each.is_dir()]
        for folder in folders:
            identity = folder / IDENTITY
            if identity.is_file():
                kill_if_still(identity.read_text(encoding="utf-8"))
        for folder in folders:
            stored = None if folder.name.startswith("old-") else _read_row(folder)
            if stored is not None:
                self._put_in_place(folder, stored.row.name)
        for folder in [each for each in self.work.iterdir() if each.is_dir()]:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def opened(path: Path) -> Iterator[OutputFolder]:
    """The folder, made if need be, locked against a second batch and tidied. Raises UsageError if it is in use."""
    from filelock import FileLock, Timeout

    folder = OutputFolder(path)
    with reporting(path):
        folder.work.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.work / _LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise UsageError(_in_use(path)) from error
    try:
        with reporting(path):
            folder.tidy()
        yield folder
    finally:
        folder.tidy()
        lock.release()  # its file stays: whoever waits for it may have opened it already


def _read_row(folder: Path) -> Stored | None:
    try:
        content = json.loads((folder / ROW).read_text(encoding="utf-8"))
        if content["format"] != _FORMAT:
            return None
        return Stored(row_from_plain(content["row"]), content["key"], content["read"], content["written"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _has_digest(path: Path, digest: str) -> bool:
    try:
        return file_digest(path) == digest
    except OSError:
        return False


def _plain(stored: Stored) -> dict[str, Any]:
    return {"row": stored.row.as_plain(), "key": stored.key, "read": stored.read, "written": stored.written}


def _as_line(row: Row) -> bytes:
    return json.dumps(row.as_plain(), allow_nan=False).encode() + b"\n"


def _in_use(path: Path) -> Finding:
    return Finding(
        code="AS545",
        name="batch-at-work",
        what=f"another batch is at work in {str(path)!r}.",
        why="two batches would write the same files.",
        fix="wait for it, or give this one another folder with -o.",
    )


def _in_the_way(place: Path, job: Job) -> Finding:
    return Finding(
        code="AS549",
        name="folder-in-the-way",
        what=f"{str(place)!r} is no result of a batch, and has the name of the model {job.source!r}.",
        why="the results of a model replace what is in its folder.",
        fix="give the batch another folder with -o, or the model another name.",
    )
