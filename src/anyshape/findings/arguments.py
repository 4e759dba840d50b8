"""Arguments of the Python functions, read by their types: a value of another type is a finding, and no code of its class runs.

`read_sizes("sizes", {"batch": 2})` gives the dict; what is no mapping of names to whole numbers raises UsageError (AS036).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from anyshape.findings import Finding, UsageError

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_LONGEST = 60
_MOST_THREADS = 4096


def read_path(name: str, value: Any) -> Path:
    """The path. Raises UsageError for what is none."""
    text = fspath(value) if isinstance(value, (str, PathLike)) else None
    if not isinstance(text, str) or "\0" in text:
        raise UsageError(wrong_argument(name, value, "it is a path.", f"{name}='model.onnx'"))
    return Path(text)


def read_sizes(name: str, value: Any) -> dict[str, int]:
    """The sizes by dim. Raises UsageError for what are none."""
    example = f"{name}={{'batch': 2}}"
    found = {}
    for dim, size in _items(name, value, "it has a size for each dim.", example):
        if not isinstance(dim, str):
            raise UsageError(wrong_argument(f"a dim in {name}", dim, "a dim is known by its name.", example))
        found[dim] = read_whole(f"{name}[{dim!r}]", size, example)
    return found


def read_whole(name: str, value: Any, example: str) -> int:
    """The whole number, one of numpy included. Raises UsageError for what is none."""
    is_numbers_own = type(value) is int or (
        type(value).__module__ == "numpy" and not isinstance(value, (bool, Iterable))
    )
    try:
        if is_numbers_own:
            return index(value)
    except TypeError:  # a float, a truth value or a text of numpy
        pass
    raise UsageError(wrong_argument(name, value, "it is a whole number.", example))


def read_threads(value: Any) -> int:
    """A number of threads; 0 leaves it to the libraries. Raises UsageError for what is none."""
    threads = read_whole("threads", value, "threads=1")
    if not 0 <= threads <= _MOST_THREADS:
        raise UsageError(wrong_argument("threads", threads, f"it is 0 to {_MOST_THREADS}.", "threads=1"))
    return threads


def read_words(name: str, value: Any, example: str) -> dict[str, str]:
    """Texts by name. Raises UsageError for what are none."""
    found = {}
    for key, text in _items(name, value, "it has a text for each name.", example):
        for part in (key, text):
            if not isinstance(part, str):
                raise UsageError(wrong_argument(f"a part of {name}", part, "names and words are texts.", example))
        found[key] = text
    return found


def read_list(name: str, value: Any, kinds: tuple[type, ...], example: str) -> list[Any]:
    """The items of a list, a tuple or another iterable. Raises UsageError where it is none, or has items of other types."""
    try:
        found = None if isinstance(value, (str, bytes, Mapping)) else list(value)
    except Exception:
        found = None
    if found is None:
        raise UsageError(wrong_argument(name, value, "it is a list.", example))
    for each in found:
        if not isinstance(each, kinds):
            raise UsageError(wrong_argument(f"an item of {name}", each, f"it is {kinds_text(kinds)}.", example))
    return found


def kinds_text(kinds: Iterable[type]) -> str:
    """`str or Condition`."""
    return " or ".join(kind.__name__ for kind in kinds)


def _items(name: str, value: Any, why: str, example: str) -> list[tuple[Any, Any]]:
    try:
        if isinstance(value, dict):
            return list(dict.items(value))
        if isinstance(value, Mapping):
            return list(value.items())
    except Exception:  # the mapping's own code
        pass
    raise UsageError(wrong_argument(name, value, why, example))


def wrong_argument(name: str, value: Any, why: str, fix: str) -> Finding:
    """AS036: the value has the wrong type."""
    return Finding(code="AS036", name="argument", what=f"{name} cannot be {shown(value)}.", why=why, fix=fix)


def shown(value: Any) -> str:
    """A value in a message: by itself where it is a plain one, else by its type."""
    text = repr(value) if type(value) in _PLAIN else f"a value of the type {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
