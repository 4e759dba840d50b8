"""Run the models of a batch on this machine: so many threads, each with the process of one model at a time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from anyshape.batch.jobs import Job
from anyshape.batch.model_limits import memory_not_measured, share_of_memory
from anyshape.batch.model_process import Ended, Running, Surroundings, run_model
from anyshape.batch.output_folder import OutputFolder
from anyshape.batch.process_tree import ProcessTable, can_list_processes
from anyshape.findings import UsageError
from anyshape.runtime.process import usable_cores

_SLICE_S = 0.2  # a wait that nothing can interrupt


@dataclass(frozen=True)
class Finished:
    """A model whose process has ended. `lost` is why there is none, where its machine was gone at each attempt."""

    job: Job
    folder: Path
    ended: Ended | None
    lost: str = ""


Report = Callable[[int, Running | None], None]
"""Called by a worker with its number and what it is at; None when it is at nothing."""


class LocalPool:
    """`workers` models at a time. Memory limits that nobody gave are a share of the machine's memory."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._threads = max(1, usable_cores() // workers) if workers > 1 else None

    def limited(self, job: Job) -> Job:
        """The job with the memory limit that holds for it here. Raises UsageError if its own cannot be kept."""
        if can_list_processes():
            return job if job.memory_limit is not None else replace(job, memory_limit=share_of_memory(self.workers))
        if job.memory_limit is not None:
            raise UsageError(memory_not_measured())
        return job

    def run(self, jobs: Sequence[Job], output: OutputFolder, report: Report) -> Generator[Finished]:
        """Each model as it ends. When the iteration is given up, every process is ended before this returns."""
        waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
        for job in jobs:
            waiting.put(job)
        done: queue.SimpleQueue[Finished | BaseException] = queue.SimpleQueue()
        stop, table = threading.Event(), ProcessTable()

        def work(number: int) -> None:
            while not stop.is_set():
                try:
                    job = waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    folder = output.new_folder(job)
                    ended = run_model(
                        job,
                        folder,
                        Surroundings(threads=self._threads),
                        table=table,
                        stop=stop,
                        report=lambda running: report(number, running),
                    )
                    report(number, None)
                    done.put(Finished(job, folder, ended))
                except BaseException as error:
                    done.put(error)
                    return

        threads = [threading.Thread(target=work, args=(each,)) for each in range(min(self.workers, len(jobs)))]
        try:
            for thread in threads:
                thread.start()
            for _ in jobs:
                finished = _take(done)
                if isinstance(finished, BaseException):
                    raise finished
                yield finished
        finally:
            stop.set()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()


def _take(done: queue.SimpleQueue[Finished | BaseException]) -> Finished | BaseException:
    while True:
        try:
            return done.get(timeout=_SLICE_S)
        except queue.Empty:
            continue
