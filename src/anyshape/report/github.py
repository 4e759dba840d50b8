"""Findings where GitHub Actions shows them: beside the line of a change, and in the summary of the job.

Two environment variables decide what is written: GITHUB_ACTIONS for annotations, GITHUB_STEP_SUMMARY for a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TextIO

from anyshape.findings import Finding, Severity, Source

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def tell_github(
    done: str, findings: Iterable[Finding], environment: Mapping[str, str], stream: TextIO, evidence: str = ""
) -> None:
    """Annotate the lines that findings name, and add a table to the job's summary. `done` is `check m.onnx`."""
    found = list(findings)
    if environment.get("GITHUB_ACTIONS"):
        for line in filter(None, map(format_annotation, found)):
            stream.write(line + "\n")
    summary = environment.get("GITHUB_STEP_SUMMARY")
    if summary:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(format_summary(done, found, evidence))


def format_annotation(finding: Finding) -> str:
    """`::error file=model.py,line=41,title=AS302 wrong-shape::...`; empty for a finding without a line."""
    source = finding.where if isinstance(finding.where, Source) else finding.source
    if source is None:
        return ""
    place = f"file={_property(source.file)},line={source.line},title={_property(f'{finding.code} {finding.name}')}"
    return f"::{_COMMANDS[finding.severity]} {place}::{_data(_sentence(finding))}"


def format_summary(done: str, findings: Iterable[Finding], evidence: str = "") -> str:
    """A heading about whether the promise is kept, and a row for each finding."""
    found = list(findings)
    kept = all(finding.severity is not Severity.ERROR for finding in found)
    lines = [f"### anyshape {done}: {'kept' if kept else 'BROKEN'}", ""]
    if evidence:
        lines += [evidence, ""]
    if found:
        lines += ["| finding | what | where |", "|---|---|---|"]
        lines += [
            f"| {_cell(f'{each.code} {each.name}')} | {_cell(each.what)} | {_cell(str(each.where or each.source or ''))} |"
            for each in found
        ]
        lines += ["", "<details><summary>In full</summary>", "", "```text", "\n\n".join(map(str, found)), "```", ""]
        lines += ["</details>", ""]
    return "\n".join(lines) + "\n"


def _sentence(finding: Finding) -> str:
    label = "Fix (not tried)" if finding.is_fix_untried else "Fix"
    return "\n".join(filter(None, [finding.what, finding.why, finding.fix and f"{label}: {finding.fix}"]))


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
