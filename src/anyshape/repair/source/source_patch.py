"""Edits as new lines for a copy of the module, and as a unified diff for the user's files."""

from __future__ import annotations

import difflib
import os
import tokenize
from collections.abc import Iterable, Mapping
from pathlib import Path

from anyshape.findings import Source
from anyshape.modules.frames import make_source
from anyshape.repair.source.source_sites import Site

Texts = Mapping[Site, str]


def line_edits(texts: Texts) -> list[tuple[Source, str]]:
    """Each line that changes, with its new text."""
    found = []
    for (file, number), sites in _by_line(texts).items():
        with tokenize.open(file) as stream:
            line = stream.readlines()[number - 1].rstrip("\n")
        found.append((make_source(file, number), _replaced(line, sites, texts).strip()))
    return found


def unified_diff(texts: Texts) -> tuple[str, str]:
    """The diff, and the folder in which `git apply` applies it: the current one, if all files lie in it."""
    files = sorted({site.file for site in texts})
    here = Path.cwd()
    is_here = all(Path(file).resolve().is_relative_to(here) for file in files)
    folder = here if is_here else Path(os.path.commonpath([Path(file).resolve().parent for file in files]))
    parts = [_diff_of(file, Path(file).resolve().relative_to(folder).as_posix(), texts) for file in files]
    return "".join(parts), "" if is_here else str(folder)


def _diff_of(file: str, name: str, texts: Texts) -> str:
    with Path(file).open("rb") as raw:
        encoding, _ = tokenize.detect_encoding(raw.readline)
    with Path(file).open(encoding=encoding, newline="") as stream:
        before = stream.readlines()
    after = list(before)
    for (changed, number), sites in _by_line(texts).items():
        if changed == file:
            after[number - 1] = _replaced(before[number - 1], sites, texts)
    lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _by_line(texts: Texts) -> dict[tuple[str, int], list[Site]]:
    found: dict[tuple[str, int], list[Site]] = {}
    for site in texts:
        found.setdefault((site.file, site.line), []).append(site)
    return found


def _replaced(line: str, sites: Iterable[Site], texts: Texts) -> str:
    raw = line.encode()
    for site in sorted(sites, key=lambda site: -site.start):  # from the right: columns to the left stay
        raw = raw[: site.start] + texts[site].encode() + raw[site.end :]
    return raw.decode()
