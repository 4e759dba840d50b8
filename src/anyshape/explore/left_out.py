"""Axes that an example's declaration leaves out: static ones that the module needs to follow a dim.

dynamic={"x": {0: "batch"}}, mask: float32[3, 5]    the module refuses batch = 4 beside 3 rows of mask, and answers
                                                    where mask has 4 rows: axis 0 of 'mask' is left out
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice

from anyshape.domain import Expr, Number, Ref, format_expr
from anyshape.inputs import Declared
from anyshape.inputs.calls import Inputs
from anyshape.inputs.declared import InputLeaf
from anyshape.inputs.making import BoundedMaker, make_from
from anyshape.records.explored import LeftOut, Place

Answers = Callable[[Inputs], bool]

_MOST_AXES = 3
_MOST_TRIALS = 24
_STEPS = (1, 2, 4, 3, -1, 7)
_POINTS = 3
_FEWEST_POINTS = 2


def find_left_out(declared: Declared, answers: Answers) -> tuple[LeftOut, ...]:
    """For each dim that the module refuses to vary alone: the fewest static axes with which it varies, if there are any."""
    if declared.source != "words" or declared.only_given_values:
        return ()
    found = (_axes_beside(declared, name, answers) for name in declared.domain.names)
    return tuple(each for each in found if each is not None)


def _axes_beside(declared: Declared, name: str, answers: Answers) -> LeftOut | None:
    size = declared.example_sizes[name]
    static = [
        (leaf.path, axis)
        for leaf in declared.tensor_leaves
        for axis, expression in enumerate(leaf.axes)
        if expression == Number(size)
    ]
    if not static:
        return None
    points = list(islice(_refused_alone(declared, name, answers), _POINTS))
    if len(points) < _FEWEST_POINTS:
        return None
    for places in islice(_subsets(static), _MOST_TRIALS):
        following = with_axes(declared, places, Ref(name))
        if all(answers(following.make(sizes, 0)) for sizes in points):
            tried = tuple(sorted(sizes[name] for sizes in points))
            return LeftOut(name, places, size, tried, _dynamic_axes(following.leaves))
    return None


def _refused_alone(declared: Declared, name: str, answers: Answers) -> Iterator[Mapping[str, int]]:
    """The example's sizes with another size of one dim, where the module refuses."""
    for step in _STEPS:
        sizes = {**declared.example_sizes, name: declared.example_sizes[name] + step}
        if declared.domain.contains(sizes) and not answers(declared.make(sizes, 0)):
            yield sizes


def _subsets(places: Sequence[Place]) -> Iterator[tuple[Place, ...]]:
    for count in range(1, min(_MOST_AXES, len(places)) + 1):
        yield from combinations(places, count)


def with_axes(declared: Declared, places: Sequence[Place], expression: Expr) -> Declared:
    """The declaration with these axes following the expression; inputs are made from the same example."""
    leaves = tuple(
        replace(
            leaf,
            axes=tuple(expression if (leaf.path, axis) in places else own for axis, own in enumerate(leaf.axes)),
        )
        for leaf in declared.leaves
    )
    plain = replace(declared, leaves=leaves, make=make_from(leaves, [(declared.example_sizes, declared.bound)]))
    return replace(plain, make=BoundedMaker(plain, plain.value_ranges))


def _dynamic_axes(leaves: Sequence[InputLeaf]) -> dict[str, dict[int, str]]:
    """What `dynamic` takes for these axes: `{"x": {0: "batch"}}`."""
    words = {
        leaf.name: {axis: format_expr(each) for axis, each in enumerate(leaf.axes) if not isinstance(each, Number)}
        for leaf in leaves
    }
    return {name: axes for name, axes in words.items() if axes}
