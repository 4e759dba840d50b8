"""What a Ray worker does for one model: unpack its files, run its process, send the results, remove everything."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from anyshape.batch.jobs import Job
from anyshape.batch.model_digest import versions
from anyshape.batch.model_limits import share_of_memory
from anyshape.batch.model_process import Ended, Surroundings, run_model
from anyshape.batch.process_tree import ProcessTable, identity_of, is_gone

CHUNK = 64 << 20
_PREFIX, _OWNER = "anyshape-batch-", ".owner"


@dataclass(frozen=True, kw_only=True)
class Header:
    """Sent first: how the process ended, the sizes of the files whose bytes follow, and the folder that they speak of."""

    ended: Ended
    files: Mapping[str, int]
    versions: Mapping[str, str]
    root: str
    memory_limit: int | None


Item = tuple[str, Header | bytes]
"""A token of the attempt that made it, and a header or a piece of a file."""


def run_on_worker(job: Job, files: Mapping[str, Sequence[Any]]) -> Iterator[Item]:
    """Export a model whose files are pieces in the object store. Nothing is sent before its process has ended."""
    token = secrets.token_hex(8)
    root = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        (root / _OWNER).write_text(identity_of(os.getpid()) or "", encoding="utf-8")
        place, folder = root / "source", root / "work"
        place.mkdir()
        folder.mkdir()
        _unpack(files, place)
        limited = job if job.memory_limit is not None else replace(job, memory_limit=share_of_memory(1))
        ended = run_model(
            limited,
            folder,
            Surroundings(cwd=place, removed=root),
            table=ProcessTable(),
            stop=threading.Event(),
            report=lambda running: None,
        )
        written = {each.relative_to(folder).as_posix(): each for each in sorted(folder.rglob("*")) if each.is_file()}
        yield (
            token,
            Header(
                ended=replace(ended, where=socket.gethostname()),
                files={name: path.stat().st_size for name, path in written.items()},
                versions=versions(),
                root=str(root),
                memory_limit=limited.memory_limit,
            ),
        )
        for path in written.values():
            yield from ((token, piece) for piece in read_pieces(path))
    finally:
        shutil.rmtree(root, ignore_errors=True)


def run_share(
    function: Callable[..., Any], call: Any, share: tuple[int, int], files: Mapping[str, Sequence[Any]]
) -> Any:
    """What `function(call, share)` returns in a folder with these files; its process serves no other task."""
    root = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        (root / _OWNER).write_text(identity_of(os.getpid()) or "", encoding="utf-8")
        _unpack(files, root / "source")
        os.chdir(root / "source")
        return function(call, share)
    finally:
        os.chdir(tempfile.gettempdir())
        shutil.rmtree(root, ignore_errors=True)


def read_pieces(path: Path) -> Iterator[bytes]:
    """The bytes of a file, 64 MB at a time; none for an empty one."""
    with path.open("rb") as stream:
        while piece := stream.read(CHUNK):
            yield piece


def _unpack(files: Mapping[str, Sequence[Any]], place: Path) -> None:
    import ray

    for name, pieces in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as stream:
            for piece in pieces:
                stream.write(ray.get(piece))


def sweep() -> None:
    """Remove folders of workers on this machine that were killed."""
    for root in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            owner = (root / _OWNER).read_text(encoding="utf-8")
        except OSError:  # made this moment, or somebody else's
            continue
        if is_gone(owner):
            shutil.rmtree(root, ignore_errors=True)
