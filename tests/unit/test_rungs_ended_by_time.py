"""A rung that its time ended is named, also where the finding of another rung is shown."""

from __future__ import annotations

from anyshape.diagnose.consent import diagnose_time
from anyshape.exporting.pipeline import _ended_early
from anyshape.findings import Finding
from anyshape.records.export import Attempt

ENDLESS = Attempt("symbolic", (Finding(code="AS113", name="endless-branches", what="each size takes another path."),))
ENDED = Attempt("generalized", (diagnose_time("capturing (generalized)"),))


def test_a_later_rung_that_its_time_ended_is_shown_beside_the_first() -> None:
    (finding,) = _ended_early((ENDLESS, ENDED), ENDLESS)
    assert finding.code == "AS130" and finding.severity.name == "ERROR"
    assert "capturing (generalized)" in (finding.why or "")


def test_what_is_shown_already_is_not_shown_twice() -> None:
    assert _ended_early((ENDED, ENDLESS), ENDED) == []
