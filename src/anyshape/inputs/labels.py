"""The labels of torch's `dynamic_axes` as names of dims: torch takes any text for a label, "batch size" or "seq-len" too.

A label that reads as arithmetic on other labels (`past + seq` beside `past` and `seq`) is that; torch writes it into the
file as text and means the same by it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from keyword import iskeyword

from anyshape.domain import is_about, parse_expr
from anyshape.findings import DeclarationError

Axes = Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]]


def name_labels(axes: Axes) -> dict[str, Mapping[int, str] | Sequence[int]]:
    """The same axes, each label spelled as a dim; labels that differ stay different."""
    labels = {label for places in axes.values() if isinstance(places, Mapping) for label in places.values()}
    taken = {label for label in labels if _is_name(label)}
    spelled: dict[str, str] = {}
    for label in sorted(labels - taken):
        if not _is_arithmetic_on(label, taken):
            spelled[label] = _unused(re.sub(r"\W+", "_", label).strip("_"), {*taken, *spelled.values()})
    return {
        name: {axis: spelled.get(label, label) for axis, label in places.items()}
        if isinstance(places, Mapping)
        else places
        for name, places in axes.items()
    }


def _is_arithmetic_on(label: str, dims: set[str]) -> bool:
    try:
        return is_about(parse_expr(label), dims)
    except DeclarationError:
        return False


def _is_name(label: str) -> bool:
    return label.isidentifier() and not iskeyword(label)


def _unused(name: str, taken: set[str]) -> str:
    name = name if _is_name(name) else f"dim_{name}".rstrip("_")
    while name in taken:
        name += "_"
    return name
