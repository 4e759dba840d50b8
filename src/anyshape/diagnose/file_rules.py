"""The rules about a file that was compared with its module, in the order in which their findings are shown.

Adding one: docs/how-to/extend/add-a-finding.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from anyshape.diagnose.comparison_notes import diagnose_clock
from anyshape.diagnose.differences import diagnose_differences
from anyshape.diagnose.refusals import diagnose_refused_inside
from anyshape.diagnose.value_findings import diagnose_cond_sides, diagnose_outputs
from anyshape.findings import Finding
from anyshape.records.export import Judged

FileRule = Callable[[Judged], Iterable[Finding]]

RULES: tuple[FileRule, ...] = (
    lambda file: diagnose_outputs(file.exported, file.declared.output_axes, file.declared.domain),
    lambda file: diagnose_differences(file.verdict, file.declared.domain, file.regions),
    lambda file: diagnose_clock(file.verdict),
    lambda file: () if file.is_part else diagnose_refused_inside(file.verdict, file.declared.domain, file.explored),
    lambda file: diagnose_cond_sides(file.verdict),
)


def diagnose_file(file: Judged) -> tuple[Finding, ...]:
    """The findings of all rules."""
    return tuple(finding for rule in RULES for finding in rule(file))
