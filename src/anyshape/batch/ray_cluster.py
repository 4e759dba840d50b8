"""What a worker of a Ray cluster does for one model, and one piece of work spread in shares."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from anyshape.batch.jobs import Job, share_of_memory
from anyshape.batch.model_files import Travelling, versions
from anyshape.batch.model_process import Ended, Surroundings, run_model
from anyshape.batch.process_tree import ProcessTable
from anyshape.batch.ray_connection import connected, first_line, no_cluster
from anyshape.findings import Finding, UsageError
from anyshape.saving.leftovers import remove_leftovers, temporary_folder

_SWEEP_S = 30.0
_FIRST, _PER_BYTE = 2 << 30, 4
CHUNK = 64 << 20
_RETRIES = 3


def alive_nodes(ray: Any) -> list[dict[str, Any]]:
    """Ray's record of each node that is alive."""
    return [node for node in ray.nodes() if node["Alive"]]


def sweep_nodes(ray: Any) -> None:
    """Remove what killed workers left on their machines."""
    at = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    with contextlib.suppress(ray.exceptions.RayError):
        tasks = [
            ray.remote(sweep).options(num_cpus=0, max_retries=0, scheduling_strategy=at(node["NodeID"], soft=False))
            for node in alive_nodes(ray)
        ]
        ray.get([task.remote() for task in tasks], timeout=_SWEEP_S)


def check_worker(error: Exception) -> None:
    """Raise UsageError if the worker cannot even run anyshape: no other model would fare better."""
    cause = getattr(error, "cause", None) or error
    if isinstance(cause, ImportError) or "No module named 'anyshape'" in str(error):
        what = "a node of the cluster cannot import anyshape."
        raise UsageError(no_cluster(what, first_line(error), "pip install anyshape   on every node")) from error


def memory_to_reserve(data_bytes: int) -> int:
    """Bytes for torch and a small model, and for copies of weights of this size."""
    return _FIRST + _PER_BYTE * data_bytes


@dataclass(frozen=True, kw_only=True)
class Header:
    """Sent first: how the process ended, the sizes of the files whose bytes follow, and the folder of their paths."""

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
    with _own_folder() as root:
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


def run_share(
    function: Callable[..., Any], call: Any, share: tuple[int, int], files: Mapping[str, Sequence[Any]]
) -> Any:
    """What `function(call, share)` returns in a folder with these files; its process runs no other task."""
    with _own_folder() as root:
        try:
            (root / "source").mkdir()
            _unpack(files, root / "source")
            os.chdir(root / "source")
            return function(call, share)
        finally:
            os.chdir(tempfile.gettempdir())


def _own_folder() -> contextlib.AbstractContextManager[Path]:
    """A folder of this worker alone. Should the worker be killed, the next one on this machine removes it, or `sweep`."""
    return temporary_folder(Path(tempfile.gettempdir()), mode=0o700)


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
    remove_leftovers(Path(tempfile.gettempdir()))


def end_tasks(ray: Any, tasks: Sequence[Any]) -> None:
    """Cancel these tasks, wait until their workers have ended, and remove what killed workers left on their machines."""
    for task in tasks:
        with contextlib.suppress(ray.exceptions.RayError, TypeError, ValueError):
            ray.cancel(task, force=True)
    if tasks:
        with contextlib.suppress(ray.exceptions.RayError, TypeError, ValueError):
            ray.wait(list(tasks), num_returns=len(tasks), timeout=_SWEEP_S)
    sweep_nodes(ray)


def spread(
    address: str,
    travelling: Travelling,
    function: Callable[[Any, tuple[int, int]], Any],
    call: Any,
    *,
    most: int,
    tell: Callable[[int, int], None],
) -> list[Any]:
    """The results of `function(call, (place, count))` for each share: one for each processor, `most` at the most.

    Ray runs a share again when its node dies. Raises UsageError if one has no result: nothing is said of the whole then.
    """
    with connected(address) as ray:
        try:
            return _run(ray, travelling, function, call, most, tell)
        except ray.exceptions.RayTaskError as error:
            check_worker(error)
            raise error.as_instanceof_cause() from error
        except ray.exceptions.RayError as error:
            check_worker(error)
            raise UsageError(_lost(first_line(error))) from error


def _run(
    ray: Any,
    travelling: Travelling,
    function: Callable[[Any, tuple[int, int]], Any],
    call: Any,
    most: int,
    tell: Callable[[int, int], None],
) -> list[Any]:
    files = {name: [ray.put(each) for each in read_pieces(path)] for name, path in travelling.files.items()}
    count = max(1, min(most, int(ray.cluster_resources().get("CPU", 1))))
    memory = min(memory_to_reserve(travelling.data_bytes), int(ray.cluster_resources().get("memory", 0)) // count)
    # A process for each share: the code of the model may leave anything behind in its own.
    task = ray.remote(num_cpus=1, memory=memory, max_retries=_RETRIES, max_calls=1)(run_share)
    tasks = [task.remote(function, call, (place, count), files) for place in range(count)]
    waiting = list(tasks)
    try:
        while waiting:
            tell(count - len(waiting), count)
            done, waiting = ray.wait(waiting, num_returns=1)
            ray.get(done)  # a share that failed ends the work at once
        return list(ray.get(tasks))
    finally:
        end_tasks(ray, waiting)


def _lost(why: str) -> Finding:
    return Finding(
        code="AS547",
        name="worker-lost",
        what="a share of the comparisons has no result: its worker was gone at each attempt.",
        why=why,
        fix="run the same command again, or without --ray.",
    )
