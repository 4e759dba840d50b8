"""Pages of results, written whole or not at all. What makes a page is loaded when one is made: most exports have none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from anyshape.findings import PromiseBroken
from anyshape.records.export import Export
from anyshape.saving import write_atomically

if TYPE_CHECKING:
    from anyshape.records.runs import Benched
    from anyshape.report.page.page_facts import PageFacts


class PageReporter:
    """The reporter of an export (`Export.report`), and of a notebook."""

    def write(self, result: Export, path: Path, bench: Benched | None = None, *, command: str = "") -> None:
        """Write the page of a result. Raises UsageError where it cannot be written, or a package is missing."""
        from anyshape.report.page.page_facts import facts_of_export

        write_page(facts_of_export(result, command=command, bench=bench), path)

    def summarize(self, result: Export) -> str | None:
        """Verdict and contract as HTML."""
        from anyshape.report.page import render_summary
        from anyshape.report.page.page_facts import facts_of_export

        return render_summary(facts_of_export(result))


def write_refusal(broken: PromiseBroken, path: Path, *, command: str = "") -> None:
    """Write the page of an export that was refused."""
    from anyshape.report.page.page_facts import facts_of_refusal

    write_page(facts_of_refusal(broken.findings, broken.attempts, broken.run, command=command), path)


def write_page(facts: PageFacts, path: Path) -> None:
    """Write a page."""
    from anyshape.report.page import render_page

    page = render_page(facts).encode("utf-8")
    write_atomically(path, lambda stream: stream.write(page))
