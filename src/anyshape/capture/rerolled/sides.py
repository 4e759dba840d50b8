"""A loop whose first steps, or whose steps after some number, are others: the size from which on one form serves.

    out = [first]; for t in range(1, seq): ...     ->     seq <= 1 by itself, and seq > 1
    if t >= 33: state = state.clamp(-1, 1)         ->     seq <= 33, and seq > 33, where 33 stands in the user's code

Each side is learned by itself, and must predict traces of its own that it has not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from anyshape.capture.generalized.learning_sizes import Answers, Sizes
from anyshape.capture.generalized.record import Recorder
from anyshape.capture.generalized.template import Unaligned
from anyshape.capture.generalized.trace import Trace
from anyshape.capture.rerolled.blocks import roll_up
from anyshape.capture.rerolled.functional import without_writes
from anyshape.domain import Compare, Condition, Number, Ref
from anyshape.inputs import Declared

_SMALL = 3
_STEPS = (1, 2, 3, 5, 9)
_FEWEST_LENGTHS = 3


def find_side(recorder: Recorder, declared: Declared, answers: Answers, suspects: Sequence[Sizes]) -> Condition | None:
    """`dim > c` such that all traces on that side have one form, for the smallest c that shows it; None if none does."""
    for name in declared.domain.names:
        numbers = sorted({sizes[name] for sizes in suspects})
        for limit in _limits(declared, name, numbers):
            above = [limit + step for step in _STEPS] + [number for number in numbers if number > limit + _STEPS[-1]]
            traces = list(_traces(recorder, declared, answers, name, above))
            if len({len(trace.steps) for trace in traces}) < _FEWEST_LENGTHS:
                break  # no loop over this dim, or no more sizes of it
            at_limit = list(_traces(recorder, declared, answers, name, [limit]))
            if at_limit and _have_one_form(traces) and not _have_one_form([*at_limit, *traces]):
                return Compare(">", Ref(name), Number(limit))
    return None


def _limits(declared: Declared, name: str, numbers: Sequence[int]) -> Iterator[int]:
    """The first few sizes of a dim, and the numbers of the user's code with their neighbours."""
    smallest = declared.domain.dim(name).smallest
    yield from range(smallest, smallest + _SMALL)
    yield from (number for number in numbers if number >= smallest + _SMALL)


def _traces(
    recorder: Recorder, declared: Declared, answers: Answers, name: str, sizes: Sequence[int]
) -> Iterator[Trace]:
    for size in sizes:
        point = {**declared.example_sizes, name: size}
        if not declared.domain.contains(point) or not answers(point):
            continue
        try:
            yield without_writes(recorder.trace(point))
        except Exception:  # what cannot be traced says nothing of a loop
            return


def _have_one_form(traces: Sequence[Trace]) -> bool:
    try:
        roll_up(traces)
    except Unaligned:
        return False
    return True
