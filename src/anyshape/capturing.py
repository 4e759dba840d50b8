"""One capture by one rung: programs, or the findings that say why there are none."""

from __future__ import annotations

from dataclasses import replace

from anyshape.capture.regions import EndlessRegions, ValuesDecideElsewhere, first_alone
from anyshape.capture.rungs import Rung, Workshop
from anyshape.diagnose.captures import diagnose_capture_error, diagnose_endless_regions
from anyshape.diagnose.modes import find_scripted
from anyshape.diagnose.operators import find_missing_fake
from anyshape.findings import AnyshapeError, Reason
from anyshape.records.captured import Captured, Guard
from anyshape.records.export import Attempt


def capture_or_findings(
    rung: Rung, workshop: Workshop, apart: tuple[Guard, ...], *, alone: bool = False
) -> Captured | Attempt:
    """What the rung captures, `alone`: its first region for all of the domain. An Attempt where it cannot."""
    try:
        captured = rung.capture(workshop, apart)
        return first_alone(captured, captured.regions, workshop.declared.domain) if alone else captured
    except AnyshapeError as error:
        return Attempt(rung.name, error.findings)
    except EndlessRegions as error:
        return Attempt(rung.name, (diagnose_endless_regions(error.guard),), blamed=error.guard)
    except ValuesDecideElsewhere as error:
        finding = replace(diagnose_capture_error(error.error), reason=Reason.VALUES_DECIDE_ELSEWHERE)
        return Attempt(rung.name, (finding,))
    except Exception as error:  # whatever torch raises; Ctrl-C goes through
        missing = find_scripted(workshop.module) or find_missing_fake(error)
        return Attempt(rung.name, (missing or diagnose_capture_error(error),))
