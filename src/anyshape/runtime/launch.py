"""How a child interpreter is started so that it finds what we found, wherever the user's script runs.

The child takes over our `sys.path` as it is now, in another order: Python's own modules first, then this package and the
installed ones. A file in the user's folder that has the name of one of them (`queue.py`) is not imported in its place.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

import anyshape

_START = "import sys; sys.path[:] = sys.argv[1:]; from anyshape.runtime.child import main; main()"
_INSTALLED = ("site-packages", "dist-packages")


def child_command() -> list[str]:
    """The command line of a child."""
    if not sys.executable:
        raise RuntimeError("sys.executable is empty: an embedded interpreter cannot start a child process")
    return [sys.executable, "-P", "-c", _START, *child_search_path()]


def package_parent() -> str:
    """The folder that holds the package; also the child's working folder, so that nothing there shadows a module."""
    return str(Path(next(iter(anyshape.__path__))).parent)


def child_environment() -> dict[str, str]:
    """Our environment without its search path, which the command has, and without a thread pool per library."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**inherited, "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}


def child_search_path() -> list[str]:
    """Our `sys.path`: the folders of Python's own modules, of this package, of installed packages, then all others."""
    entries = list(dict.fromkeys(str(Path(entry).absolute()) for entry in sys.path if entry))
    standard = [entry for entry in entries if _is_standard(Path(entry))]
    installed = [entry for entry in entries if Path(entry).name in _INSTALLED]
    return list(dict.fromkeys([*standard, package_parent(), *installed, *entries]))


def _is_standard(folder: Path) -> bool:
    """Whether a folder or zip file of `sys.path` holds Python's own modules."""
    own = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
    zipped = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    return folder in own or folder.name == zipped or (folder.name == "lib-dynload" and folder.parent in own)


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
