"""Paths of source files in messages and in exported files: relative to the current folder, never absolute.

An absolute path names the user's home folder, and makes another file on another machine.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PACKAGE_FOLDER = Path(sys.modules[__name__.partition(".")[0]].__path__[0])

# An absolute path that ends in .py: /home/me/model.py, C:\me\model.py; not the path of a URL.
_ABSOLUTE = re.compile(r"""(?<![\w/:.\\])(?:[A-Za-z]:[\\/]|/)[^\s"'<>|:]*\.py\b""")

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def shorten(file: str) -> str:
    """The path relative to the current folder where it lies inside, else the file's own name."""
    path = Path(file)
    if _DRIVE.match(file) and not path.is_absolute():  # a path of Windows, read elsewhere
        return re.split(r"[\\/]", file)[-1]
    try:
        return path.resolve().relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        return path.name


def quoted(path: str) -> str:
    """The path as it is typed in a command: in quotes, of bash and of Windows alike, where it has a blank."""
    return f'"{path}"' if re.search(r"\s", path) else path


def shorten_paths(text: str) -> str:
    """The text with every absolute path of a Python file shortened."""
    return _ABSOLUTE.sub(lambda match: shorten(match[0]), text)
