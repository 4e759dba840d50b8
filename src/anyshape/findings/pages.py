"""The page of a finding, as `anyshape explain` prints it.

The pages are docs/errors of the project; a wheel carries them as anyshape/pages.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from anyshape.findings.errors import UsageError
from anyshape.findings.finding import PACKAGE_FOLDER, Finding


def read_page(wanted: str) -> str:
    """The page of a code (`AS102`) or of a name (`size-baked-in`); all pages where several codes share the name.

    Raises UsageError for what is neither, with the code or name that was probably meant.
    """
    pages = {page.stem: page.read_text(encoding="utf-8") for page in sorted(_folder().glob("AS*.md"))}
    code = wanted.strip().upper()
    if code in pages:
        return pages[code]
    name = "-".join(wanted.strip().lower().replace("_", " ").split())
    named = [text for text in pages.values() if _name(text) == name]
    if named:
        return "\n\n".join(text.rstrip() for text in named) + "\n"
    raise UsageError(
        Finding(
            code="AS036",
            name="argument",
            what=f"there is no finding {wanted!r}.",
            fix=f"did you mean {_nearest(code, name, pages)}?",
        )
    )


def _name(page: str) -> str:
    """`# AS102 size-baked-in` -> `size-baked-in`."""
    return page.partition("\n")[0].split()[-1]


def _nearest(code: str, name: str, pages: Mapping[str, str]) -> str:
    """The code whose number is nearest; without digits, the name that is spelt most alike, with its code."""
    digits = "".join(char for char in code if char.isdecimal())
    if digits:
        return min(pages, key=lambda each: abs(int(each[2:]) - int(digits)))
    names = {_name(text): each for each, text in sorted(pages.items(), reverse=True)}
    parts = [each for each in names if len(name) > 2 and name in each]
    near = parts[0] if len(parts) == 1 else difflib.get_close_matches(name, list(names), n=1, cutoff=0)[0]
    return f"{names[near]} {near}"


def _folder() -> Path:
    shipped = PACKAGE_FOLDER / "pages"
    return shipped if shipped.is_dir() else PACKAGE_FOLDER.parent.parent / "docs" / "errors"
