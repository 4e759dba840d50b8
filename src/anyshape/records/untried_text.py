"""Planned sizes that were not compared, as lines of text: printed with a result, and in reports."""

from __future__ import annotations

from collections.abc import Iterable

from anyshape.records.verdict import Sizes, Untried

_SHOWN = 3


def describe_untried(untried: Iterable[Untried]) -> list[str]:
    """One line for each reason: the three largest sizes that were not compared for it, and how many others there are."""
    by_reason: dict[str, list[Sizes]] = {}
    for each in untried:
        by_reason.setdefault(each.why, []).append(each.sizes)
    return [f"untried {_some_of(sizes)}: {why}" for why, sizes in by_reason.items()]


def _some_of(left_out: list[Sizes]) -> str:
    largest = sorted(left_out, key=lambda sizes: sum(sizes.values()), reverse=True)
    shown = "; ".join(", ".join(f"{name}={size}" for name, size in sizes.items()) for sizes in largest[:_SHOWN])
    others = len(largest) - _SHOWN
    return f"{shown} and {others} more" if others > 0 else shown
