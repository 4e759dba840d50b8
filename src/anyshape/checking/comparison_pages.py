"""The page of two files that were compared: the same for `anyshape.files.compare` and for the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from anyshape.contract.build import describe_run
from anyshape.inputs import Declared
from anyshape.report.file_comparison import FilesCompared
from anyshape.report.page.comparison_page import render_comparison, render_comparison_summary
from anyshape.saving import write_atomically

if TYPE_CHECKING:
    from anyshape.records.stripping import Benched


class ComparisonReporter:
    """The reporter of a comparison of two files."""

    def write(self, result: FilesCompared, path: Path, bench: Benched | None = None, *, command: str = "") -> None:
        """Write the page. Raises UsageError where it cannot be written, or a package is missing."""
        if bench is not None:
            raise TypeError("report() of a comparison takes no bench: both files are measured by compare(measure=4)")
        page = render_comparison(result, command=command).encode("utf-8")
        write_atomically(path, lambda stream: stream.write(page))

    def summarize(self, result: FilesCompared) -> str | None:
        """The two files side by side as HTML."""
        return render_comparison_summary(result)


def with_page(compared: FilesCompared, declared: Declared, model: str, seed: int) -> FilesCompared:
    """The comparison as the user gets it: with what was declared, and with a page; `model` is the name of the model."""
    return replace(compared, run=describe_run(model, declared, seed), reporter=ComparisonReporter())
