"""The process of one model: what it does, which processes it starts, what memory these hold, and how all of them are
ended.

A model's process leads a session of its own. To its tree belongs who is in that session, and who descends from it.
Linux lists processes under /proc; other systems need psutil, and without it only the process group is known.

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
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any

from anyshape.processes import become_own_process

_PROC = Path("/proc")
_ROUNDS = 20
_PAUSE_S = 0.05
_MAX_AGE_S = 1.0
_ROOM_FACTOR, _ROOM = 2, 4 << 30
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/share/", "/usr/lib/")
_METADATA = (".egg-info", ".dist-info")


@dataclass(frozen=True)
class Process:
    """A process of this machine; `started` distinguishes it from a later one with the same number."""

    pid: int
    parent: int
    session: int
    started: str
    resident: int
    is_dead: bool = False


def can_list_processes() -> bool:
    """Whether memory of a whole tree can be measured here."""
    return (_PROC / "self" / "stat").exists() or _has_psutil()


def list_processes() -> dict[int, Process]:
    """All processes by their number; empty where this system does not list them."""
    if (_PROC / "self" / "stat").exists():
        found = (_read_stat(int(entry.name)) for entry in os.scandir(_PROC) if entry.name.isdigit())
        return {each.pid: each for each in found if each is not None}
    return _ask_psutil() if _has_psutil() else {}


def _read_process(pid: int) -> Process | None:
    """A process as it is now; None if it is gone."""
    return _read_stat(pid) if (_PROC / "self" / "stat").exists() else _ask_psutil([pid]).get(pid)


def _read_stat(pid: int) -> Process | None:
    try:
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        pages = int(fields[21])
        return Process(
            pid=pid,
            parent=int(fields[1]),
            session=int(fields[3]),
            started=fields[19].decode(),
            resident=pages * os.sysconf("SC_PAGE_SIZE"),
            is_dead=fields[0] in (b"Z", b"X"),
        )
    except (OSError, ValueError, IndexError):  # gone meanwhile
        return None


def _has_psutil() -> bool:
    from importlib.util import find_spec

    return find_spec("psutil") is not None


def _ask_psutil(pids: Iterable[int] | None = None) -> dict[int, Process]:
    """The processes with these ids, or all, as psutil lists them."""
    import psutil

    found = {}
    for pid in psutil.pids() if pids is None else pids:
        try:
            each = psutil.Process(pid)
            with each.oneshot():
                found[pid] = Process(
                    pid=pid,
                    parent=each.ppid(),
                    session=_session_of(pid),
                    started=str(each.create_time()),
                    resident=each.memory_info().rss,
                    is_dead=each.status() == psutil.STATUS_ZOMBIE,
                )
        except psutil.Error:  # gone meanwhile, or somebody else's
            continue
    return found


def _session_of(pid: int) -> int:
    if not hasattr(os, "getsid"):
        return 0
    try:
        return os.getsid(pid)
    except OSError:
        return 0


class ProcessTable:
    """Who belongs to which tree, read again when that is older than a second; shared by all who watch.

    A list of all processes costs milliseconds, so between two of them only the known members of a tree are looked at.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read_at = 0.0
        self._processes: dict[int, Process] = {}
        self._shared: dict[int, int] = {}  # by the root of a tree: bytes that a sum over its processes counts too often

    def resident(self, root: int) -> int:
        """Bytes of memory that the tree of `root` holds; pages that a process shares with its forks count once."""
        with self._lock:
            if root not in self._processes or monotonic() - self._read_at > _MAX_AGE_S:
                self._processes = list_processes()
                self._read_at = monotonic()
                self._shared.clear()
            now = [each for member in find_tree(root, self._processes) if (each := _read_process(member.pid))]
            total = sum(each.resident for each in now)
            if root not in self._shared:
                self._shared[root] = total - sum(map(_share_of_memory, now)) if len(now) > 1 else 0
            return max(total - self._shared[root], *(each.resident for each in now), 0)


def _share_of_memory(process: Process) -> int:
    """Bytes that a process holds, with its share of the pages that others hold as well; all of these where it is unknown."""
    try:
        lines = (_PROC / str(process.pid) / "smaps_rollup").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    except (OSError, ValueError, StopIteration):
        return process.resident


def find_tree(root: int, processes: Mapping[int, Process]) -> list[Process]:
    """The living processes of the session that `root` leads, and all that descend from one of them."""
    members = {each.pid for each in processes.values() if each.pid == root or each.session == root}
    is_growing = True
    while is_growing:
        more = {each.pid for each in processes.values() if each.parent in members} - members
        members |= more
        is_growing = bool(more)
    return [processes[pid] for pid in members if pid in processes and not processes[pid].is_dead]


def kill_tree(root: int) -> None:
    """End the process, its session and its descendants; returns when none is left, or after a second."""
    if sys.platform == "win32":
        subprocess.run(["taskkill", "/T", "/F", "/PID", str(root)], capture_output=True, check=False)
        return
    members = find_tree(root, list_processes())
    with contextlib.suppress(OSError):
        os.killpg(root, signal.SIGKILL)
    for _ in range(_ROUNDS):
        _kill_all(members)
        found = list_processes()
        # A process whose parent has ended gets another one, and is no longer found below the root.
        left = [each for each in members if each.pid in found and found[each.pid].started == each.started]
        members = list(
            {each.pid: each for each in (*left, *find_tree(root, found)) if not found[each.pid].is_dead}.values()
        )
        if not members:
            return
        sleep(_PAUSE_S)


def _kill_all(members: list[Process]) -> None:
    for each in members:
        with contextlib.suppress(OSError):
            os.kill(each.pid, signal.SIGKILL)


def identity_of(pid: int) -> str | None:
    """A text that no other process has had or will have on this machine until it starts anew; None if it is gone."""
    found = list_processes().get(pid)
    return None if found is None or found.is_dead else f"{pid} {found.started} {_numbering()}"


def _numbering() -> str:
    """A name of the container whose numbers of processes are ours."""
    try:
        return (_PROC / "self" / "ns" / "pid").readlink().name
    except OSError:
        return "pid"


def kill_if_still(identity: str) -> None:
    """End the tree of the process with this identity, if it still runs."""
    pid = identity.partition(" ")[0]
    if pid.isdigit() and identity_of(int(pid)) == identity:
        kill_tree(int(pid))


def main(spec: Mapping[str, Any]) -> None:
    """Run `anyshape` with the arguments of the spec; the keys are those of `model_process.spec_of`."""
    end_with_parent(Path(spec["removed"]))
    limit_data(spec["memory_limit"])
    faulthandler.enable()
    faulthandler.dump_traceback_later(max(0.1, spec["ends_at"] - time()), exit=True, file=sys.stderr)
    note_files(spec["noted"], spec["folder"])
    sys.path.append(str(Path.cwd()))  # last: a file there does not replace a module of Python's
    sys.argv = ["anyshape", *spec["arguments"]]
    become_own_process()
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
        if name.startswith(ours) or os.path.dirname(name).endswith(_METADATA):  # noqa: PTH120
            return
        line = f"{'w' if _is_for_writing(args[1], args[2]) else 'r'} {name}\n"
        if line not in seen:
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
