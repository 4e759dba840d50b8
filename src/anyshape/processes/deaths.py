"""Why a process ended: the signal, and the line of Python at which it ended.

`faulthandler` writes the innermost frames of a process that a signal ends, or that is asked where it is:

    File "/home/me/model.py", line 12 in forward
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from anyshape.findings import Source

_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>\S+)', re.MULTILINE)


@dataclass(frozen=True)
class Death:
    """How a process ended: `signal` is the name of the signal, "" where it ended by itself with `status`.

    `frames` are the lines that ran then, the innermost first, where they are known.
    """

    status: int
    signal: str = ""
    frames: tuple[Source, ...] = ()

    @property
    def is_from_outside(self) -> bool:
        """Whether somebody else may have ended it: the system for want of memory, or a person."""
        return self.signal in ("SIGKILL", "SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT")

    def __str__(self) -> str:
        if not self.signal:
            return f"the process ended itself with status {self.status}"
        return f"the process was ended by {self.signal}{_MEANINGS.get(self.signal, '')}"


_MEANINGS = {
    "SIGABRT": " (a library found its memory damaged, or gave up)",
    "SIGSEGV": " (a kernel used memory that it does not have)",
    "SIGBUS": " (a kernel used memory that it does not have)",
    "SIGFPE": " (an arithmetic error in a kernel)",
    "SIGILL": " (an instruction that this processor does not have)",
    "SIGKILL": " (from outside, such as by the system for want of memory)",
}


def read_death(status: int, words: str) -> Death:
    """The death of a process by its exit code (below 0: a signal) and what `faulthandler` has written."""
    last = words.rpartition("(most recent call first)")[2]
    frames = tuple(
        Source(file=match["file"], line=int(match["line"]), function=match["function"])
        for match in _FRAME.finditer(last)
    )
    return Death(status, _name(-status) if status < 0 else "", frames)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
