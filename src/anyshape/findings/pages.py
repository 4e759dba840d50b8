"""The page of a finding, as `anyshape explain` prints it.

The pages are docs/errors of the project; a wheel carries them as anyshape/pages.
"""

from __future__ import annotations

import difflib
from pathlib import Path

from anyshape.findings.errors import UsageError
from anyshape.findings.finding import Finding


def read_page(code: str) -> str:
    """The page of a code. Raises UsageError for a code that does not exist."""
    wanted = code.strip().upper()
    pages = {page.stem: page for page in sorted(_folder().glob("AS*.md"))}
    if wanted not in pages:
        near = _nearest(wanted, list(pages))
        raise UsageError(
            Finding(
                code="AS036",
                name="argument",
                what=f"there is no finding {code!r}.",
                fix=f"did you mean {near}?",
            )
        )
    return pages[wanted].read_text(encoding="utf-8")


def _nearest(wanted: str, codes: list[str]) -> str:
    """The code whose number is nearest; where there is no number to read, the one that reads most alike."""
    digits = "".join(char for char in wanted if char.isdecimal())
    if digits:
        return min(codes, key=lambda code: abs(int(code[2:]) - int(digits)))
    return difflib.get_close_matches(wanted, codes, n=1, cutoff=0)[0]


def _folder() -> Path:
    package = Path(__file__).parent.parent
    shipped = package / "pages"
    return shipped if shipped.is_dir() else package.parent.parent / "docs" / "errors"
