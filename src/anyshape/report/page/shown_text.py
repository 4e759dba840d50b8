"""Names and messages of users as text that cannot change the text around it."""

from __future__ import annotations

import unicodedata
from typing import Any

_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")  # control, format (marks of direction), surrogate, private, separators


def shown(text: str) -> str:
    r"""The text on one line, with characters that are not seen as escapes: a newline is `\n`, a right-to-left mark `\u200f`."""
    return "".join(_shown(character, "") for character in text)


def shown_lines(value: Any) -> Any:
    """The same for a text of several lines, whose ends stay; anything but a plain text comes back as it is."""
    if type(value) is not str:
        return value
    return "".join(_shown(character, "\n\t") for character in value)


def _shown(character: str, kept: str) -> str:
    if character in kept or unicodedata.category(character) not in _HIDDEN:
        return character
    return character.encode("unicode_escape").decode("ascii")
