"""Loops over a dim, seen in the length of traces: whether there is one, where its form changes, at which sizes to trace it.

A trace that grows with a dim has a loop over it, and one program for each size would never end:

    3, 4, 5, 6 steps of `for t in range(seq)`   ->   as many operations more each time
    3, 5, 9, 17, 33 of `while d < seq: d *= 2`  ->   as many operations more at each doubling
    4, 6, 8, 10 of `for t in range(seq // 2)`   ->   as many operations more at every second or fourth size
    4, 9, 16, 25 of `for t in range(int(seq ** 0.5))`  ->  as many operations more at each square

Some loops run other operations in their first steps, or after a number of steps. Each side is learned by itself, and must
predict traces of its own that it has not seen:

    out = [first]; for t in range(1, seq): ...     ->     seq <= 1 by itself, and seq > 1
    if t >= 33: state = state.clamp(-1, 1)         ->     seq <= 33, and seq > 33, where 33 stands in the user's code

A trace at twice a number of the user's code shows what the loop does before that number and after it: such sizes come
first, then the neighbours of the number. All traces together stay within a limit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import ceil

from anyshape.capture.generalized.learn import NO_STRIDES, Answers, Strides, first_sizes
from anyshape.capture.generalized.not_learned import traces_differ
from anyshape.capture.generalized.record import Recorder
from anyshape.capture.generalized.template import Unaligned
from anyshape.capture.generalized.trace import Trace
from anyshape.capture.rerolled.blocks import roll_up
from anyshape.capture.rerolled.functional import without_writes
from anyshape.domain import Compare, Condition, Domain, Number, Ref, Sizes, smallest_known_point
from anyshape.inputs import Declared

_SMALL, _FEW = 6, 3
_FAR = 4
_PROGRESSIONS = ((3, 4, 5, 6), (3, 5, 9, 17, 33), (4, 6, 8, 10), (4, 8, 12, 16), (4, 9, 16, 25))
_SMALLEST = 3
_STEPS = (1, 2, 3, 5, 9)
_FEWEST_LENGTHS = 3
_MOST = 8
_MOST_STEPS = 6000  # operations of all traces together: a trace takes some milliseconds for each
_LONGEST = 4000  # operations of one trace
_STEP = 4


def find_growing(
    recorder: Recorder, declared: Declared, answers: Callable[[Mapping[str, int]], bool], dims: Iterable[str]
) -> str | None:
    """The first of these dims with which traces grow, by the same number of operations at every step; None if none does."""
    for dim in dims:
        for sizes in _PROGRESSIONS:
            points = [{**declared.example_sizes, dim: size} for size in sizes]
            if not all(declared.domain.contains(point) and answers(point) for point in points):
                continue
            if grows_evenly(recorder, points):
                return dim
    return None


def grows_evenly(recorder: Recorder, points: Sequence[Sizes]) -> bool:
    """Whether each trace at these points is longer than the one before it, by the same number of operations."""
    if not _runs_more(recorder, points[0], points[-1]):
        return False  # a trace takes many times as long as a call
    counts = _counts(recorder, points)
    steps = {later - before for before, later in itertools.pairwise(counts)}
    return len(counts) == len(points) and len(steps) == 1 and steps.pop() > 0


def may_grow(dim: str, traced_at: int, conditions: Sequence[Condition], domain: Domain) -> bool:
    """Whether a program that holds under these conditions, traced at this size of the dim, may have a loop over the dim.

    It has none where it also holds at a size several times as large: there a loop would have more steps, and the program
    has the same number at both. Loops over every second size or that double end before that.
    """
    largest = domain.dim(dim).max
    far = _FAR * traced_at if largest is None else min(_FAR * traced_at, largest)
    if far < 2 * traced_at:
        return True
    return smallest_known_point(domain, *conditions, Compare(">=", Ref(dim), Number(far))) is None


def check_growth(
    recorder: Recorder, declared: Declared, answers: Callable[[Mapping[str, int]], bool], strides: Strides = NO_STRIDES
) -> None:
    """Raise NotCaptured where small traces show a loop, before there are long ones: no program without loops is right.

    `strides` are those of loops that were found already.
    """
    example = declared.example_sizes
    points = [{**example, name: example[name] + stride} for name, stride in strides.items()]
    small: Sequence[Sizes] = [example, *points] if points else first_sizes(declared, answers, _SMALL, _FEW)
    traces = []
    for sizes in sorted(small, key=lambda sizes: sum(sizes.values())):
        try:
            traces.append(recorder.trace(sizes))
        except Exception:  # the learner traces too, and says what is wrong
            return
    if len({len(trace.steps) for trace in traces}) < 2:
        return
    if not points and find_growing(recorder, declared, answers, declared.domain.names) is None:
        return
    one = traces[0]
    other = next(trace for trace in traces if len(trace.steps) != len(one.steps))
    pairs = itertools.zip_longest(one.steps, other.steps)
    first, second = next((a, b) for a, b in pairs if a is None or b is None or a.signature != b.signature)
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


def find_side(
    recorder: Recorder, declared: Declared, answers: Answers, suspects: Sequence[Sizes], strides: Strides = NO_STRIDES
) -> Condition | None:
    """`dim > c` such that all traces on that side have one form, for the smallest c that shows it; None if none does."""
    for name in declared.domain.names:
        numbers = sorted({sizes[name] for sizes in suspects})
        for limit in _limits(declared, name, numbers):
            above = [limit + step * strides.get(name, 1) for step in _STEPS]
            above += [number for number in numbers if number > above[-1]]
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
    yield from range(smallest, smallest + _SMALLEST)
    yield from (number for number in numbers if number >= smallest + _SMALLEST)


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


def choose_suspects(
    recorder: Recorder, declared: Declared, answers: Answers, suspects: Sequence[Sizes], strides: Strides = NO_STRIDES
) -> list[Sizes]:
    """A few of them, with the other dims at sizes that differ: what only suspects show must not look like a constant."""
    if not suspects:
        return []
    example = declared.example_sizes
    growths = {
        name: _growth(recorder, declared, answers, name, max(_STEP, strides.get(name, 1)))
        for name in declared.domain.names
    }
    growing = {name: growth for name, growth in growths.items() if growth}
    chosen: list[Sizes] = []
    steps = 0
    for sizes in sorted(suspects, key=lambda sizes: _rank(sizes, suspects, example)):
        moved = [name for name in growing if sizes[name] != example[name]]
        long = ceil(sum(growing[name] * sizes[name] for name in moved))
        if not moved or long > _LONGEST or steps + long > _MOST_STEPS or len(chosen) >= _MOST:
            continue
        steps += long
        chosen.append(_varied(declared, sizes, len(chosen)))
    return chosen


def _rank(sizes: Sizes, suspects: Sequence[Sizes], example: Sizes) -> int:
    """0 for a size that is 2 * n + 1 of another suspect n, 1 for n + 1, 2 for all others."""
    for name in sizes:
        others = {other[name] for other in suspects if other[name] != example[name]}
        if sizes[name] != example[name] and (sizes[name] - 1) % 2 == 0 and (sizes[name] - 1) // 2 in others:
            return 0
        if sizes[name] != example[name] and sizes[name] - 1 in others and 2 * (sizes[name] - 1) in others:
            return 1
    return 2


def _growth(recorder: Recorder, declared: Declared, answers: Answers, name: str, step: int) -> float:
    """By how many operations a trace is longer for one more of this dim; 0 where it is not, or cannot be traced."""
    points = list(_two(declared, answers, name, step))
    if len(points) < 2 or not _runs_more(recorder, *points):
        return 0
    try:
        lengths = [len(recorder.trace(sizes).steps) for sizes in points]
    except Exception:  # the learner traces too, and says what is wrong
        return 0
    return max(lengths[1] - lengths[0], 0) / step


def _two(declared: Declared, answers: Answers, name: str, step: int) -> Iterator[Sizes]:
    example = declared.example_sizes
    for sizes in (example, {**example, name: example[name] + step}):
        if declared.domain.contains(sizes) and answers(sizes):
            yield sizes


def _varied(declared: Declared, sizes: Sizes, index: int) -> Sizes:
    example = declared.example_sizes
    moved = {name: size + index % 3 if size == example[name] else size for name, size in sizes.items()}
    return moved if declared.domain.contains(moved) else sizes
