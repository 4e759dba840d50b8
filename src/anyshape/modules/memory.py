"""A ceiling for the memory of a call: allocations beyond it fail, instead of the whole process being killed.

Which sizes are tried never depends on it: it is for models that take far more memory than was estimated.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LEAST_ALLOWANCE = 1 << 30
_SHARE = 4


def free_memory() -> int | None:
    """Bytes that can be allocated without swapping; None where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None


def allowance() -> int | None:
    """What one call may take: a quarter of the free memory, and no less than 1 GiB."""
    free = free_memory()
    return None if free is None else max(LEAST_ALLOWANCE, free // _SHARE)


@contextmanager
def memory_ceiling(more: int | None) -> Iterator[None]:
    """Within this, the process can allocate so many bytes more than it has now; None: as many as the system gives.

    A ceiling that is already there and lower stays. Other threads meet the same ceiling meanwhile.
    """
    used = _address_space()
    if more is None or used is None:
        yield
        return
    import resource  # not on every system; where it is missing, so is the address space in /proc

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    ceiling = used + more if soft == resource.RLIM_INFINITY else min(soft, used + more)
    resource.setrlimit(resource.RLIMIT_AS, (ceiling, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space() -> int | None:
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None
