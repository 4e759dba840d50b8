"""`--report out.html` of the commands."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from anyshape.cli.output import ProgressLine
from anyshape.findings import PromiseBroken

if TYPE_CHECKING:
    import torch

    from anyshape.batch import Batch
    from anyshape.checking.compare_file import Checked
    from anyshape.exporting.context import Tell
    from anyshape.inputs import Declared
    from anyshape.records.export import Export
    from anyshape.records.stripping import Benched
    from anyshape.report.file_comparison import FilesCompared


_WRITING = "writing the report"


def check_report(path: Path | None, *, measure: bool = False) -> None:
    """Find out before the work that the page cannot be made, or not be written there. Raises UsageError."""
    from anyshape.report.page.render_page import check_report_packages
    from anyshape.saving import check_writable

    if measure and path is None:
        raise typer.BadParameter("--measure is for the page of --report: add --report out.html")
    if path is not None:
        check_report_packages()
        check_writable(path)


def command_line() -> str:
    """How anyshape was called, to be typed again."""
    return shlex.join(["anyshape", *sys.argv[1:]])


def write_result(path: Path | None, result: Export | PromiseBroken, *, quiet: bool) -> None:
    """Write the page of an export or of its refusal, where one is wanted."""
    from anyshape.exporting.report_files import PageReporter, write_refusal

    if path is None:
        return
    with ProgressLine(quiet=quiet) as progress:
        progress(_WRITING, 0, 0)
        if isinstance(result, PromiseBroken):
            write_refusal(result, path, command=command_line())
        else:
            PageReporter().write(result, path, command=command_line())


def write_results(path: Path | None, files: Sequence[Export], *, quiet: bool) -> None:
    """Write the page of an export, where one is wanted; of several files a page each, `out-encoder_model.html`."""
    for each in files:
        place = path
        if path is not None and each.path is not None and len(files) > 1:
            place = path.with_stem(f"{path.stem}-{each.path.stem}")
        write_result(place, each, quiet=quiet)


def measure_file(file: Path, module: torch.nn.Module, declared: Declared, seed: int, tell: Tell) -> Benched:
    """Latency and memory of a file at a few sizes of its domain."""
    from anyshape.checking.benching import BenchOptions, bench_file

    return bench_file(file, module, declared, BenchOptions(seed=seed), tell)


def write_check(
    path: Path | None,
    file: Path,
    checked: Checked,
    declared: Declared,
    benched: Benched | None,
    *,
    model: str,
    seed: int,
    quiet: bool,
) -> None:
    """Write the page of a check, where one is wanted."""
    from anyshape.checking.check_pages import check_reporter, check_result

    if path is None:
        return
    with ProgressLine(quiet=quiet) as progress:
        progress(_WRITING, 0, 0)
        reporter = check_reporter(file, declared, model, seed)
        reporter.write(check_result(file, checked, reporter), path, benched, command=command_line())


def write_comparison(
    path: Path | None, compared: FilesCompared, declared: Declared, *, model: str, seed: int, quiet: bool
) -> None:
    """Write the page of two files, where one is wanted."""
    from anyshape.checking.comparison_pages import ComparisonReporter, with_page

    if path is None:
        return
    with ProgressLine(quiet=quiet) as progress:
        progress(_WRITING, 0, 0)
        ComparisonReporter().write(with_page(compared, declared, model, seed), path, command=command_line())


def write_batch(path: Path | None, batch: Batch, *, quiet: bool) -> None:
    """Write the page of a batch, where one is wanted: a row for each model."""
    from anyshape.batch.batch_page import write_rows_page

    if path is None:
        return
    with ProgressLine(quiet=quiet) as progress:
        progress(_WRITING, 0, 0)
        write_rows_page(path, batch.path.name, batch.rows, batch.total, command=command_line())
