"""TensorRT's optimization profiles: the smallest, the usual and the largest shapes of every input, each a point of the domain.

    domain, axes of the inputs  ->  boxes of axis sizes whose three corners keep every rule

One box is enough where the smallest (and the largest) values of all axes occur together. Where a rule forbids that
(`past + seq <= 2048`), there is one box for each axis that is largest first, and one around the middle. Ends of axes and the
sizes that no box holds are answers of the solver; corners are evaluated as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from anyshape.deploying.deploy_messages import broken_profile, corner_outside, not_proved, outside_profile
from anyshape.deploying.deployment import DimRanges
from anyshape.domain import (
    Compare,
    Condition,
    Domain,
    Expr,
    Number,
    Op,
    Ref,
    Sizes,
    Truth,
    Undecided,
    all_of,
    any_of,
    dims_of,
    evaluate,
    find_point,
    format_sizes,
    range_of,
    smallest_point,
)
from anyshape.findings import InternalError, UsageError

Shape = tuple[int, ...]
Axes = Mapping[str, Sequence[Expr]]

_STEPS = 50_000_000  # of the solver: ten seconds or so


@dataclass(frozen=True)
class Profile:
    """Three points of the domain. `name` is the purpose of the profile."""

    name: str
    min: Sizes
    opt: Sizes
    max: Sizes

    @property
    def corners(self) -> tuple[Sizes, Sizes, Sizes]:
        return self.min, self.opt, self.max

    def shapes(self, inputs: Axes) -> dict[str, tuple[Shape, Shape, Shape]]:
        """The shapes of each input at the three points."""
        return {name: tuple(shape_at(axes, point) for point in self.corners) for name, axes in inputs.items()}  # type: ignore[misc]


def shape_at(axes: Sequence[Expr], sizes: Sizes) -> Shape:
    """The shape that these axes have at these sizes."""
    return tuple(evaluate(axis, sizes) for axis in axes)


class ProfileSearch:
    """Profiles over one domain, all of whose axes have an upper end."""

    def __init__(self, domain: Domain, axes: Sequence[Expr]) -> None:
        self._domain = domain
        self._axes = tuple(axes)

    def cover(self, wanted: Sequence[Sizes] = ()) -> list[Profile]:
        """One profile for the whole domain, or several; `wanted` are usual sizes, each of which has a profile of its own."""
        whole = self._whole()
        boxes = [whole] if whole is not None else self._named(_without_contained(self._axes, list(self._parts())))
        return self._with_usual(boxes, wanted)

    def given(self, ranges: Sequence[DimRanges], wanted: Sequence[Sizes] = ()) -> list[Profile]:
        """A profile for each group of ranges of dims. Raises UsageError (AS552) where an end of one breaks a rule."""
        boxes = [self._of_ranges(each) for each in ranges]
        for point in wanted:
            if not any(self._holds(box, point) for box in boxes):
                raise UsageError(outside_profile(point))
        return self._with_usual(boxes, wanted)

    def complete(self, sizes: Sizes) -> Sizes:
        """Sizes of all dims: the given ones, the others near their middle. Raises UsageError (AS552) for no such sizes."""
        given = tuple(Compare("==", Ref(name), Number(size)) for name, size in sizes.items())
        if self._point(given) is None:
            raise UsageError(broken_profile(self._domain, given, f"--at {format_sizes(sizes, ',')}"))
        return self._nearest_to_middle(given)

    def largest(self) -> Sizes:
        """The point with the largest axes, the first axis before all others."""
        return self._end(max, ())

    def find_left_out(self, profiles: Sequence[Profile]) -> Sizes | None:
        """The smallest sizes that no profile holds; None where the solver proves that there are none."""
        outside = tuple(self._is_outside(each) for each in profiles)
        try:
            return smallest_point(self._domain, *outside, steps=_STEPS)
        except Undecided:
            return self._point(outside)

    def check(self, profiles: Sequence[Profile]) -> None:
        """Evaluate every corner again: in the domain, and ordered axis by axis. Raises InternalError."""
        for profile in profiles:
            values = [shape_at(self._axes, corner) for corner in profile.corners]
            is_ordered = all(low <= usual <= high for low, usual, high in zip(*values, strict=True))
            if not is_ordered or not all(self._domain.contains(corner) for corner in profile.corners):
                raise InternalError(corner_outside(profile.name, profile.corners))

    def _whole(self) -> Profile | None:
        """The box of all sizes, if its corners are points of the domain."""
        ends = [self._range(axis, ()) for axis in self._axes]
        low = self._point(tuple(_equal(axis, end[0]) for axis, end in zip(self._axes, ends, strict=True)))
        high = self._point(tuple(_equal(axis, end[1]) for axis, end in zip(self._axes, ends, strict=True)))
        return None if low is None or high is None else Profile("all sizes", low, {}, high)

    def _parts(self) -> Iterator[Profile]:
        """A box for each axis that is made as wide as it can be before the others, and one around the middle."""
        for place, axis in enumerate(self._axes):
            order = (axis, *self._axes[:place], *self._axes[place + 1 :])
            high = self._end(max, (), order)
            yield Profile("", self._end(min, self._at_most(high), order), {}, high)
        yield self._around("", self._nearest_to_middle(()))

    def _named(self, boxes: Sequence[Profile]) -> list[Profile]:
        """Each box after the axis that is largest in it and not in all others; `middle` where there is none."""
        tops = [self._range(axis, ())[1] for axis in self._axes]
        largest = [
            [axis for axis, top in zip(self._axes, tops, strict=True) if evaluate(axis, box.max) == top]
            for box in boxes
        ]
        own = [[axis for axis in each if not all(axis in other for other in largest)] for each in largest]
        return [
            replace(box, name=f"largest {axes[0]}" if axes else "middle") for box, axes in zip(boxes, own, strict=True)
        ]

    def _around(self, name: str, point: Sizes) -> Profile:
        return Profile(name, self._end(min, self._at_most(point)), point, self._end(max, self._at_least(point)))

    def _of_ranges(self, ranges: DimRanges) -> Profile:
        spelled = ",".join(f"{name}={low}..{high}" for name, (low, high) in ranges.items())
        ends = []
        for choose, place in ((min, 0), (max, 1)):
            fixed = tuple(Compare("==", Ref(name), Number(ends_of[place])) for name, ends_of in ranges.items())
            if self._point(fixed) is None:
                raise UsageError(broken_profile(self._domain, fixed, f"--profile {spelled}"))
            ends.append(self._end(choose, fixed))
        profile = Profile(spelled, ends[0], {}, ends[1])
        values = zip(shape_at(self._axes, ends[0]), shape_at(self._axes, ends[1]), strict=True)
        if not all(low <= high for low, high in values):
            fixed = tuple(Compare("==", Ref(name), Number(low)) for name, (low, _high) in ranges.items())
            raise UsageError(broken_profile(self._domain, (*fixed, *self._at_most(ends[1])), f"--profile {spelled}"))
        return profile

    def _with_usual(self, boxes: Sequence[Profile], wanted: Sequence[Sizes]) -> list[Profile]:
        """The boxes with their usual sizes: the wanted ones, each in a box that holds them, else the nearest to the middle."""
        found, usual = list(boxes), dict[int, Sizes]()
        for point in wanted:
            holding = [place for place, box in enumerate(found) if self._holds(box, point)]
            free = next((place for place in holding if place not in usual), None)
            if free is None:
                name = f"around {format_sizes(point)}"
                found.append(replace(found[holding[0]], name=name) if holding else self._around(name, point))
            usual[len(found) - 1 if free is None else free] = point
        return [
            replace(box, opt=usual[place] if place in usual else self._nearest_to_middle(self._within(box)))
            for place, box in enumerate(found)
        ]

    def _within(self, box: Profile) -> tuple[Condition, ...]:
        return (*self._at_least(box.min), *self._at_most(box.max))

    def _holds(self, box: Profile, point: Sizes) -> bool:
        values = (shape_at(self._axes, each) for each in (box.min, point, box.max))
        return all(low <= value <= high for low, value, high in zip(*values, strict=True))

    def _is_outside(self, box: Profile) -> Condition:
        low, high = shape_at(self._axes, box.min), shape_at(self._axes, box.max)
        return any_of(
            any_of([Compare("<", axis, Number(low[place])), Compare(">", axis, Number(high[place]))])
            for place, axis in enumerate(self._axes)
        )

    def _at_most(self, point: Sizes) -> tuple[Condition, ...]:
        return tuple(Compare("<=", axis, Number(evaluate(axis, point))) for axis in self._axes)

    def _at_least(self, point: Sizes) -> tuple[Condition, ...]:
        return tuple(Compare(">=", axis, Number(evaluate(axis, point))) for axis in self._axes)

    def _end(self, choose: object, conditions: tuple[Condition, ...], order: Sequence[Expr] = ()) -> Sizes:
        """The point whose axes are smallest (`min`) or largest (`max`), the first axis of the order before all others."""
        fixed = conditions
        for axis in order or self._axes:
            low, high = self._range(axis, fixed)
            fixed = (*fixed, _equal(axis, low if choose is min else high))
        point = self._point(fixed)
        if point is None:
            raise UsageError(not_proved(all_of(fixed)))
        return point

    def _nearest_to_middle(self, conditions: tuple[Condition, ...]) -> Sizes:
        """The point at which the conditions hold and each dim in turn is as near to its middle as it can be."""
        ends = {name: self._range(Ref(name), conditions) for name in self._domain.names}
        for name, (low, high) in ends.items():
            size = (low + high) // 2
            distance = Op("max", (Ref(name) - size, Number(size) - Ref(name)))
            conditions = (*conditions, Compare("<=", distance, Number(self._range(distance, conditions)[0])))
        point = self._point(conditions)
        if point is None:
            raise UsageError(not_proved(all_of(conditions)))
        return point

    def _range(self, expr: Expr, conditions: tuple[Condition, ...]) -> tuple[int, int]:
        found = range_of(self._domain.with_relations(*conditions), expr, steps=_STEPS)
        if found is None or not isinstance(found.low, int) or not isinstance(found.high, int):
            raise UsageError(not_proved(all_of(conditions)))
        return found.low, found.high

    def _point(self, conditions: tuple[Condition, ...]) -> Sizes | None:
        return find_point(self._domain, *conditions, steps=_STEPS)


def find_endless(domain: Domain, axes: Sequence[Expr]) -> list[str]:
    """The dims that let an axis grow without end."""
    endless: list[str] = []
    for axis in axes:
        found = range_of(domain, axis, steps=_STEPS)
        if found is None or isinstance(found.high, int):
            continue
        endless += [name for name in dims_of(axis) if not isinstance(_top(domain, name), int)]
    return list(dict.fromkeys(endless))


def _top(domain: Domain, name: str) -> object:
    found = range_of(domain, Ref(name), steps=_STEPS)
    return Truth.UNKNOWN if found is None else found.high


def _equal(axis: Expr, value: int) -> Condition:
    return Compare("==", axis, Number(value))


def _without_contained(axes: Sequence[Expr], boxes: Sequence[Profile]) -> list[Profile]:
    """The boxes without those that lie in another one; of equal ones the first is kept."""
    ends = [(shape_at(axes, box.min), shape_at(axes, box.max)) for box in boxes]

    def is_in(inner: int, outer: int) -> bool:
        return all(low >= least for low, least in zip(ends[inner][0], ends[outer][0], strict=True)) and all(
            high <= most for high, most in zip(ends[inner][1], ends[outer][1], strict=True)
        )

    kept = []
    for place, box in enumerate(boxes):
        others = (other for other in range(len(boxes)) if other != place and is_in(place, other))
        if not any(not is_in(other, place) or other < place for other in others):
            kept.append(box)
    return kept
