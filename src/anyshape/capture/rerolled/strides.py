"""Loops that take a dim in parts: by how much the dim grows for one more step, found by conditions of a capture.

for i in range((seq + 63) // 64)     captured at seq = 5  ->  (seq + 63) // 64 == 1
sizes at which this is 1, 2, 3, 4    ->  traces that grow by as many operations each time: a stride of 64
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from anyshape.capture.generalized.learn import Answers, Strides
from anyshape.capture.generalized.record import Recorder
from anyshape.capture.rerolled.growth import grows_evenly
from anyshape.domain import Compare, Condition, Expr, Number, Ref, Sizes, Undecided, dims_of, smallest_point
from anyshape.inputs import Declared

_STEPS = 5
_FEWEST = 4
_MOST_EXPRESSIONS = 8
_ELEMENTS = 4_000_000


def find_stride(
    recorder: Recorder, declared: Declared, answers: Answers, conditions: Iterable[Condition]
) -> tuple[str, int, Condition] | None:
    """A dim with its stride, and the condition that shows it; None if traces grow with none of these conditions."""
    for condition, dim in _pins(conditions):
        points = list(_points(declared, condition, dim))
        chosen = points[1:] if len(points) == _STEPS else points  # the smallest sizes may have a path of their own
        stride = _stride([point[dim] for point in chosen])
        if stride is not None and all(map(answers, chosen)) and grows_evenly(recorder, chosen):
            return dim, stride, condition
    return None


def _stride(sizes: Sequence[int]) -> int | None:
    """How far sizes are apart; None if there are too few, or they are not all as far apart, or next to each other."""
    gaps = {later - before for before, later in itertools.pairwise(sizes)}
    return gaps.pop() if len(sizes) >= _FEWEST and len(gaps) == 1 and min(gaps) > 1 else None


def around_strides(declared: Declared, strides: Strides) -> list[Sizes]:
    """Sizes on both sides of the ends of the first parts: what is cut, padded or left over changes there."""
    example = declared.example_sizes
    return [
        {**example, name: size}
        for name, stride in strides.items()
        for size in (stride - 1, stride, stride + 1, 2 * stride)
    ]


def _pins(conditions: Iterable[Condition]) -> Iterator[tuple[Compare, str]]:
    """Conditions that an expression which is no dim itself equals a number, with each dim of it."""
    pins = (part for part in dict.fromkeys(conditions) if isinstance(part, Compare) and part.op == "==")
    expressions = (pin for pin in pins if isinstance(pin.right, Number) and not isinstance(pin.left, (Ref, Number)))
    for pin in itertools.islice(expressions, _MOST_EXPRESSIONS):
        yield from ((pin, dim) for dim in sorted(dims_of(pin.left)))


def _points(declared: Declared, pin: Compare, dim: str) -> Iterator[Sizes]:
    """The smallest sizes of the dim at which the expression has its value, one more, and so on, beside those of the example."""
    assert isinstance(pin.right, Number)
    example = declared.example_sizes
    usual = [Compare("==", Ref(name), Number(size)) for name, size in example.items() if name != dim]
    for value in range(pin.right.value, pin.right.value + _STEPS):
        point = _smallest(declared, pin.left, value, usual)
        if point is None or declared.elements(point) > _ELEMENTS:
            return
        yield point


def _smallest(declared: Declared, expr: Expr, value: int, usual: Iterable[Condition]) -> Sizes | None:
    try:
        return smallest_point(declared.domain, Compare("==", expr, Number(value)), *usual)
    except Undecided:
        return None
