"""The page of a file that was checked: the same for `anyshape.check` and for the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from anyshape.checking.compare_file import Checked
from anyshape.contract.build import describe_run
from anyshape.contract.digest import open_model
from anyshape.contract.metadata import find_contract
from anyshape.exporting.report_files import write_page
from anyshape.inputs import Declared
from anyshape.records.contract import Contract
from anyshape.records.file_verdict import FileVerdict, about_file
from anyshape.records.runs import Run
from anyshape.report.page.page_facts import PageFacts, facts_of_check
from anyshape.report.page.render_page import render_summary

if TYPE_CHECKING:
    import onnx_ir as ir

    from anyshape.records.stripping import Benched


@dataclass(frozen=True)
class CheckReporter:
    """The reporter of a check: what was declared, and the contract that the file had when it was checked."""

    run: Run
    contract: Contract | None

    def write(self, result: FileVerdict, path: Path, bench: Benched | None = None, *, command: str = "") -> None:
        """Write the page of a check. Raises UsageError where it cannot be written, or a package is missing."""
        write_page(self._facts(result, open_model(result.path), bench, command), path)

    def summarize(self, result: FileVerdict) -> str | None:
        """Verdict and contract as HTML."""
        return render_summary(self._facts(result))

    def _facts(
        self,
        result: FileVerdict,
        model: ir.Model | None = None,
        bench: Benched | None = None,
        command: str = "",
    ) -> PageFacts:
        return facts_of_check(
            str(result.path), self.contract, self.run, result, result.findings, model, command=command, bench=bench
        )


def check_reporter(path: Path, declared: Declared, model: str, seed: int) -> CheckReporter:
    """The reporter of a check that is done; `model` is the name of the model."""
    return CheckReporter(describe_run(model, declared, seed), find_contract(path))


def check_result(path: Path, checked: Checked, reporter: CheckReporter) -> FileVerdict:
    """What the user gets of a check."""
    return about_file(checked.verdict, path, checked.findings, reporter, signed=checked.signed)
