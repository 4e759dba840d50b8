"""A folder that is written whole or not at all, and the model's own files copied into it.

out.tmp-1f3a, filled  ->  out    (what an earlier deployment left there is replaced, nothing else ever is)
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyshape.contract.file_messages import missing_data
from anyshape.contract.metadata import read_model
from anyshape.deploying.deploy_messages import folder_not_empty
from anyshape.findings import UsageError
from anyshape.repair.safe_model import check_proto
from anyshape.saving.atomic import missing_folder, path_is_no_file, reporting

MARK = "anyshape-deploy.json"
"""The file by which a folder is known to be ours; it lists what was written."""


def check_folder(folder: Path) -> None:
    """Raise UsageError where no deployment may be written."""
    with reporting(folder):
        if folder.exists() and not folder.is_dir():
            raise UsageError(path_is_no_file(folder))
        foreign = _foreign_files(folder)
        if foreign:
            raise UsageError(folder_not_empty(folder, foreign[0]))
        if not folder.absolute().parent.is_dir():
            raise UsageError(missing_folder(folder))


def _foreign_files(folder: Path) -> list[str]:
    """The files of the folder that no deployment lists."""
    try:
        listed = set(json.loads((folder / MARK).read_text(encoding="utf-8"))["files"])
    except (OSError, ValueError, KeyError, TypeError):
        listed = set()
    return [name for name in _files_in(folder) if name not in listed]


def _files_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """An empty folder to fill, which gets the name of `folder` in the end, or is removed where an error goes through."""
    check_folder(folder)
    target = folder.resolve()
    growing = target.parent / f".anyshape-{secrets.token_hex(8)}.tmp"
    old = target.parent / f".anyshape-{secrets.token_hex(8)}.old"
    try:
        with reporting(folder):
            growing.mkdir()
        yield growing
        with reporting(folder):
            if target.is_dir():
                target.replace(old)
            growing.replace(target)
    finally:
        if old.is_dir() and not target.exists():  # the second step did not happen
            old.replace(target)
        shutil.rmtree(growing, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def write_mark(folder: Path, facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Write the list of files, with these facts; the list comes back."""
    files = (*_files_in(folder), MARK)
    write_json(folder / MARK, {**facts, "files": list(files)})
    return files


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=True) + "\n", encoding="utf-8")


def copy_model(source: Path, folder: Path, name: str = "model.onnx") -> list[str]:
    """Copy the file and its weights into the folder; the names of the files come back. Raises UsageError where weights are
    missing, or lie outside the model's folder."""
    locations = weights_beside(source)
    with reporting(folder / name):
        shutil.copyfile(source, folder / name)
        for location in locations:
            (folder / location).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.resolve().parent / location, folder / location)
    return [name, *locations]


def weights_beside(source: Path) -> list[str]:
    """The files with weights that a model mentions, relative to its folder. Raises UsageError for one outside, or missing."""
    import onnx_ir as ir

    proto = read_model(source)
    tensors = [value.const_value for graph in ir.from_proto(proto).graphs() for value in graph.initializers.values()]
    locations = sorted({str(tensor.location) for tensor in tensors if isinstance(tensor, ir.ExternalTensor)})
    missing = [each for each in locations if not (source.resolve().parent / each).is_file()]
    if missing:
        raise UsageError(missing_data(str(source), missing))
    if locations:
        check_proto(proto, source)
    return locations
