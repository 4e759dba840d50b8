"""A capture of the whole domain, or one of each side of a condition where no program serves for both, joined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from anyshape.capture.generalized.fit_steps import find_break
from anyshape.capture.generalized.not_learned import CaptureRefused
from anyshape.domain import Condition, Undecided, all_of, find_point, negate
from anyshape.findings import Reason
from anyshape.inputs import Declared
from anyshape.records.captured import Answer, Captured

Capture = Callable[[Declared], Captured]
FindSide = Callable[[Declared], Condition | None]


def capture_sides(declared: Declared, capture: Capture, find_side: FindSide, depth: int) -> Captured:
    """`capture` where it serves, else both sides of what `find_side` finds, each cut at most `depth` - 1 times more."""
    try:
        return capture(declared)
    except CaptureRefused as refusal:
        side = _side(refusal, declared, find_side) if depth else None
        if side is None:
            raise
        first, second = (
            _under(condition, capture_sides(_narrowed(declared, condition), capture, find_side, depth - 1))
            for condition in (side, negate(side))
        )
        if len(first.answers) != len(second.answers):
            raise
        return _join(first, second)


def _side(refusal: CaptureRefused, declared: Declared, find_side: FindSide) -> Condition | None:
    """Where to cut: where the traces begin to differ, or where a number without a rule jumps."""
    if refusal.finding.reason is Reason.PATH_DEPENDS_ON_SIZES:
        return find_side(declared)
    found = find_break(refusal.seen, declared.domain.names)
    return found if found is not None and _cuts(declared, found) else None


def _cuts(declared: Declared, condition: Condition) -> bool:
    """Whether the domain has sizes on both sides."""
    try:
        return all(find_point(declared.domain, side) is not None for side in (condition, negate(condition)))
    except Undecided:
        return False


def _narrowed(declared: Declared, condition: Condition) -> Declared:
    return replace(declared, domain=declared.domain.narrowed(condition))


def _join(first: Captured, second: Captured) -> Captured:
    """Both sides as one capture: an axis of an answer on which they disagree follows no expression."""
    pairs = zip(first.answers, second.answers, strict=True)
    return replace(
        first, regions=(*first.regions, *second.regions), answers=tuple(_either(one, other) for one, other in pairs)
    )


def _under(condition: Condition, captured: Captured) -> Captured:
    """The same capture for the sizes at which the condition holds."""
    regions = tuple(replace(region, condition=all_of((condition, region.condition))) for region in captured.regions)
    return replace(captured, regions=regions)


def _either(one: Answer, other: Answer) -> Answer:
    if len(one.axes) != len(other.axes):
        return replace(one, axes=(), any_rank=True)
    axes = tuple(size if size == also else None for size, also in zip(one.axes, other.axes, strict=True))
    return replace(one, axes=axes, any_rank=one.any_rank or other.any_rank)
