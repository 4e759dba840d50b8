"""The page of a finding, as `anyshape explain` prints it: docs/errors, shipped inside the package."""

from __future__ import annotations

import difflib
from importlib import resources

from anyshape.findings.errors import UsageError
from anyshape.findings.finding import Finding


def read_page(code: str) -> str:
    """The page of a code. Raises UsageError for a code that does not exist."""
    wanted = code.strip().upper()
    pages = {entry.name.removesuffix(".md"): entry for entry in _pages() if entry.name.startswith("AS")}
    if wanted not in pages:
        near = difflib.get_close_matches(wanted, pages, n=1)
        raise UsageError(
            Finding(
                code="AS036",
                name="argument",
                what=f"there is no finding {code!r}.",
                fix=f"did you mean {near[0]}?" if near else f"one of {', '.join(sorted(pages))}",
            )
        )
    return pages[wanted].read_text(encoding="utf-8")


def _pages() -> list[resources.abc.Traversable]:
    return list(resources.files("anyshape.pages").iterdir())
