"""Latency and memory of a file over sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from anyshape.runtime.timing import Timing


@dataclass(frozen=True, kw_only=True)
class BenchRow:
    """The figures at one assignment of sizes. `eager_ms` is the module itself, `error` why the file has no figures."""

    sizes: Mapping[str, int] = field(hash=False)
    elements: int
    eager_ms: float
    timing: Timing | None = None
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Benched:
    """What `anyshape bench` measured, in the order of the work of one call."""

    path: str
    rows: tuple[BenchRow, ...]
    providers: tuple[str, ...]
    threads: int
