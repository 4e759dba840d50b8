"""Arguments that need reading: sizes and durations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from anyshape.domain import format_sizes
from anyshape.findings import Finding, UsageError
from anyshape.report.progress_line import ProgressLine

if TYPE_CHECKING:
    from pathlib import Path

    from anyshape.inputs import Declared
    from anyshape.sources import Part, SourceOptions


_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h)?")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def parse_seconds(text: str, option: str = "--budget") -> float:
    """`60s`, `5m`, `1.5h` or plain seconds."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            Finding(
                code="AS036", name="argument", what=f"{option} {text!r} is no duration.", fix=f"{option} 60s, or 5m"
            )
        )
    return float(match[1]) * _SECONDS[match[2] or "s"]


def read_sizes(text: str, what: str, fix: str) -> dict[str, int]:
    """`batch=8,seq=128`. `what` and `fix` are the words about a part that is no size, `{part!r}` in them the part."""
    found: dict[str, int] = {}
    for part in text.split(","):
        name, equals, size = part.partition("=")
        if not equals or not size.strip().isdigit():
            raise UsageError(Finding(code="AS036", name="argument", what=what.format(part=part), fix=fix))
        found[name.strip()] = int(size)
    return found


def parse_sizes(text: str, declared: Declared) -> dict[str, int] | None:
    """`batch=1,seq=7`; empty means none given. Every dim of the domain needs its size."""
    if not text:
        return None
    sizes = read_sizes(
        text, "--sizes has {part!r}, which is no size.", f"--sizes {format_sizes(declared.example_sizes, ',')}"
    )
    for name in sizes:
        declared.domain.dim(name)
    missing = [dim for dim in declared.domain.names if dim not in sizes]
    if missing:
        raise UsageError(
            Finding(code="AS036", name="argument", what=f"--sizes gives no size for {', '.join(missing)}.")
        )
    return sizes


def load_part_showing(text: str, file: Path, options: SourceOptions | None = None, *, quiet: bool) -> Part:
    """The model of a source that belongs to a file; shows that it is loaded, unless `quiet`."""
    from anyshape.sources import load_part

    with ProgressLine(quiet=quiet) as progress:
        progress(f"loading {text}", 0, 0)
        return load_part(text, file, options)
