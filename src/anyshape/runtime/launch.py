"""How a child interpreter is started so that it finds what we found, wherever the user's script runs.

The child takes over our `sys.path` as it is now: a script may have changed it, and need not be importable or guarded.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyshape


def child_command() -> list[str]:
    """The command line of a child."""
    if not sys.executable:
        raise RuntimeError("sys.executable is empty: an embedded interpreter cannot start a child process")
    return [sys.executable, "-m", "anyshape.runtime.child"]


def package_parent() -> str:
    """The folder that holds the package; also the child's working folder, so that nothing there shadows a module."""
    return str(Path(next(iter(anyshape.__path__))).parent)


def child_environment() -> dict[str, str]:
    """Our environment, with our own search path and without a thread pool per library."""
    paths = [str(Path(entry).absolute()) for entry in sys.path if entry]
    if package_parent() not in paths:
        paths.append(package_parent())
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONSAFEPATH": "1",
        "PYTHONWARNINGS": "ignore",
        "OMP_NUM_THREADS": "1",
    }


def usable_cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def seconds_worked(pid: int) -> float | None:
    """The processor time that a process has used, None where the system does not tell, or the process is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def physical_memory() -> int | None:
    """Bytes of memory of this machine, None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
