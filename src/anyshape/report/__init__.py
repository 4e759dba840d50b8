"""Stage: results as text for people, as JSON for machines, and as one HTML page.

This file: forms of results: tables of 80 columns, amounts of bytes, JSON, and annotations of GitHub Actions.

Two environment variables decide what is written: GITHUB_ACTIONS for annotations, GITHUB_STEP_SUMMARY for a file.

Files, in the order in which data flows:

    text             results as text
    progress_line    progress while something runs
    axes_found       the result of `anyshape axes`
    benches          the result of `anyshape bench`
    file_comparison  the result of `anyshape compare`
    page/            one HTML page
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from anyshape.findings import Finding, Severity, Source
from anyshape.records.export import Export
from anyshape.records.verdict import Verdict, as_plain

WIDTH = 80
_NARROWEST = 8
_GAP = "  "
_UNITS = ("kB", "MB", "GB", "TB")
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[int] = ()) -> list[str]:
    """The lines of a table. Columns whose number is in `right` are aligned there; cells that are too long are wrapped.

    A column without any text is left out.
    """
    lines = [list(head), *(list(row) for row in rows)]
    shown = [place for place in range(len(head)) if any(line[place] for line in lines)]
    lines = [[line[place] for place in shown] for line in lines]
    widths = _widths(lines)
    numbers = {shown.index(place) for place in right if place in shown}
    return [text for line in lines for text in _wrapped(line, widths, numbers)]


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    while sum(widths) + len(_GAP) * len(widths) > WIDTH and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _wrapped(line: Sequence[str], widths: Sequence[int], right: set[int]) -> Iterator[str]:
    cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(line, widths, strict=True)]
    for number in range(max(map(len, cells))):
        parts = [cell[number] if number < len(cell) else "" for cell in cells]
        aligned = [
            part.rjust(width) if place in right else part.ljust(width)
            for place, (part, width) in enumerate(zip(parts, widths, strict=True))
        ]
        yield (_GAP + _GAP.join(aligned)).rstrip()


def wrap_line(label: str, text: str) -> list[str]:
    """`  rule    text`, continued under the text where it is too long."""
    head = f"  {label:<8}"
    return textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=" " * len(head)) or [head.rstrip()]


def format_bytes(count: int) -> str:
    """`12 bytes`, `1.23 MB`, `498 MB`: three digits, in powers of 1000, as `memory_limit` of a batch takes them."""
    if count < 1000:
        return f"{count} bytes"
    value, unit = count / 1000, 0
    while value >= 999.5 and unit < len(_UNITS) - 1:  # 999.6 would be written as 1e+03
        value, unit = value / 1000, unit + 1
    return f"{value:.3g} {_UNITS[unit]}" if value < 999.5 else f"{value:.0f} {_UNITS[unit]}"


def export_as_plain(result: Export, contract: Any) -> dict[str, Any]:
    """An export; `contract` is the contract's own JSON form."""
    return {
        "kept": result.is_kept,
        "path": str(result.path) if result.path is not None else None,
        "strategy": result.strategy,
        "device": result.device,
        "seconds": round(result.seconds, 3),
        **(
            {} if result.run is None else {"stages": {each.stage: round(each.seconds, 3) for each in result.run.stages}}
        ),
        "contract": contract,
        "verdict": as_plain(result.verdict),
        "findings": findings_as_plain(result.findings),
        **({"repair": result.repair.as_plain()} if result.repair is not None else {}),
    }


def check_as_plain(verdict: Verdict, findings: Iterable[Finding], path: str, signed: bool = False) -> dict[str, Any]:
    """A check of an existing file; `signed`: its contract is about the file as it is now."""
    found = findings_as_plain(findings)
    kept = all(finding["severity"] != "error" for finding in found)
    return {"kept": kept, "path": path, "signed": signed, "verdict": as_plain(verdict), "findings": found}


def findings_as_plain(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Findings with their facts, and the text that a person would see."""
    return [{**as_plain(finding), "text": str(finding)} for finding in findings]


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
