"""The process of a model has ended -> its row (its own result, or a named failure), and its folder in its place."""

from __future__ import annotations

import json
import re
import shlex
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyshape.batch.jobs import GRACE_S, Job, as_arguments
from anyshape.batch.model_files import digests_of, file_digest, files_to_watch, key_of
from anyshape.batch.model_process import Ended, Finished, read_tail
from anyshape.batch.output_folder import EXPORTED, IDENTITY, LOG, MODEL, NOTED, PRINTED, OutputFolder, Stored
from anyshape.batch.rows import BROKEN, CRASHED, FAULT, HUNG, KEPT, LOST, OUT_OF_MEMORY, REFUSED, UNVERIFIED, Row
from anyshape.findings import Finding
from anyshape.findings.finding import PACKAGE_FOLDER
from anyshape.report import findings_as_plain, format_bytes

_HIDDEN = (PRINTED, NOTED, IDENTITY)
_LONGEST_LOG = 1 << 20
_MEMORY_WORDS = ("MemoryError", "bad_alloc", "Cannot allocate memory", "can't allocate memory", "failed to allocate")
_FRAME = re.compile(r'^ +File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>.+)$', re.MULTILINE)
_INSTALLED = ("site-packages", "dist-packages", "/lib/python", "<frozen", "<string>")
_OUTCOMES = {1: BROKEN, 2: REFUSED, 3: FAULT}


def keep_model(output: OutputFolder, finished: Finished, used: Mapping[str, str]) -> Row:
    """The row of a model that has ended; its folder gets its place."""
    job, folder, ended = finished.job, finished.folder, finished.ended
    judged = judge(job, ended, folder) if ended is not None else lost(job, finished.lost)
    noted = _read(folder / NOTED)
    read = digests_of(files_to_watch(job, noted), ended.began if ended is not None else None)
    _tidy_folder(folder, judged)
    _lift(folder / EXPORTED)
    printed = _moved(judged.printed, str(folder.absolute() / EXPORTED), str(output.path / job.name))
    printed = _moved(printed, str(folder.absolute()), str(output.path / job.name))
    if printed is not None:
        (folder / "export.json").write_text(json.dumps(printed, indent=1), encoding="utf-8")
    written = {
        each.relative_to(folder).as_posix(): file_digest(each) for each in sorted(folder.rglob("*")) if each.is_file()
    }
    row = _row_of(finished, judged, written, folder)
    output.keep(folder, Stored(row, key_of(job, used), read, written))
    return row


def _row_of(finished: Finished, judged: Judged, written: Iterable[str], folder: Path) -> Row:
    job, ended, printed = finished.job, finished.ended, judged.printed or {}
    exports = printed.get("files") or [printed]  # a source may give several files
    contracts = [each.get("contract") or {} for each in exports]
    files = sorted((name for name in written if name.endswith(".onnx")), key=lambda name: (name != MODEL, name))
    return Row(
        name=job.name,
        source=job.source,
        outcome=judged.outcome,
        status=judged.status,
        seconds=round(ended.seconds, 3) if ended is not None else 0.0,
        folder=job.name,
        path=f"{job.name}/{files[0]}" if files else None,
        files=tuple(f"{job.name}/{file}" for file in files),
        bytes=sum(each.stat().st_size for each in folder.rglob("*.onnx*")) if files else None,
        dims=tuple(
            dict.fromkeys(
                [
                    *(_say_dim(dim) for contract in contracts for dim in contract.get("dims", ())),
                    *(rule for contract in contracts for rule in contract.get("relations", ())),
                ]
            )
        ),
        compared=sum(len((contract.get("tested") or {}).get("sizes", ())) for contract in contracts),
        strategy=", ".join(dict.fromkeys(each["strategy"] for each in exports if each.get("strategy"))) or None,
        peak_memory=ended.peak_memory if ended is not None else None,
        finding=_moved(judged.finding, str(folder.absolute()), job.name),
        warnings=sum(each.get("severity") == "warning" for each in printed.get("findings", ())),
        machine=ended.where if ended is not None else "",
        time_limit=job.time_limit,
        memory_limit=job.memory_limit,
        options=dict(job.options),
    )


def _say_dim(dim: Mapping[str, Any]) -> str:
    """`batch 1..64`, `seq 1..`, `h 32.. by 32`."""
    most = "" if dim.get("max") is None else dim["max"]
    step = f" by {dim['multiple']}" if dim.get("multiple", 1) != 1 else ""
    return f"{dim['name']} {dim.get('min', 0)}..{most}{step}"


def _tidy_folder(folder: Path, judged: Judged) -> None:
    """Remove our hidden files; where the export gave no file, all else that it left but its log."""
    has_file = judged.printed is not None and judged.printed.get("path") is not None
    for each in sorted(folder.rglob("*"), reverse=True):
        if each.is_dir():
            if not any(each.iterdir()):
                each.rmdir()
        elif each.name in _HIDDEN or each.name.startswith(".anyshape-") or not (has_file or each == folder / LOG):
            each.unlink()
    _shorten(folder / LOG)


def _lift(exported: Path) -> None:
    """Move the files of a source that gives a folder beside its log; a name that is taken there gets `-exported`."""
    if not exported.is_dir():
        return
    for each in sorted(exported.iterdir()):
        target = exported.parent / each.name
        each.rename(target if not target.exists() else target.with_name(f"{each.stem}-exported{each.suffix}"))
    exported.rmdir()


def _shorten(log: Path) -> None:
    if log.is_file() and log.stat().st_size > _LONGEST_LOG:
        with log.open("rb") as stream:
            stream.seek(-_LONGEST_LOG, 2)
            end = stream.read()
        log.write_bytes(end)


def _moved(plain: Any, before: str, after: str) -> Any:
    """The value with one path replaced by another in every text: messages name the final place of a file."""
    if isinstance(plain, str):
        return plain.replace(before, after)
    if isinstance(plain, Mapping):
        return {name: _moved(value, before, after) for name, value in plain.items()}
    return [_moved(each, before, after) for each in plain] if isinstance(plain, (list, tuple)) else plain


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The facts of a row about a process that ended; `printed` is the JSON that it wrote, None if it did not come so far."""

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
