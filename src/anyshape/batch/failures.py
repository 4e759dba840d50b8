"""How the process of a model ended -> its row: the export's own result, or a named failure."""

from __future__ import annotations

import json
import re
import shlex
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyshape.batch.export_options import as_arguments
from anyshape.batch.jobs import Job
from anyshape.batch.model_limits import GRACE_S
from anyshape.batch.model_process import LOG, PRINTED, Ended, read_tail
from anyshape.batch.rows import BROKEN, CRASHED, FAULT, HUNG, KEPT, LOST, OUT_OF_MEMORY, REFUSED, UNVERIFIED
from anyshape.findings import Finding
from anyshape.findings.finding import PACKAGE_FOLDER
from anyshape.report.amounts import format_bytes
from anyshape.report.plain import findings_as_plain

_MEMORY_WORDS = ("MemoryError", "bad_alloc", "Cannot allocate memory", "can't allocate memory", "failed to allocate")
_FRAME = re.compile(r'^ +File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>.+)$', re.MULTILINE)
_INSTALLED = ("site-packages", "dist-packages", "/lib/python", "<frozen", "<string>")
_OUTCOMES = {1: BROKEN, 2: REFUSED, 3: FAULT}


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What a row says of a process that ended; `printed` is the JSON that it wrote, None if it did not come so far."""

    outcome: str
    status: int
    finding: Mapping[str, Any] | None = None
    printed: Mapping[str, Any] | None = None


def judge(job: Job, ended: Ended, folder: Path) -> Judged:
    """The outcome of a model whose process has ended; its folder holds what the process wrote."""
    printed, log = _read_printed(folder / PRINTED), read_tail(folder / LOG, 20_000)
    is_late = ended.how == "itself" and printed is None and ended.seconds >= job.time_limit + GRACE_S
    if ended.how == "time" or is_late:
        return _failed(HUNG, _hangs(job, log))
    if ended.how == "memory":
        return _failed(OUT_OF_MEMORY, _needs_memory(job))
    has_no_file = ended.returncode == 0 and next(folder.rglob("*.onnx"), None) is None
    if printed is None or has_no_file or ended.returncode not in (0, 1, 2, 3):
        is_memory = any(words in log for words in _MEMORY_WORDS)
        return _failed(
            *((OUT_OF_MEMORY, _cannot_allocate(job, log)) if is_memory else (CRASHED, _crashed(job, ended, log)))
        )
    errors = [each for each in printed.get("findings", ()) if each.get("severity") == "error"]
    if ended.returncode and any(words in each.get("text", "") for each in errors for words in _MEMORY_WORDS):
        return _failed(OUT_OF_MEMORY, _cannot_allocate(job, errors[0]["text"]))
    if ended.returncode == 0:
        return Judged(outcome=KEPT, status=0, printed=printed)
    promises = {(each.get("contract") or {}).get("status") for each in printed.get("files") or [printed]}
    outcome = UNVERIFIED if UNVERIFIED in promises and BROKEN not in promises else _OUTCOMES[ended.returncode]
    return Judged(outcome=outcome, status=ended.returncode, finding=errors[0] if errors else None, printed=printed)


def lost(job: Job, why: str) -> Judged:
    """A model whose machine was gone at each attempt."""
    finding = Finding(
        code="AS547",
        name="worker-lost",
        what=f"{job.source!r} has no result: its worker was gone at each attempt.",
        why=why,
        fix="give the model more memory, or the cluster other nodes, and run the same command again.",
    )
    return _failed(LOST, finding)


def _failed(outcome: str, finding: Finding) -> Judged:
    return Judged(outcome=outcome, status=1, finding=findings_as_plain([finding])[0])


def _read_printed(path: Path) -> Mapping[str, Any] | None:
    try:
        printed = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return printed if isinstance(printed, dict) else None


def _hangs(job: Job, log: str) -> Finding:
    return Finding(
        code="AS542",
        name="model-hangs",
        what=f"{job.source!r} was still at work {job.time_limit + GRACE_S:g} s after its start, and was ended.",
        where=_user_line(log),
        why=f"its time limit is {job.time_limit:g} s, and its process did not end by itself.",
        fix=f'if it needs more time: time_limit = "{2 * job.time_limit:g}s"',
        replay=_replay(job),
        is_fix_untried=True,
    )


def _needs_memory(job: Job) -> Finding:
    limit = job.memory_limit or 0
    return Finding(
        code="AS543",
        name="out-of-memory",
        what=f"{job.source!r} took more memory than its limit of {format_bytes(limit)}, and was ended.",
        why="what its process and those that it started hold is counted.",
        fix=f'if it needs more: memory_limit = "{format_bytes(2 * limit)}"; or fewer models at a time (--jobs)',
        replay=_replay(job),
        is_fix_untried=True,
    )


def _cannot_allocate(job: Job, log: str) -> Finding:
    lines = [line.strip() for line in log.splitlines() if any(words in line for words in _MEMORY_WORDS)]
    return Finding(
        code="AS543",
        name="out-of-memory",
        what=f"{job.source!r} could not get the memory that it asked for.",
        where=_user_line(log),
        why=lines[0] if lines else "",
        replay=_replay(job),
    )


def _crashed(job: Job, ended: Ended, log: str) -> Finding:
    return Finding(
        code="AS541",
        name="model-crashes",
        what=f"{job.source!r} {_say_code(ended.returncode)}, and gave no result.",
        where=_user_line(log),
        why=_last_words(log) or _why_killed(ended.returncode),
        replay=_replay(job),
    )


def _say_code(code: int) -> str:
    if code >= 0:
        return f"ended its process with status {code}"
    try:
        name = f" ({signal.Signals(-code).name})"
    except ValueError:
        name = ""
    return f"crashed with signal {-code}{name}"


def _why_killed(returncode: int) -> str:
    """What SIGKILL mostly means that we did not send."""
    is_killed = returncode == -getattr(signal, "SIGKILL", 0) and returncode < 0
    return "the system ends a process so when its memory is used up, and so does `kill -9`." if is_killed else ""


def _last_words(log: str) -> str:
    """The error in a log: what Python calls fatal, or the last line that is neither progress nor a line of a traceback."""
    lines = [line.strip() for line in log.splitlines() if line.strip() and not line.startswith(("anyshape: ", " "))]
    fatal = [line for line in lines if line.startswith("Fatal Python error")]
    plain = [line for line in lines if not line.startswith(("Thread 0x", "Current thread", "Extension modules"))]
    return (fatal or plain or [""])[-1]


def _user_line(log: str) -> str:
    """The innermost line of the user's own code in the tracebacks that faulthandler wrote; empty if there is none."""
    for frame in _FRAME.finditer(log):
        file = frame["file"]
        if not file.startswith(str(PACKAGE_FOLDER)) and not any(part in Path(file).as_posix() for part in _INSTALLED):
            return f"{file}:{frame['line']}, in {frame['function']}"
    return ""


def _replay(job: Job) -> str:
    return shlex.join(["anyshape", "export", job.source, "-o", "model.onnx", *as_arguments(job.options)])
