"""`anyshape batch`: many models, from a manifest or from sources on the command line, with progress on stderr."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyshape.cli import Outcome, Overwrite, Quiet, RayAddress
from anyshape.findings import Finding, UsageError
from anyshape.findings.finding import shown
from anyshape.report import format_bytes

if TYPE_CHECKING:
    from anyshape.batch.manifest import Manifest
    from anyshape.batch.model_process import Running
    from anyshape.batch.rows import Row

_EVERY_SECONDS = 30.0


def batch(
    models: Annotated[
        list[str], typer.Argument(help="One MANIFEST.toml, or sources as for export.", show_default=False)
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The folder for the results.", show_default=False)
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Models at a time.", show_default="1")] = None,
    time_limit: Annotated[
        str | None, typer.Option(help="Time limit of each model: 60s, 10m.", show_default="10m, or the manifest's")
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            help="Memory limit of each model, with the processes that it starts: 4GB.",
            show_default="a share of the memory",
        ),
    ] = None,
    option: Annotated[
        list[str],
        typer.Option(
            "--option", "-O", help="An option of export, for each model: -O verify=quick. May be given several times."
        ),
    ] = [],  # noqa: B006
    ray: RayAddress = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Do models again that are done, and not kept.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(help="Write the rows as one HTML page: out.html.", show_default=False)
    ] = None,
    overwrite: Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
    quiet: Quiet = False,
) -> Outcome:
    """Export many models, each in a process of its own. What is done and unchanged is not done again.

    \b
    anyshape batch bert.py gpt2.py -o exported --jobs 2
    anyshape batch models.toml

    models.toml:

    \b
        output = "exported"
        [defaults]
        time_limit = "10m"
        [[model]]
        source = "bert.py"
        where = ["1 <= batch <= 64"]

    A crash, a hang or too much memory of one model is one row. The folder has a folder for each model, results.jsonl (rows
    as they come) and summary.md. The exit status is that of the worst model.
    """
    from anyshape.batch import make_pool, run_batch
    from anyshape.cli.late_options import check_report, write_batch
    from anyshape.saving.outputs import PAGE, check_replaceable, command_files

    given = {"time_limit": time_limit, "memory_limit": memory_limit}
    manifest = _read(models, {key: value for key, value in given.items() if value is not None}, option)
    folder = output or manifest.output
    if folder is None:
        raise UsageError(
            Finding(code="AS036", name="argument", what="the folder for the results is missing.", fix="-o exported")
        )
    check_report(report)
    if report is not None:
        with command_files(*(job.source for job in manifest.jobs)):
            check_replaceable(report, PAGE)
    try:
        with BatchProgress(quiet=quiet) as progress:
            pool = make_pool(jobs or manifest.workers or 1, ray)
            done = run_batch(manifest.jobs, folder, pool, retry_failed=retry_failed, watcher=progress)
    except KeyboardInterrupt:
        sys.stderr.write(f"interrupted: what is done is in {folder}; the same command goes on from there.\n")
        return Outcome({"kept": False, "status": 130, "error": "interrupted", "findings": []} if as_json else None, 130)
    write_batch(report, done, quiet=quiet)
    return Outcome(done.as_plain() if as_json else str(done), done.status)


def _read(models: list[str], limits: dict[str, str], options: list[str]) -> Manifest:
    """The jobs of a manifest or of sources, under the limits and options of the command line."""
    from anyshape.batch.manifest import Manifest, jobs_of, read_manifest

    given = {**limits, **dict(map(_read_option, options))}
    manifests = [each for each in models if each.endswith(".toml")]
    if not manifests:
        return Manifest(jobs_of(models, given))
    if len(models) > 1:
        what = f"{manifests[0]!r} is a manifest, and there are further sources."
        raise UsageError(Finding(code="AS036", name="argument", what=what, fix=f"anyshape batch {manifests[0]}"))
    return read_manifest(Path(models[0]), given)


def _read_option(text: str) -> tuple[str, Any]:
    """`verify=quick`; true, false and numbers are what they look like."""
    import tomllib

    name, equals, value = text.partition("=")
    if not equals:
        what = f"--option {text!r} has no value."
        raise UsageError(Finding(code="AS036", name="argument", what=what, fix=f"--option {text}=VALUE"))
    try:
        return name.strip().replace("-", "_"), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name.strip().replace("-", "_"), value


class BatchProgress:
    """A watcher of a batch, and a context manager: what it draws, it takes away."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._live: Any = None
        self._lock = threading.Lock()
        self._workers: dict[int, Running] = {}
        self._total = self._done = 0
        self._said_at = time.monotonic()

    def begin(self, total: int, done: int) -> None:
        """Show how much there is to do."""
        self._total, self._done = total, done
        if done:
            self._say(f"{done} of {total} models are done and unchanged")

    def work(self, worker: int, running: Running | None) -> None:
        """Show what a worker is at."""
        with self._lock:
            if running is None:
                self._workers.pop(worker, None)
            else:
                self._workers[worker] = running
            if self._live is not None:
                self._live.update(self._lines())
            elif self._workers and time.monotonic() - self._said_at > _EVERY_SECONDS:
                self._say("; ".join(line.strip() for line in self._lines().splitlines()))

    def finish(self, row: Row) -> None:
        """A line for a model that is done."""
        self._done += 1
        finding = str((row.finding or {}).get("text", "")).partition("\n")[0]
        self._say(f"[{self._done}/{self._total}] {row.outcome}: {row.name}, in {row.seconds:.1f} s  {finding}".rstrip())

    def _say(self, text: str) -> None:
        if self._quiet:
            return
        text = shown(text)
        if self._live is not None:
            self._live.console.print(text, highlight=False, markup=False)
        else:
            sys.stderr.write(f"anyshape: {text}\n")
            sys.stderr.flush()
            self._said_at = time.monotonic()

    def _lines(self) -> str:
        lines = [f"{self._done} of {self._total} models"]
        for _worker, running in sorted(self._workers.items()):
            memory = f"  {format_bytes(running.resident)}" if running.resident else ""
            lines.append(f"  {running.name}  {running.seconds:.0f} s  {running.stage}{memory}")
        return "\n".join(lines)

    def __enter__(self) -> BatchProgress:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
