"""The time that each stage of an export takes, read from its progress."""

from __future__ import annotations

import time

from anyshape.records.runs import StageTime

_BEFORE = "reading the inputs"


class StageClock:
    """Call `enter` where a stage begins or goes on; `times` has what each took so far, in the order of first turns."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._stage, self._since = _BEFORE, time.monotonic()

    def enter(self, stage: str) -> None:
        """End the turn of the stage before."""
        if stage == self._stage:
            return
        now = time.monotonic()
        self._seconds[self._stage] = self._seconds.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage, now

    @property
    def times(self) -> tuple[StageTime, ...]:
        """The seconds of each stage, the one that runs included."""
        running = {self._stage: self._seconds.get(self._stage, 0.0) + time.monotonic() - self._since}
        return tuple(StageTime(stage, seconds) for stage, seconds in {**self._seconds, **running}.items())
