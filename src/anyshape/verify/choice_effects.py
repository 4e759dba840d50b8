"""How far choices by value move the module's own answer: an argmax, a topk, and all that follows from them.

watch the module once         which positions it chose, and from which values
other orders of near values   the module runs again, once for each order that is another one
the same in doubles           how far rounding moves those values, where the least rounding does not explain the file
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from anyshape.runtime.child_messages import Array
from anyshape.verify.choices import Watched, watch_choices
from anyshape.verify.near_ties import is_moved_further, move_near_ties
from anyshape.verify.noise import Yardstick
from anyshape.verify.reference import CallInputs, Reference
from anyshape.verify.ties import look_at_choices

Noise = Callable[[bool], Iterator[Sequence[Array]]]


def find_sensitivities(
    reference: Reference,
    inputs: CallInputs,
    answers: tuple[Sequence[Array], Sequence[Array]],
    yardstick: Yardstick | None,
    noise: Noise,
) -> Iterator[Sequence[Array]]:
    """Per-element sensitivity, larger with each answer of the module: infinitely where another choice among equal values is
    as good, not at all where torch documents which one it is.

    `answers` are the module's and the file's. `noise` gives the sensitivity to rounding; its argument is whether equal
    values stay equal.
    """
    expected, actual = answers
    watched = Watched(reference.run, inputs)
    choices = look_at_choices(watched, expected, actual)
    moved: Sequence[Array] = choices.free
    for moved in move_near_ties(reference, inputs, expected, choices.ordered, watched.products):
        yield _joined(choices.free, moved, choices.fixed)
    if yardstick is not None and watched.choices:  # which takes long: often the least rounding explains enough
        rounded = look_at_choices(watched, expected, actual, watch_choices(yardstick.double_answer, inputs))
        is_further = is_moved_further(rounded.ordered, choices.ordered)
        choices = rounded
        yield _joined(choices.free, moved, choices.fixed)
        further = move_near_ties(reference, inputs, expected, choices.ordered, watched.products)
        for moved in further if is_further else ():
            yield _joined(choices.free, moved, choices.fixed)
    free = _joined(choices.free, moved, choices.fixed)
    for sensitivities in noise(choices.has_fixed_ties):
        yield _joined(sensitivities, free, choices.fixed)


def _joined(one: Sequence[Array], other: Sequence[Array], fixed: Sequence[Array]) -> list[Array]:
    """The larger sensitivity of each element; none where the very position is documented."""
    return [np.where(is_fixed, 0.0, np.maximum(a, b)) for a, b, is_fixed in zip(one, other, fixed, strict=True)]
