"""The story of an export: the pipeline, the ladder of rungs, and what is decided between the stages.

This file: how its result is written as a page, whole or not at all. What makes a page is loaded when one is made: most exports
have none.

Files, in the order in which data flows:

    pipeline          the stages in order; start reading here
    context           ExportContext: what every rung works with; time of stages; the function that compares
    number_reads      numbers that Python reads from tensors which follow from sizes
    size_census       what the code does at each size of a dim that it uses as a text or a key
    constancy         models with state or randomness: refused, or made constant
    empty_ranges      open ranges that begin at 0, where the user's code shows by its conditions that 0 is meant
    calls_at_sizes    call the module at given sizes: does it answer?
    module_trials     where the module answers, with values that it takes
    ladder            RUNGS: all rungs in order, until one gives a file that is right
    capture_attempts  the attempts of the rungs
    attempts          one attempt: capture -> translate -> optimize -> defend -> verify
    decided           the rung for models that decide by values
    bounded           which part of the domain is promised, and the sizes at which the file is compared
    targets           target="onnxruntime": its optimizer's file, with names and metadata put back
    fix_trials        fixes of errors are tried before they are shown; static axes that have to follow a dim
    source_repair     repair=True: find edits, export a copy with edited source
    module_evidence   evidence that edits are right, and checks that reject them
    dry_run           `anyshape.axes`: explore, and write nothing
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from anyshape.findings import PromiseBroken
from anyshape.records.export import Export
from anyshape.saving import write_atomically
from anyshape.saving.outputs import PAGE

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
    write_atomically(path, lambda stream: stream.write(page), PAGE)


def preload() -> None:
    """Load what exports load, and make the tables that they share, before a process is forked for one of them."""
    from anyshape.processes.preload import load_libraries, no_collections

    load_libraries()
    with no_collections():
        from anyshape.translate.registry import Translator

        Translator()
