"""Choose, of the sizes at numbers of the user's code, those at which a loop is traced: traces are as long as their loops.

Only dims with which traces grow count. A trace well beyond a number has in it what the loop does before the number, so
sizes of a little more than twice a number come first; then the number's neighbours. All traces together stay within a limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from anyshape.capture.generalized.learning_sizes import Answers, Sizes
from anyshape.capture.generalized.record import Recorder
from anyshape.inputs import Declared

_MOST = 8
_MOST_STEPS = 6000  # operations of all traces together: a trace takes some milliseconds for each
_LONGEST = 4000  # operations of one trace
_STEP = 4


def choose_suspects(recorder: Recorder, declared: Declared, answers: Answers, suspects: Sequence[Sizes]) -> list[Sizes]:
    """A few of them, with the other dims at sizes that differ: what only suspects show must not look like a constant."""
    if not suspects:
        return []
    example = declared.example_sizes
    growing = {name: growth for name in declared.domain.names if (growth := _growth(recorder, declared, answers, name))}
    chosen: list[Sizes] = []
    steps = 0
    for sizes in sorted(suspects, key=lambda sizes: _rank(sizes, suspects, example)):
        moved = [name for name in growing if sizes[name] != example[name]]
        long = sum(growing[name] * sizes[name] for name in moved)
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


def _growth(recorder: Recorder, declared: Declared, answers: Answers, name: str) -> int:
    """By how many operations a trace is longer for one more of this dim; 0 where it is not, or cannot be traced."""
    try:
        lengths = [len(recorder.trace(sizes).steps) for sizes in _two(declared, answers, name)]
    except Exception:  # the learner traces too, and says what is wrong
        return 0
    return -(-max(lengths[1] - lengths[0], 0) // _STEP) if len(lengths) == 2 else 0


def _two(declared: Declared, answers: Answers, name: str) -> Iterator[Sizes]:
    example = declared.example_sizes
    for sizes in (example, {**example, name: example[name] + _STEP}):
        if declared.domain.contains(sizes) and answers(sizes):
            yield sizes


def _varied(declared: Declared, sizes: Sizes, index: int) -> Sizes:
    example = declared.example_sizes
    moved = {name: size + index % 3 if size == example[name] else size for name, size in sizes.items()}
    return moved if declared.domain.contains(moved) else sizes
