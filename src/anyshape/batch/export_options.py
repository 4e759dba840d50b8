"""The options of `anyshape export` that a manifest may set, with the kind of value that each takes.

An option that `export` gains gets one line here; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from anyshape.batch.model_limits import parse_duration

TEXT, NUMBER, WHOLE, FLAG, TEXTS, DURATION = (
    "a text",
    "a number",
    "a whole number",
    "true or false",
    "texts",
    "duration",
)

EXPORT_OPTIONS: Mapping[str, str] = {
    "where": TEXTS,
    "opset": WHOLE,
    "force": FLAG,
    "enforce": TEXT,
    "enforce_values": FLAG,
    "target": TEXT,
    "strip_source": FLAG,
    "budget": DURATION,
    "verify": TEXT,
    "rtol": NUMBER,
    "atol": NUMBER,
    "seed": WHOLE,
    "values": TEXT,
    "strategy": TEXT,
    "accept_narrower": FLAG,
    "thorough": FLAG,
    "state": TEXT,
    "random": TEXT,
    "repair": FLAG,
    "task": TEXT,
    "config_only": FLAG,
    "one_file": FLAG,
    "trust_remote_code": FLAG,
}

NOT_FOR_MANIFESTS = ("output", "write_diff", "report", "json", "verbose", "quiet", "time_limit", "ray")
"""Options of `export` that a batch sets by itself, or that belong to one run on a terminal."""

_CHOICES = {"enforce": ("graph", "load"), "verify": ("quick", "none"), "state": ("outputs", "frozen")}


def read_option(name: str, value: Any) -> Any:
    """The value in its plain form. Raises ValueError, in words that follow the option's name."""
    kind = EXPORT_OPTIONS[name]
    if kind == TEXTS:
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, (list, tuple)) or not all(isinstance(each, str) for each in texts):
            raise ValueError(f"{value!r} is no list of texts")
        return list(texts)
    if kind == DURATION:
        parse_duration(value)
        return str(value)
    is_right = {
        FLAG: isinstance(value, bool),
        TEXT: isinstance(value, str),
        WHOLE: isinstance(value, int) and not isinstance(value, bool),
        NUMBER: isinstance(value, (int, float)) and not isinstance(value, bool),
    }[kind]
    if not is_right:
        raise ValueError(f"{value!r} is not {kind}")
    if value not in _CHOICES.get(name, (value,)):
        raise ValueError(f"{value!r} is none of {', '.join(map(repr, _CHOICES[name]))}")
    return value


def as_arguments(options: Mapping[str, Any]) -> Iterator[str]:
    """The options as words of a command line: `--opset=18`, `--where=1 <= batch`."""
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            yield option
        elif value is not False:
            yield from (f"{option}={each}" for each in (value if isinstance(value, list) else [value]))
