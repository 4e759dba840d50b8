"""What was not compared, in words: for the text of a result, and for its page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from anyshape.domain import Sizes, format_sizes
from anyshape.records.verdict import Untried

_SHOWN = 3


def describe_untried(untried: Iterable[Untried]) -> list[str]:
    """One line for each reason: the three largest sizes that were not compared for it, and how many others there are."""
    by_reason: dict[str, list[Sizes]] = {}
    for each in untried:
        by_reason.setdefault(each.why, []).append(each.sizes)
    return [f"untried {_some_of(sizes)}: {why}" for why, sizes in by_reason.items()]


def describe_untried_values(names: Sequence[str]) -> list[str]:
    """One line with the edge values that were left out; none if there are none."""
    if not names:
        return []
    shown = ", ".join(names[:_SHOWN])
    others = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return [f"untried values {shown}{others}: left out to keep the comparisons in proportion to the export"]


def _some_of(left_out: list[Sizes]) -> str:
    largest = sorted(left_out, key=lambda sizes: sum(sizes.values()), reverse=True)
    shown = "; ".join(format_sizes(sizes) for sizes in largest[:_SHOWN])
    others = len(largest) - _SHOWN
    return f"{shown} and {others} more" if others > 0 else shown
