"""Run the models of a batch on a Ray cluster: one task a model. Ray places the tasks, and runs them again if a node dies.

A task sends its files in pieces. Should a node die while they come, Ray runs the task anew and goes on with the pieces of
the new attempt; pieces of two attempts are no file, so the model is then submitted again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from time import time
from typing import Any

from anyshape.batch.jobs import Job, local_path
from anyshape.batch.model_files import Travelling, pack, returned, versions
from anyshape.batch.model_process import Finished, ReportRunning, Running
from anyshape.batch.output_folder import LOG, NOTED, PRINTED, OutputFolder
from anyshape.batch.ray_cluster import (
    Header,
    alive_nodes,
    check_worker,
    end_tasks,
    memory_to_reserve,
    read_pieces,
    run_on_worker,
)
from anyshape.batch.ray_connection import connected, first_line, no_cluster
from anyshape.findings import UsageError

_RETRIES = 3
_UNKNOWN = 1 << 29  # a guess at the weights of a model that is not here


class _MixedAttempts(Exception):
    """Pieces of two attempts came."""


class RayPool:
    """The cluster at an address; "auto" is the one of this machine, "local" one that is started for the batch."""

    def __init__(self, address: str) -> None:
        self._address = address

    def limited(self, job: Job) -> Job:
        """The job as it is: a model without a limit of its own may have nine tenths of its node."""
        return job

    def run(self, jobs: Sequence[Job], output: OutputFolder, report: ReportRunning) -> Generator[Finished]:
        """Each model as it ends. When the iteration is given up, its tasks are cancelled."""
        with connected(self._address) as ray:
            cluster = _Cluster(ray)
            try:
                yield from cluster.run(jobs, output, report)
            finally:
                cluster.clear_up()


class _Cluster:
    """The tasks that are under way on a cluster."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._running: dict[Any, tuple[Job, Travelling, float]] = {}
        self._attempts: Counter[str] = Counter()
        self._most_memory = max((node["Resources"].get("memory", 0) for node in alive_nodes(ray)), default=0)
        self._versions = versions()
        self.clear_up()

    def run(self, jobs: Sequence[Job], output: OutputFolder, report: ReportRunning) -> Generator[Finished]:
        waiting, shown = deque(jobs), Running("on the cluster")
        while waiting or self._running:
            # Two for each processor: the object store holds the files of those that wait.
            most = 2 * max(1, int(self._ray.cluster_resources().get("CPU", 1)))
            while waiting and len(self._running) < most:
                self._submit(waiting.popleft())
            shown.stage = f"{len(self._running)} models there, {len(waiting)} to come"
            report(0, shown)
            ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=1.0)
            for stream in ready:
                job, travelling, packed_at = self._running.pop(stream)
                finished = self._receive(stream, job, travelling, output)
                if finished is not None and finished.ended is not None:  # this machine's clock, not the worker's
                    finished = replace(finished, ended=replace(finished.ended, began=packed_at))
                if finished is None:
                    waiting.append(job)
                else:
                    yield finished

    def _submit(self, job: Job) -> None:
        travelling, packed_at = pack(job), time()
        files = {name: [self._ray.put(each) for each in read_pieces(path)] for name, path in travelling.files.items()}
        task = self._ray.remote(run_on_worker).options(
            num_returns="streaming",
            num_cpus=job.cpus,
            memory=self._memory_for(job, travelling),
            max_retries=_RETRIES,
            name=f"anyshape {job.name}",
        )
        self._running[task.remote(travelling.job, files)] = (job, travelling, packed_at)
        self._attempts[job.name] += 1

    def _memory_for(self, job: Job, travelling: Travelling) -> int:
        """What to reserve: the limit of the model, or an estimate that some node has."""
        if job.memory_limit is not None:
            return job.memory_limit
        is_here = local_path(job.source) is not None
        estimate = memory_to_reserve(travelling.data_bytes if is_here else _UNKNOWN)
        return int(min(estimate, self._most_memory)) if self._most_memory else estimate

    def _receive(self, stream: Any, job: Job, travelling: Travelling, output: OutputFolder) -> Finished | None:
        """The results of a task in a new folder; None if the model has to be submitted again."""
        folder = output.new_folder(job)
        try:
            header = self._write(stream, folder)
        except (_MixedAttempts, self._ray.exceptions.ObjectLostError) as error:
            return self._give_up(job, folder, error)
        except self._ray.exceptions.RayError as error:
            check_worker(error)
            return Finished(job, folder, None, first_line(error))
        _check_versions(header, self._versions)
        _speak_of_here(folder, header.root, travelling)
        return Finished(job, folder, header.ended)

    def _give_up(self, job: Job, folder: Path, error: Exception) -> Finished | None:
        if self._attempts[job.name] > _RETRIES:
            return Finished(job, folder, None, first_line(error))
        return None

    def _write(self, stream: Any, folder: Path) -> Header:
        """Write the files that a task sends; the header comes back. Raises _MixedAttempts, or an error of Ray's."""
        items = (self._ray.get(each) for each in stream)
        token, header = next(items, ("", None))
        if not isinstance(header, Header):
            raise _MixedAttempts("the first piece was lost")
        for name, size in header.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                while file.tell() < size:
                    other, piece = next(items, ("", b""))
                    if other != token or not isinstance(piece, bytes):
                        raise _MixedAttempts("its node died while its files came")
                    file.write(piece)
        return header

    def clear_up(self) -> None:
        """Cancel what runs, and remove what killed workers left on their machines."""
        end_tasks(self._ray, list(self._running))
        self._running.clear()


def _check_versions(header: Header, here: dict[str, str]) -> None:
    other = {name: version for name, version in header.versions.items() if here.get(name) != version}
    if other:
        name, version = next(iter(other.items()))
        what = f"{header.ended.where} has {name} {version}, and this machine {here.get(name, 'none')}."
        why = "a result belongs to the versions that made it: on other nodes it would be another file."
        raise UsageError(no_cluster(what, why, f"pip install {name}=={here.get(name, '...')}   on every node"))


def _speak_of_here(folder: Path, root: str, travelling: Travelling) -> None:
    """Replace the paths of the other machine in what the process wrote by those of this one."""
    place = f"{root}/source"
    noted = folder / NOTED
    if noted.is_file():
        text = returned(noted.read_text(encoding="utf-8", errors="replace"), place, travelling.folders)
        noted.write_text(text, encoding="utf-8")
    pairs = [(f"{place}/{there}" if there else place, own) for there, own in travelling.folders.items()]
    pairs = [*sorted(pairs, reverse=True), (f"{root}/work", str(folder.absolute()))]
    for name in (PRINTED, LOG):
        content = (folder / name).read_bytes() if (folder / name).is_file() else b""
        for there, own in pairs:
            content = content.replace(there.encode(), own.encode())
        (folder / name).write_bytes(content)
