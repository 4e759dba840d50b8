"""How much processor time a process and those that it has started have used, and for how long they have used none.

Limits of searches are in processor time: a busy machine comes as far with them as a quiet one.
"""

from __future__ import annotations

import contextlib
import os
import time

import psutil

_LOOKS_EVERY_S = 0.5


class Idleness:
    """Watches one process; `reset` after each sign of life."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._before = self._used = _processor_time(pid)
        self._since = self._looked = time.monotonic()

    def reset(self) -> None:
        """The process has shown that it goes on."""
        self._since = time.monotonic()

    def seconds(self) -> float:
        """For how long they have used no processor time."""
        self._look()
        return time.monotonic() - self._since

    @property
    def used(self) -> float:
        """The processor time that they have used since this watch began, of those that still run."""
        self._look()
        return max(0.0, self._used - self._before)

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked > _LOOKS_EVERY_S:
            self._looked = now
            used = _processor_time(self._pid)
            if used != self._used:
                self._used, self._since = used, now


class Work:
    """The processor time of this process and of all that it starts, from now on; those that have ended count as well."""

    def __init__(self) -> None:
        self._before = self._used = _processor_time(os.getpid(), with_ended=True)
        self._looked = time.monotonic()

    @property
    def seconds(self) -> float:
        now = time.monotonic()
        if now - self._looked > _LOOKS_EVERY_S:
            self._looked, self._used = now, _processor_time(os.getpid(), with_ended=True)
        return max(0.0, self._used - self._before)


def _processor_time(pid: int, *, with_ended: bool = False) -> float:
    used = 0.0
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                times = each.cpu_times()
                used += times.user + times.system
                used += times.children_user + times.children_system if with_ended else 0.0
    return used
