"""How a result was made (times, seeds, costs, edits of the source), and results as pages, with or without the user's
lines.

Records cannot import what makes pages: who returns a result to the user gives it a reporter.

What is found, at which sizes and by which rule stays; where it stands in the code, and code to paste, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from anyshape.domain import Domain, Sizes
from anyshape.findings import Finding, Source
from anyshape.records.contract import Contract, TensorPromise
from anyshape.records.verdict import Failure, Verdict

if TYPE_CHECKING:
    from anyshape.intercept.operation_counts import Counted
    from anyshape.records.export import Export
    from anyshape.runtime.child import Timing

_SOURCE_FILE = re.compile(r"[\w./\\-]+\.py(?::\d+)?")
_LEFT_OUT = "(source left out)"


@dataclass(frozen=True)
class StageTime:
    """The seconds of one stage, all of its turns together."""

    stage: str
    seconds: float


@dataclass(frozen=True)
class Rates:
    """How many operations an element, an exchanged element, an operator and a byte of weights count as, and a second has.

    `steepest` is the largest power of a size with which counts grow beyond the last one.
    """

    element: int
    exchanged: int
    operator: int
    byte: int
    per_second: int
    steepest: float


@dataclass(frozen=True)
class CostTable:
    """Counts of one call at the example's sizes, and at several sizes of each dim: an estimate for any sizes.

    `weights` is in bytes. Between two counts an estimate is a power of the size, beyond the last it continues.
    """

    base: Counted
    along: Mapping[str, tuple[tuple[int, Counted], ...]] = field(hash=False)
    weights: int
    rates: Rates


@dataclass(frozen=True, kw_only=True)
class Run:
    """The circumstances of one export.

    `model` is the name of the module's class, `domain` and `inputs` are what the user declared, `example` its own sizes.
    `costs` is None where nothing was counted.
    """

    model: str
    domain: Domain
    inputs: tuple[TensorPromise, ...]
    example: Sizes = field(hash=False)
    seed: int = 0
    seconds: float = 0.0
    stages: tuple[StageTime, ...] = ()
    costs: CostTable | None = None
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class SourceEdit:
    """One expression of a line, what is written in its place, and why."""

    source: Source
    before: str
    after: str
    reason: str

    def __str__(self) -> str:
        return f"{self.source.file}:{self.source.line}: {self.before} -> {self.after} ({self.reason})"


@dataclass(frozen=True, kw_only=True)
class SourceRepair:
    """`diff` is a unified diff for `git apply` in the folder `folder`; the file was exported from the edited source."""

    edits: tuple[SourceEdit, ...]
    evidence: tuple[str, ...]
    diff: str
    folder: str = ""

    def stripped(self) -> SourceRepair:
        """The repair without lines of the user's code."""
        return replace(self, edits=(), diff="", folder="")

    def as_plain(self) -> dict[str, Any]:
        """For JSON, and for the metadata of the file."""
        edits = [
            {
                "file": edit.source.file,
                "line": edit.source.line,
                "before": edit.before,
                "after": edit.after,
                "reason": edit.reason,
            }
            for edit in self.edits
        ]
        return {"edits": edits, "evidence": list(self.evidence), "diff": self.diff}


class Reporter(Protocol):
    """Makes pages of a result: a whole one in a file, and a short one for a notebook."""

    def write(self, result: Any, path: Path, bench: Benched | None, /) -> None: ...

    def summarize(self, result: Any, /) -> str | None: ...


@dataclass(frozen=True, kw_only=True)
class Reportable:
    """A result with a page. `reporter` makes the pages of `report` and of notebooks."""

    reporter: Reporter | None = field(default=None, repr=False, compare=False)

    def report(self, path: str | PathLike[str], *, bench: Benched | None = None) -> Path:
        """Write the result as one HTML file, complete in itself, and return its path.

        `bench` adds maps of measured latency and memory. Needs `anyshape[report]`.
        """
        if self.reporter is None:
            raise TypeError("report() is for the results of anyshape.export, anyshape.check and anyshape.files.compare")
        self.reporter.write(self, Path(path), bench)
        return Path(path)

    def _repr_html_(self) -> str | None:
        """What a notebook shows: the verdict, and what is promised."""
        return None if self.reporter is None else self.reporter.summarize(self)


@dataclass(frozen=True, kw_only=True)
class BenchRow:
    """The figures at one assignment of sizes. `eager_ms` is the module itself, `error` why the file has no figures."""

    sizes: Mapping[str, int] = field(hash=False)
    elements: int
    eager_ms: float
    timing: Timing | None = None
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Benched:
    """What `anyshape bench` measured, in the order of the work of one call."""

    path: str
    rows: tuple[BenchRow, ...]
    providers: tuple[str, ...]
    threads: int


def strip_export(result: Export) -> Export:
    """The result with a contract, a verdict and findings that hold no source; what each rung came to is left out."""
    return replace(
        result,
        contract=strip_contract(result.contract),
        verdict=strip_verdict(result.verdict),
        findings=tuple(map(strip_finding, result.findings)),
        attempts=(),
        repair=None if result.repair is None else result.repair.stripped(),
    )


def strip_contract(contract: Contract) -> Contract:
    return replace(
        contract,
        rules=tuple(replace(rule, source=None) for rule in contract.rules),
        findings=tuple(map(strip_finding, contract.findings)),
    )


def strip_finding(finding: Finding) -> Finding:
    """The finding without its line, its excerpt, and the code of its fix."""
    return replace(
        finding,
        what=_SOURCE_FILE.sub(_LEFT_OUT, finding.what),
        why=_SOURCE_FILE.sub(_LEFT_OUT, finding.why),
        where=None,
        source=None,
        excerpt="",
        fix="",
        remedy=None,
        is_fix_untried=False,
        alternative="",
        replay="",
    )


def strip_verdict(verdict: Verdict) -> Verdict:
    smallest = verdict.smallest_failure
    return replace(
        verdict,
        refused=tuple(replace(refusal, source=None) for refusal in verdict.refused),
        failures=tuple(map(_strip_failure, verdict.failures)),
        smallest_failure=None if smallest is None else _strip_failure(smallest),
    )


def _strip_failure(failure: Failure) -> Failure:
    return failure if failure.located is None else replace(failure, located=replace(failure.located, source=None))
