"""How far the file was compared, where nothing is proved.

a declared end that is too far to compare        ->  AS131, an error; a warning with accept_narrower
a dim without an upper end                       ->  AS132, a warning: the range ends at the largest compared size
the clock ended the comparisons                  ->  AS133, an error
"""

from __future__ import annotations

from collections.abc import Iterable

from anyshape.diagnose.wording import say_sizes
from anyshape.findings import Finding, Reason, Remedy, Severity
from anyshape.records.extent import End
from anyshape.records.verdict import Verdict

_SHOWN = 3


def diagnose_ends(ends: Iterable[End], *, accept_narrower: bool) -> tuple[Finding, ...]:
    """What the ends of an extent mean for the declared domain."""
    found = [_end_not_compared(end, accept_narrower) for end in ends if end.is_short]
    return (*found, *(_open_range_ends(end) for end in ends if end.is_open))


def _end_not_compared(end: End, accepted: bool) -> Finding:
    thorough = "" if end.is_memory else ", or thorough=True (--thorough), which lifts the time limit"
    return Finding(
        code="AS131",
        name="end-not-compared",
        reason=Reason.END_NOT_COMPARED,
        about=(end.name,),
        severity=Severity.WARNING if accepted else Severity.ERROR,
        what=f"{end.name} is declared up to {end.declared}, and the file can be compared up to {end.largest} only.",
        why=f"the capture is not proved, so a size is promised only if the file was compared that far; {end.why}.",
        fix=f'where=["{end.name} <= {end.largest}"]',
        remedy=None if accepted else Remedy(where=(f"{end.name} <= {end.largest}",)),
        is_fix_untried=not accepted,
        alternative=f"accept_narrower=True writes the file for {end.name} <= {end.largest}{thorough}.",
        sizes={end.name: end.largest},
        narrows=accepted,
    )


def _open_range_ends(end: End) -> Finding:
    stopped = f"; {end.why}" if end.why else ""
    return Finding(
        code="AS132",
        name="open-range-ends",
        severity=Severity.WARNING,
        what=f"{end.name} has no declared upper end: the file answers up to {end.name} = {end.largest}.",
        why=f"the capture is not proved, so the range ends at the largest size that was compared{stopped}.",
        fix=""
        if end.farther is None
        else f'where=["{end.name} <= {end.farther}"], with the end that you need: it is then compared.',
        sizes={end.name: end.largest},
        narrows=True,
    )


def diagnose_clock(verdict: Verdict) -> tuple[Finding, ...]:
    """An error where the clock ended the comparisons before all planned sizes were compared."""
    if verdict.stopped_after is None:
        return ()
    left = [each.sizes for each in verdict.untried if each.is_out_of_time]
    some = "; ".join(say_sizes(sizes) for sizes in left[:_SHOWN])
    more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
    return (
        Finding(
            code="AS133",
            name="comparisons-out-of-time",
            what=f"{len(verdict.tried)} sizes were compared in {verdict.stopped_after:g} s, {len(left)} were not.",
            why=f"not compared: {some}{more}.",
            fix="give it more time: time_limit=1200 (--time-limit 20m).",
            is_fix_untried=True,
            alternative="declare smaller ends, so that fewer and smaller sizes have to be compared.",
        ),
    )
