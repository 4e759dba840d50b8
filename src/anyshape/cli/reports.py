"""`--report out.html` of the commands."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from anyshape.checking.compare_file import Checked
    from anyshape.exporting.context import Tell
    from anyshape.inputs import Declared
    from anyshape.records.export import Export
    from anyshape.records.stripping import Benched


def check_report(path: Path | None) -> None:
    """Find out before the work that the page cannot be made, or not be written there. Raises UsageError."""
    from anyshape.report.page.render_page import check_report_packages
    from anyshape.saving import check_writable

    if path is not None:
        check_report_packages()
        check_writable(path)


def command_line() -> str:
    """How anyshape was called, to be typed again."""
    return shlex.join(["anyshape", *sys.argv[1:]])


def write_exports(path: Path, files: Sequence[Export]) -> None:
    """Write the page of an export; of several files a page each, `out-encoder_model.html`."""
    from anyshape.exporting.report_files import PageReporter

    for each in files:
        is_one = len(files) == 1 or each.path is None
        place = path if is_one else path.with_stem(f"{path.stem}-{Path(str(each.path)).stem}")
        PageReporter().write(each, place, command=command_line())


def measure_file(file: Path, module: torch.nn.Module, declared: Declared, seed: int, tell: Tell) -> Benched:
    """Latency and memory of a file at a few sizes of its domain."""
    from anyshape.checking.benching import BenchOptions, bench_file

    return bench_file(file, module, declared, BenchOptions(seed=seed), tell)


def write_check(
    path: Path, file: Path, checked: Checked, declared: Declared, benched: Benched | None, *, model: str, seed: int
) -> None:
    """Write the page of a check."""
    from anyshape.contract.build import promised_inputs, recorded_versions
    from anyshape.contract.digest import open_model
    from anyshape.contract.metadata import find_contract
    from anyshape.exporting.report_files import write_page
    from anyshape.records.runs import Run
    from anyshape.report.page.page_facts import facts_of_check

    run = Run(
        model=model,
        domain=declared.domain,
        inputs=promised_inputs(declared),
        example=dict(declared.example_sizes),
        seed=seed,
        versions=recorded_versions(),
    )
    facts = facts_of_check(
        str(file),
        find_contract(file),
        run,
        checked.verdict,
        checked.findings,
        open_model(file),
        command=command_line(),
        bench=benched,
    )
    write_page(facts, path)
