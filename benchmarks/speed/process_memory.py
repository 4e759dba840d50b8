"""The memory of a process and of all its descendants together, sampled from outside."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

_EVERY_S = 0.1
_PROC = Path("/proc")


class PeakMemory:
    """The largest sum of proportional set sizes (pages that several processes share count once) seen so far."""

    def __init__(self, root: int) -> None:
        self._root = root
        self.peak_mb = 0

    def watch(self, process: subprocess.Popen[bytes], timeout_s: float) -> bool:
        """Sample until the process ends. False if it did not end in time."""
        deadline = time.monotonic() + timeout_s
        while process.poll() is None:
            if time.monotonic() > deadline:
                return False
            self.peak_mb = max(self.peak_mb, sum(_proportional_kb(each) for each in _tree(self._root)) // 1024)
            time.sleep(_EVERY_S)
        return True


def _tree(root: int) -> list[int]:
    """The process and its descendants."""
    found = [root]
    for each in found:
        found.extend(_children(each))
    return found


def _children(process: int) -> list[int]:
    found: list[int] = []
    for listing in _PROC.glob(f"{process}/task/*/children"):
        try:
            found += [int(word) for word in listing.read_text().split()]
        except OSError:
            continue
    return found


def _proportional_kb(process: int) -> int:
    try:
        lines = (_PROC / str(process) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
