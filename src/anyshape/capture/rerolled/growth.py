"""Does a trace grow with a dim? Then there is a loop over it, and one program for each size would never end.

3, 4, 5, 6 steps of `for t in range(seq)`   ->   as many operations more each time
3, 5, 9, 17, 33 of `while d < seq: d *= 2`  ->   as many operations more at each doubling
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping

from anyshape.capture.generalized.record import Recorder
from anyshape.inputs import Declared

_PROGRESSIONS = ((3, 4, 5, 6), (3, 5, 9, 17, 33))


def find_growing(
    recorder: Recorder, declared: Declared, answers: Callable[[Mapping[str, int]], bool], dims: Iterable[str]
) -> str | None:
    """The first of these dims with which traces grow, by the same number of operations at every step; None if none does."""
    for dim in dims:
        for sizes in _PROGRESSIONS:
            counts = _counts(recorder, declared, answers, dim, sizes)
            steps = {later - before for before, later in itertools.pairwise(counts)}
            if len(counts) == len(sizes) and len(steps) == 1 and steps.pop() > 0:
                return dim
    return None


def _counts(
    recorder: Recorder,
    declared: Declared,
    answers: Callable[[Mapping[str, int]], bool],
    dim: str,
    sizes: Iterable[int],
) -> list[int]:
    """How many operations the traces have at these sizes of the dim; as far as the module answers and can be traced."""
    counts: list[int] = []
    for size in sizes:
        point = {**declared.example_sizes, dim: size}
        if not declared.domain.contains(point) or not answers(point):
            break
        try:
            counts.append(len(recorder.trace(point).steps))
        except Exception:  # what cannot be traced grows with nothing that we could see
            break
    return counts
