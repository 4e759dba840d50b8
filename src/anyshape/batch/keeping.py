"""The process of a model has ended -> its row, and its folder in its place with whole files only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from anyshape.batch.failures import Judged, judge, lost
from anyshape.batch.local_pool import Finished
from anyshape.batch.model_digest import digests_of, file_digest, files_to_watch, key_of
from anyshape.batch.model_process import EXPORTED, IDENTITY, LOG, MODEL, NOTED, PRINTED
from anyshape.batch.output_folder import OutputFolder, Stored
from anyshape.batch.rows import Row

_HIDDEN = (PRINTED, NOTED, IDENTITY)
_LONGEST_LOG = 1 << 20


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
    """The same with another path in every text: a file is spoken of where it is in the end."""
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
