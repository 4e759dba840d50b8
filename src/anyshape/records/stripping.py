"""Records for reports: latency and memory of a file over sizes, and results without lines of the user's code.

What is found, at which sizes and by which rule stays; where it stands in the code, and code to paste, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from anyshape.findings import Finding
from anyshape.records.contract import Contract
from anyshape.records.export import Export
from anyshape.records.verdict import Failure, Verdict

if TYPE_CHECKING:
    from anyshape.runtime.timing import Timing


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


_SOURCE_FILE = re.compile(r"[\w./\\-]+\.py(?::\d+)?")
_LEFT_OUT = "(source left out)"


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
