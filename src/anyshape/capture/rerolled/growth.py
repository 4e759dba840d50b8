"""Does a trace grow with a dim? Then there is a loop over it, and one program for each size would never end.

3, 4, 5, 6 steps of `for t in range(seq)`   ->   as many operations more each time
3, 5, 9, 17, 33 of `while d < seq: d *= 2`  ->   as many operations more at each doubling
4, 6, 8, 10 of `for t in range(seq // 2)`   ->   as many operations more at every second or fourth size
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

from anyshape.capture.generalized.learning_sizes import first_sizes
from anyshape.capture.generalized.not_learned import traces_differ
from anyshape.capture.generalized.record import Recorder
from anyshape.domain import Compare, Condition, Domain, Number, Ref, Undecided, smallest_point
from anyshape.inputs import Declared

_SMALL, _FEW = 6, 3
_FAR = 4
_PROGRESSIONS = ((3, 4, 5, 6), (3, 5, 9, 17, 33), (4, 6, 8, 10), (4, 8, 12, 16))


def find_growing(
    recorder: Recorder, declared: Declared, answers: Callable[[Mapping[str, int]], bool], dims: Iterable[str]
) -> str | None:
    """The first of these dims with which traces grow, by the same number of operations at every step; None if none does."""
    for dim in dims:
        for sizes in _PROGRESSIONS:
            points = [{**declared.example_sizes, dim: size} for size in sizes]
            if not all(declared.domain.contains(point) and answers(point) for point in points):
                continue
            if not _runs_more(recorder, points[0], points[-1]):
                continue  # a trace takes many times as long as a call
            counts = _counts(recorder, points)
            steps = {later - before for before, later in itertools.pairwise(counts)}
            if len(counts) == len(sizes) and len(steps) == 1 and steps.pop() > 0:
                return dim
    return None


def may_grow(dim: str, traced_at: int, conditions: Sequence[Condition], domain: Domain) -> bool:
    """Whether a program that holds under these conditions, traced at this size of the dim, may have a loop over the dim.

    It has none where it also holds at a size several times as large: there a loop would have more steps, and the program
    has the same number at both. Loops over every second size or that double end before that.
    """
    largest = domain.dim(dim).max
    far = _FAR * traced_at if largest is None else min(_FAR * traced_at, largest)
    if far < 2 * traced_at:
        return True
    try:
        return smallest_point(domain, *conditions, Compare(">=", Ref(dim), Number(far))) is None
    except Undecided:
        return True


def check_growth(recorder: Recorder, declared: Declared, answers: Callable[[Mapping[str, int]], bool]) -> None:
    """Raise CaptureRefused where small traces show a loop, before there are long ones: no program without loops serves."""
    traces = []
    for sizes in sorted(first_sizes(declared, answers, _SMALL, _FEW), key=lambda sizes: sum(sizes.values())):
        try:
            traces.append(recorder.trace(sizes))
        except Exception:  # the learner traces too, and says what is wrong
            return
    if len({len(trace.steps) for trace in traces}) < 2:
        return
    if find_growing(recorder, declared, answers, declared.domain.names) is None:
        return
    one = traces[0]
    other = next(trace for trace in traces if len(trace.steps) != len(one.steps))
    pairs = itertools.zip_longest(one.steps, other.steps)
    first, second = next((a, b) for a, b in pairs if a is None or b is None or a.letter != b.letter)
    raise traces_differ(first, second, one.sizes, other.sizes)


def _runs_more(recorder: Recorder, small: Mapping[str, int], large: Mapping[str, int]) -> bool:
    """Whether a call runs more operators at the large sizes than at the small ones, or this cannot be counted."""
    before, after = recorder.count(small), recorder.count(large)
    return before is None or after is None or after > before


def _counts(recorder: Recorder, points: Iterable[Mapping[str, int]]) -> list[int]:
    """How many operations the traces have at these sizes, as far as the module can be traced."""
    counts: list[int] = []
    for point in points:
        try:
            counts.append(len(recorder.trace(point).steps))
        except Exception:  # what cannot be traced grows with nothing that we could see
            break
    return counts
