"""The process of one model: `anyshape export` under limits, with a record of the files that it reads.

It ends with its parent: a thread waits for the end of stdin, which the parent holds open. A model that blocks every thread
ends at its time limit all the same, with the lines at which its threads stand: faulthandler needs no Python for that.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import runpy
import shutil
import signal
import sys
import sysconfig
import threading
from collections.abc import Mapping
from pathlib import Path
from time import time
from typing import Any

_ROOM_FACTOR, _ROOM = 2, 4 << 30
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/share/", "/usr/lib/")


def main(spec: Mapping[str, Any]) -> None:
    """Run `anyshape` with the arguments of the spec; the keys are those of `model_process.spec_of`."""
    end_with_parent(Path(spec["removed"]))
    limit_data(spec["memory_limit"])
    faulthandler.enable()
    faulthandler.dump_traceback_later(max(0.1, spec["ends_at"] - time()), exit=True, file=sys.stderr)
    note_files(spec["noted"], spec["folder"])
    sys.path.append(str(Path.cwd()))  # last: a file there does not replace a module of Python's
    sys.argv = ["anyshape", *spec["arguments"]]
    runpy.run_module("anyshape", run_name="__main__", alter_sys=True)


def end_with_parent(folder: Path) -> None:
    """When stdin ends, remove the folder and kill this session; the model itself gets an empty stdin."""
    private = os.dup(0)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    threading.Thread(target=_wait_for_end, args=(private, folder), daemon=True).start()


def _wait_for_end(stream: int, folder: Path) -> None:
    while os.read(stream, 4096):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    if hasattr(os, "killpg") and os.getsid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def limit_data(limit: int | None) -> None:
    """Let single allocations far above the limit fail at once, where the system can; the parent watches what is resident."""
    if limit is None:
        return
    try:
        import resource
    except ImportError:  # Windows
        return
    with contextlib.suppress(ValueError, OSError):
        _soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = _ROOM_FACTOR * limit + _ROOM
        resource.setrlimit(
            resource.RLIMIT_DATA, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
        )


def note_files(path: str, own: str) -> None:
    """Append a line for each file that Python opens from now on: `r PATH` or `w PATH`, once each."""
    notes = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    ours = tuple(os.path.join(each, "") for each in (*_installed_folders(), own)) + _SYSTEM  # noqa: PTH118
    seen: set[str] = set()

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(args[0], (str, bytes)):
            return
        name = os.path.abspath(os.fsdecode(args[0]))  # noqa: PTH100 - Path would raise events of its own
        line = f"{'w' if _is_for_writing(args[1], args[2]) else 'r'} {name}\n"
        if line not in seen and not name.startswith(ours):
            seen.add(line)
            with contextlib.suppress(OSError):  # a full disk is no fault of whoever opens a file
                os.write(notes, line.encode("utf-8", "surrogateescape"))

    sys.addaudithook(hook)


def _installed_folders() -> set[str]:
    """Folders of Python and of installed packages: their versions count, not their files."""
    names = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
    return {sysconfig.get_path(name) for name in names} | {str(Path(__file__).parent.parent)}


def _is_for_writing(mode: Any, flags: Any) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR) != 0
