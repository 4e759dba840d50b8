"""What a page is made of: one record for an export, a refusal and a check; lines of the user's code; text made safe."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from anyshape.domain import Domain
from anyshape.findings import Finding, Severity, Source
from anyshape.findings.finding import shorten
from anyshape.records.captured import Guard, Region
from anyshape.records.contract import Contract, TensorPromise
from anyshape.records.export import Attempt, Export
from anyshape.records.runs import Benched, Run, SourceRepair
from anyshape.records.verdict import Verdict

if TYPE_CHECKING:
    import onnx_ir as ir


Status = Literal["kept", "narrowed", "unverified", "broken", "refused"]
_AROUND = 3


@dataclass(frozen=True, kw_only=True)
class PageFacts:
    """The facts of a page; what is not known is None or empty.

    `verdict` of a refusal is that of the attempt that came closest. `regions` are programs between which sizes choose;
    where values do, there are none, and `decisions` has the lines. `command` is how the user called anyshape. Paths are
    relative to the current folder: an absolute one names the user's home folder.
    """

    title: str
    status: Status
    is_check: bool = False
    contract: Contract | None = None
    run: Run | None = None
    verdict: Verdict | None = None
    findings: tuple[Finding, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    regions: tuple[Region, ...] = ()
    guards: tuple[Guard, ...] = ()
    decisions: tuple[str, ...] = ()
    model: ir.Model | None = None
    path: str = ""
    command: str = ""
    device: str = ""
    seconds: float | None = None
    repair: SourceRepair | None = None
    bench: Benched | None = None

    @property
    def domain(self) -> Domain | None:
        """The sizes that the explorer is about: those of the contract, else the declared ones."""
        if self.contract is not None:
            return self.contract.domain
        return None if self.run is None else self.run.domain

    @property
    def inputs(self) -> tuple[TensorPromise, ...]:
        if self.contract is not None:
            return self.contract.inputs
        return () if self.run is None else self.run.inputs

    @property
    def outputs(self) -> tuple[TensorPromise, ...]:
        return () if self.contract is None else self.contract.outputs


def facts_of_export(result: Export, *, command: str = "", bench: Benched | None = None) -> PageFacts:
    """The facts of a result of `anyshape.export`."""
    path = "" if result.path is None else shorten(str(result.path))
    name = path or (result.run.model if result.run is not None else "model in memory")
    return PageFacts(
        title=name,
        status=_status(result),
        contract=result.contract,
        run=result.run,
        verdict=result.verdict,
        findings=heaviest_first(result.findings),
        attempts=result.attempts,
        regions=() if result.decisions else result.regions,
        decisions=tuple(map(str, result.decisions)),
        guards=result.guards,
        model=result.model,
        path=path,
        command=command,
        device=result.device,
        seconds=result.seconds,
        repair=result.repair,
        bench=bench,
    )


def _status(result: Export) -> Status:
    if result.contract.status == "unverified":
        return "unverified"
    if not result.is_kept:
        return "broken"
    return "narrowed" if any(finding.narrows for finding in result.findings) else "kept"


def facts_of_refusal(
    findings: Sequence[Finding], attempts: Sequence[Attempt], run: Run | None, *, command: str = ""
) -> PageFacts:
    """The facts of an export that ended in PromiseBroken."""
    compared = [attempt for attempt in attempts if attempt.verdict is not None]
    closest = max(compared, key=lambda attempt: attempt.share_right, default=None)
    return PageFacts(
        title="Export" if run is None else run.model,
        status="refused",
        run=run,
        verdict=None if closest is None else closest.verdict,
        findings=heaviest_first(findings),
        attempts=tuple(attempts),
        seconds=None if run is None else run.seconds,
        command=command,
    )


def facts_of_check(
    path: str,
    contract: Contract | None,
    run: Run,
    verdict: Verdict,
    findings: Sequence[Finding],
    model: ir.Model | None = None,
    *,
    command: str = "",
    bench: Benched | None = None,
) -> PageFacts:
    """The facts of `anyshape check`: a file of any exporter, compared with its model over the sizes of `run`.

    A contract over other dims than those is left out: its sizes and the compared ones have nothing in common.
    """
    if contract is not None and set(contract.domain.names) != set(run.domain.names):
        contract = None
    is_broken = any(finding.severity is Severity.ERROR for finding in findings)
    return PageFacts(
        title=shorten(path),
        status="broken" if is_broken else "kept",
        is_check=True,
        contract=contract,
        run=run,
        verdict=verdict,
        findings=heaviest_first(findings),
        model=model,
        path=shorten(path),
        command=command,
        seconds=verdict.seconds,
        bench=bench,
    )


def heaviest_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Errors, then warnings, then notes."""
    weight = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}
    return tuple(sorted(findings, key=lambda finding: weight[finding.severity]))


@dataclass(frozen=True)
class Excerpt:
    """Numbered lines of a file; `line` is the one that is meant."""

    file: str
    line: int
    function: str
    lines: tuple[tuple[int, str], ...]


def excerpt_of(source: Source) -> Excerpt:
    """The line with three before and after it; the line alone where its file is not found, or has changed."""
    for path in _candidates(source.file):
        lines = linecache.getlines(path)
        if not 0 < source.line <= len(lines):
            continue
        is_same = not source.text or lines[source.line - 1].strip() == source.text.strip()
        if is_same:
            first, last = max(1, source.line - _AROUND), min(len(lines), source.line + _AROUND)
            around = tuple((number, lines[number - 1].rstrip("\n")) for number in range(first, last + 1))
            return Excerpt(source.file, source.line, source.function, around)
    alone = ((source.line, source.text),) if source.text else ()
    return Excerpt(source.file, source.line, source.function, alone)


def source_called(place: str) -> Source | None:
    """The line of a text such as `model.py:7`."""
    file, _, line = place.rpartition(":")
    return Source(file, int(line)) if file and line.isdigit() else None


def _candidates(file: str) -> Iterator[str]:
    """Where a file may lie whose path is relative to the current folder, or is its name alone."""
    linecache.checkcache(file)
    yield file
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and Path(path).name == Path(file).name:
            yield path


def fix_as_diff(finding: Finding) -> str:
    """The fix as a unified diff, where it edits lines of the user's code; else ""."""
    edits = () if finding.remedy is None else finding.remedy.edits
    diffs = [_diff(source, text) for source, text in edits if source.text]
    return "".join(diffs)


def _diff(source: Source, text: str) -> str:
    """One line and its new text, with the lines around it where the file is found."""
    excerpt = excerpt_of(source)
    before = [line + "\n" for _, line in excerpt.lines]
    place = next(index for index, (number, _) in enumerate(excerpt.lines) if number == source.line)
    old = before[place]
    indent = old[: len(old) - len(old.lstrip())]
    after = [*before[:place], indent + text.strip() + "\n", *before[place + 1 :]]
    first = excerpt.lines[0][0]
    lines = list(unified_diff(before, after, f"a/{source.file}", f"b/{source.file}", n=_AROUND))
    if not lines:
        return ""
    moved = f"@@ -{first},{len(before)} +{first},{len(after)} @@\n"
    return "".join([*lines[:2], moved, *lines[3:]])
