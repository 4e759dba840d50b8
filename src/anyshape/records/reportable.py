"""Results that can be written as a page: an export, a check of a file, a comparison of two files.

Records cannot import what makes pages: who returns a result to the user gives it a reporter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from anyshape.records.stripping import Benched


class Reporter(Protocol):
    """Makes pages of a result: a whole one in a file, and a short one for a notebook."""

    def write(self, result: Any, path: Path, bench: Benched | None, /) -> None: ...

    def summarize(self, result: Any, /) -> str | None: ...


@dataclass(frozen=True, kw_only=True)
class Reportable:
    """A result with a page. `reporter` makes the pages of `report` and of notebooks."""

    reporter: Reporter | None = field(default=None, repr=False, compare=False)

    def report(self, path: str | PathLike[str], *, bench: Benched | None = None) -> Path:
        """Write the result as one HTML file, complete in itself, and return its path.

        `bench` adds maps of measured latency and memory. Needs `anyshape[report]`.
        """
        if self.reporter is None:
            raise TypeError("report() is for the results of anyshape.export, anyshape.check and anyshape.files.compare")
        self.reporter.write(self, Path(path), bench)
        return Path(path)

    def _repr_html_(self) -> str | None:
        """What a notebook shows: the verdict, and what is promised."""
        return None if self.reporter is None else self.reporter.summarize(self)
