"""Many models at once: each in a process of its own, on this machine or on a Ray cluster.

This file: export many models, each in a process of its own; what is done and unchanged is not done again.

from anyshape.batch import export_many
export_many(["bert.py", "hf:org/tiny"], "exported", jobs=2, time_limit="5m")

Files, in the order in which data flows:

    jobs           one model of a batch: source, name, options, limits
    manifest       MANIFEST.toml -> jobs
    output_folder  the folder of a batch
    model_files    whether a result still holds, and files that go to another machine
    model_process  run models on this machine: start and watch the process of each
    ray_pool       run models on a Ray cluster
    ray_cluster    what a worker of a Ray cluster does
    ray_connection the connection to a Ray cluster
    process_tree   what the process of a model does; its processes, their memory, their end
    keeping        how the process of a model ended -> its row, and its folder in its place
    rows           the result of one model; tables and the page of a batch
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from anyshape.batch.jobs import Job
from anyshape.batch.keeping import keep_model
from anyshape.batch.manifest import Manifest, jobs_of, read_manifest
from anyshape.batch.model_files import is_unchanged, key_of, versions
from anyshape.batch.model_process import Finished, LocalPool, ReportRunning, Running
from anyshape.batch.output_folder import OutputFolder, opened
from anyshape.batch.rows import LOST, Row, as_markdown, as_text, count_outcomes, rows_as_records, worst_status
from anyshape.findings import raises_for_caller

__all__ = ["Batch", "Row", "export_many", "rows_as_records"]


class Watcher(Protocol):
    """Shows the progress of a batch: `export_many` calls its methods."""

    def begin(self, total: int, done: int) -> None: ...
    def work(self, worker: int, running: Running | None) -> None: ...
    def finish(self, row: Row) -> None: ...


class _Nobody:
    """Default watcher: ignores progress."""

    def begin(self, total: int, done: int) -> None: ...
    def work(self, worker: int, running: Running | None) -> None: ...
    def finish(self, row: Row) -> None: ...


class Pool(Protocol):
    """Where models run: this machine, or a cluster."""

    def limited(self, job: Job) -> Job: ...
    def run(self, jobs: Sequence[Job], output: OutputFolder, report: ReportRunning) -> Generator[Finished]: ...


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The rows of a batch in the order of its models; `total` is more than they are if it was interrupted."""

    path: Path
    rows: tuple[Row, ...]
    total: int
    reused: int = 0

    @property
    def status(self) -> int:
        """The exit status: that of the worst model."""
        return worst_status(self.rows)

    @property
    def records(self) -> list[dict[str, Any]]:
        """One flat dict for each row, for a table of any kind."""
        return rows_as_records(self.rows)

    def report(self, path: str | PathLike[str]) -> Path:
        """Write the rows as one HTML file, complete in itself, and return its path. Needs `anyshape[report]`."""
        from anyshape.batch.rows import write_rows_page

        write_rows_page(Path(path), self.path.name, self.rows, self.total)
        return Path(path)

    def as_plain(self) -> dict[str, Any]:
        """As dicts, lists, texts and numbers, for JSON."""
        rows = [row.as_plain() for row in self.rows]
        return {"status": self.status, "path": str(self.path), "total": self.total, "reused": self.reused, "rows": rows}

    def __str__(self) -> str:
        again = f" ({self.reused} done before)" if self.reused else ""
        return f"{as_text(self.rows)}\n\n{count_outcomes(self.rows, self.total)}{again}: {self.path}"


@raises_for_caller
def export_many(
    models: str | PathLike[str] | Iterable[str | Mapping[str, Any]],
    output: str | PathLike[str] | None = None,
    *,
    jobs: int | None = None,
    ray: str | None = None,
    retry_failed: bool = False,
    watcher: Watcher | None = None,
    **defaults: Any,
) -> Batch:
    """Export models into a folder, each in a process of its own, and return a row for each.

    `models` is the path of a manifest (`models.toml`), or a list of sources as for `anyshape export`, or of dicts with the
    keys of a manifest's [[model]]. `defaults` are keys of its [defaults]: `verify="quick"`, `time_limit="5m"`. `jobs` are
    the models at a time: the manifest's number, or 1, unless given. `ray` is the address of a Ray cluster, "auto" for the
    one of this machine. Results that are there and unchanged are not made again; `retry_failed` makes those anew that are
    not kept. Raises UsageError before the first model is begun.
    """
    if isinstance(models, (str, PathLike)):
        manifest = read_manifest(Path(models), defaults)
    else:
        manifest = Manifest(jobs_of(models, defaults))
    folder = manifest.output if output is None else Path(output)
    if folder is None:
        raise TypeError("export_many() needs `output`, the folder for the results")
    pool = make_pool(jobs or manifest.workers or 1, ray)
    return run_batch(manifest.jobs, folder, pool, retry_failed=retry_failed, watcher=watcher)


def make_pool(jobs: int, ray: str | None) -> Pool:
    """The pool for `jobs` workers here, or for the cluster at the address `ray`."""
    if ray is None:
        return LocalPool(jobs)
    from anyshape.batch.ray_pool import RayPool

    return RayPool(ray)


def run_batch(
    jobs: Sequence[Job], path: Path, pool: Pool, *, retry_failed: bool = False, watcher: Watcher | None = None
) -> Batch:
    """Run the jobs that are not done yet. KeyboardInterrupt goes through when every process is ended and every file whole."""
    told, used = watcher or _Nobody(), versions()
    limited = [pool.limited(job) for job in jobs]
    with opened(path) as output:
        output.check_places(jobs)
        rows = {job.name: row for job in limited if (row := _find_done(output, job, used, retry_failed)) is not None}
        reused = len(rows)
        told.begin(len(jobs), reused)
        output.write_rows(_in_order(jobs, rows))
        left = [job for job in limited if job.name not in rows]
        try:
            if left:
                with closing(pool.run(left, output, told.work)) as finished:
                    for each in finished:
                        row = rows[each.job.name] = keep_model(output, each, used)
                        output.add_row(row)
                        told.finish(row)
        finally:
            ordered = _in_order(jobs, rows)
            output.write_rows(ordered)
            output.write_summary(as_markdown(ordered, len(jobs)))
    return Batch(path=path, rows=ordered, total=len(jobs), reused=reused)


def _in_order(jobs: Iterable[Job], rows: Mapping[str, Row]) -> tuple[Row, ...]:
    return tuple(rows[job.name] for job in jobs if job.name in rows)


def _find_done(output: OutputFolder, job: Job, used: Mapping[str, str], retry_failed: bool) -> Row | None:
    """The row of a model that is done, if nothing that it depends on has changed."""
    stored = output.find(job.name)
    if stored is None or stored.key != key_of(job, used) or not is_unchanged(stored.read):
        return None
    row = stored.row
    # More time or memory can turn a failure into a file; a file that is kept stays what it is.
    has_more = job.time_limit > row.time_limit or (job.memory_limit or 0) > (row.memory_limit or 0)
    is_again = row.outcome == LOST or (not row.is_kept and (retry_failed or has_more))
    return None if is_again else row
