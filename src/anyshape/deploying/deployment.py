"""What every target is given and gives back, and the folder that it fills: written whole or not at all.

A folder beside it, filled  ->  out    (an earlier deployment there is replaced, nothing else ever is)
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from anyshape.contract import open_model
from anyshape.deploying.deploy_messages import folder_not_empty
from anyshape.domain import Domain, Sizes
from anyshape.findings import Finding, UsageError
from anyshape.records.contract import Contract
from anyshape.saving.atomic import missing_folder, path_is_no_file, reporting
from anyshape.saving.leftovers import temporary_folder
from anyshape.saving.outputs import check_replaceable

DimRanges = Mapping[str, tuple[int, int]]
Tell = Callable[[str, int, int], None]
CompareIr = Callable[[Path], int]
"""At how many sizes a saved form of the file answers as its PyTorch model; raises PromiseBroken where it does not."""
MARK = "anyshape-deploy.json"
"""The file by which a folder is known to be ours; it lists what was written."""


@dataclass(frozen=True, kw_only=True)
class DeployOptions:
    """`at` are usual sizes, `largest` ends of dims, `profiles` ranges of dims; `ort_web` is a folder of onnxruntime-web."""

    at: tuple[Sizes, ...] = ()
    largest: Sizes = field(default_factory=dict)
    profiles: tuple[DimRanges, ...] = ()
    ort_web: Path | None = None


@dataclass(frozen=True, kw_only=True)
class DeployRequest:
    """One file to deploy. `domain` is that of its contract, cut at the largest sizes; `compare` is there with a model."""

    path: Path
    contract: Contract
    domain: Domain
    options: DeployOptions
    tell: Tell
    compare: CompareIr | None = None


@dataclass(frozen=True, kw_only=True)
class Built:
    """What a target made: lines for a person, facts for JSON, findings that stop nothing."""

    lines: tuple[str, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Target:
    """`build` writes into an empty folder. It raises UsageError or PromiseBroken where there is nothing to be kept.

    `takes` has the options that only some targets have: profiles, model, ort_web.
    """

    name: str
    title: str
    build: Callable[[DeployRequest, Path], Built]
    takes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A folder that was written for a target."""

    target: str
    folder: Path
    files: tuple[str, ...]
    lines: tuple[str, ...]
    facts: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()

    def __str__(self) -> str:
        lines = [f"deployed: {self.folder} for {self.target}", *(f"  {line}" for line in self.lines)]
        return "\n\n".join(["\n".join(lines), *map(str, self.findings)])


def check_folder(folder: Path) -> None:
    """Raise UsageError where no deployment may be written."""
    with reporting(folder):
        if folder.exists() and not folder.is_dir():
            raise UsageError(path_is_no_file(folder))
        for name in ("", *_files_in(folder)):
            check_replaceable(folder / name, None)
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
    old = _replaced_name(target)
    with reporting(folder), temporary_folder(target.parent) as growing:
        if old.is_dir() and not target.exists():  # an earlier process was killed between its two renames
            old.replace(target)
        shutil.rmtree(old, ignore_errors=True)
        yield growing
        try:
            if target.is_dir():
                target.replace(old)
            growing.replace(target)
        finally:
            if not target.exists() and old.is_dir():  # the second step did not happen
                old.replace(target)
        shutil.rmtree(old, ignore_errors=True)


def _replaced_name(target: Path) -> Path:
    """Where an earlier deployment lies between two renames. It may be all there is, so it is found by the target's name."""
    return target.with_name(f".anyshape-{hashlib.sha256(target.name.encode()).hexdigest()[:16]}.old")


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

    graphs = open_model(source, needs_weights=True).graphs()
    tensors = [value.const_value for graph in graphs for value in graph.initializers.values()]
    return sorted({str(tensor.location) for tensor in tensors if isinstance(tensor, ir.ExternalTensor)})


def read_asset(name: str) -> str:
    """The text of one of them."""
    return files("anyshape.deploying").joinpath("assets", name).read_text(encoding="utf-8")
