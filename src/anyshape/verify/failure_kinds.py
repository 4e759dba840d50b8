"""The kind of failure that an error of the runtime is."""

from __future__ import annotations

from anyshape.records.verdict import FailureKind
from anyshape.runtime.runtime_errors import ChildDied, Death, RunError, RuntimeRejected

_DEATHS = {
    Death.CRASHED: FailureKind.CRASHED,
    Death.TIMED_OUT: FailureKind.TIMED_OUT,
    Death.OUT_OF_MEMORY: FailureKind.OUT_OF_MEMORY,
}


def kind_of(error: RunError) -> FailureKind:
    """The kind under which a run that raised is counted."""
    if isinstance(error, ChildDied):
        return _DEATHS[error.death]
    if isinstance(error, RuntimeRejected):
        return FailureKind.UNSUPPORTED if error.unsupported else FailureKind.REJECTED
    return FailureKind.RAISED
