"""Count the operators of calls at a few sizes, and predict these counts at larger sizes.

few operators     a call at small sizes really runs; another one on tensors without memory
many operators    tensors without memory take a millisecond for each operator: where a call with all other dims at their
                  smallest sizes is quick, it really runs, and the counts grow from the example's in proportion
a call that raises with floating-point inputs would raise on tensors without memory as well, and is not made there

Elements and operators of most models are quadratic in a size at the most. Three counts give the quadratic; the fourth
decides whether it holds. A count on tensors without memory takes as long as a small call for each operator, so a
prediction spares most of the work of an estimate.

A call of many operators takes long to count, so it is counted at smaller sizes: the count that decides may be at 64, and
three counts that are on a line are enough.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from fractions import Fraction
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from anyshape.domain import Sizes
from anyshape.inputs import Declared, Inputs
from anyshape.intercept.operation_counts import Counted, count_call, count_real_call, raises_early
from anyshape.intercept.patching import Patch, patched, uncached_functions
from anyshape.modules.state import ModuleState

if TYPE_CHECKING:
    import torch


_LONG = 48  # operators
_MOST_OPERATORS = 800  # of a call that is counted only to estimate others
_MOST_COUNTED_INPUTS = 4_000_000
_SMALL = 64
_MOST_COUNTED = (
    30_000_000_000  # operations of a call that really runs only to be counted: tensors without memory take as long
)
_MOST_COUNTED_ELEMENTS = 100_000_000
_STILL = 50  # a change of one part in so many is none


class CallCounter:
    """Counts calls of one module. The module's state is put back after each of them."""

    def __init__(self, module: torch.nn.Module, declared: Declared) -> None:
        self._module = module
        self._declared = declared
        self._counted: dict[tuple[tuple[str, int], ...], Counted | None] = {}
        self._unread: frozenset[int] = frozenset()

    @cached_property
    def base(self) -> Counted | None:
        """The counts at the example's sizes; None where they cannot be counted."""
        return self._count(self._declared.example_sizes, 1 << 40, lambda: True)

    @property
    def unread_inputs(self) -> frozenset[int]:
        """The places of inputs that no operator takes at the example's sizes: only their sizes are read, or nothing."""
        return frozenset() if self.base is None else self._unread

    @property
    def is_long(self) -> bool:
        """Whether a call has many operators."""
        return self.base is not None and self.base.operators >= _LONG

    def count_along(self, name: str, size: int, known: Scaling) -> Counted | None:
        """The counts with this dim at this size and the others as in the example; None where they cannot be counted.

        `known` are the counts at other sizes of the dim.
        """
        assert self.base is not None
        sizes = {**self._declared.example_sizes, name: size}
        most = max(_MOST_OPERATORS, 4 * self.base.operators)
        if self.is_long and size > self._declared.example_sizes[name]:
            found = self._count_beside(name, size, known)
            if found is not None:
                return found
        return self._count(sizes, most, lambda: self._is_quickly_run(sizes))

    def refuses_early(self, sizes: Sizes, most_operations: int, per_element: int) -> bool:
        """Whether a call at these sizes raises within so many operations; it is stopped after them."""
        inputs = self._make(sizes)
        return inputs is not None and self.refuses_inputs_early(inputs, most_operations, per_element)

    def refuses_inputs_early(self, inputs: Inputs, most_operations: int, per_element: int) -> bool:
        """The same of a call with these inputs, which the module may write into."""
        with self._put_back():
            return raises_early(lambda: self._declared.call(self._module, inputs), most_operations, per_element)

    def _count_beside(self, name: str, size: int, known: Scaling) -> Counted | None:
        """The same from calls with all other dims at their smallest; None where these are not legal or not quick.

        Beside a part that does not depend on the dim, counts are a product of what the dim and what the others give. So
        a step of the dim changes them in the same proportion, whatever the sizes of the others are.
        """
        assert self.base is not None
        example, (first, lowest) = self._declared.example_sizes[name], known.counted[0]
        below, at_example = self._count_smallest(name, first), self._count_smallest(name, example)
        if first == example or below is None or at_example is None or not _is_quick(at_example, known, size, self.base):
            return None
        found = self._count_smallest(name, size)
        return None if found is None else _in_proportion((lowest, self.base), (below, at_example), found)

    def _count_smallest(self, name: str, size: int) -> Counted | None:
        """The counts with this dim at this size and all others at their smallest."""
        assert self.base is not None
        dims = self._declared.domain.dims
        sizes = {dim.name: -(-max(1, dim.smallest) // dim.multiple) * dim.multiple for dim in dims} | {name: size}
        return self._count(sizes, max(_MOST_OPERATORS, 4 * self.base.operators), lambda: True)

    def _is_quickly_run(self, sizes: Sizes) -> bool:
        """Whether a call at these sizes, which differ from the example's in one dim, may run only to be counted."""
        if self.base is None:
            return False
        ratios = (size / max(1, self._declared.example_sizes[name]) for name, size in sizes.items())
        larger, is_small = max((1.0, *ratios)), max((0, *sizes.values())) <= _SMALL
        grown = larger if is_small else larger**2
        is_light = is_small or self.base.computed * grown <= _MOST_COUNTED_ELEMENTS
        return self.base.multiplied * grown <= _MOST_COUNTED and is_light

    def _count(self, sizes: Sizes, most_operators: int, is_quick: Callable[[], bool]) -> Counted | None:
        """The counts of a call at these sizes, which is made once."""
        key = tuple(sorted(sizes.items()))
        if key not in self._counted:
            self._counted[key] = self._count_once(sizes, most_operators, is_quick)
        return self._counted[key]

    def _count_once(self, sizes: Sizes, most_operators: int, is_quick: Callable[[], bool]) -> Counted | None:
        declared, module = self._declared, self._module
        is_legal = declared.domain.contains(sizes)
        if not is_legal or (declared.elements(sizes) > _MOST_COUNTED_INPUTS and sizes != declared.example_sizes):
            return None
        inputs = self._make(sizes)
        if inputs is None:
            return None
        values = declared.open_values(inputs)
        runs = is_quick()
        with self._put_back(), patched(self._uncached):
            unread = {id(value) for value in values}
            found = count_real_call(lambda: declared.call(module, inputs), most_operators, unread) if runs else None
            if found is not None and sizes == declared.example_sizes:
                self._unread = frozenset(index for index, value in enumerate(values) if id(value) in unread)
            if found is None and (not runs or any(map(_may_be_illegal, values))):
                found = count_call(lambda faked: declared.call(module, declared.rebuild(faked)), values, most_operators)
        return found

    def _make(self, sizes: Sizes) -> Inputs | None:
        try:
            return self._declared.make(sizes, 0)
        except Exception:  # a function of sizes need not answer at every size
            return None

    @cached_property
    def _state(self) -> ModuleState:
        return ModuleState(self._module)

    @cached_property
    def _uncached(self) -> list[Patch]:
        return list(uncached_functions(self._module))

    @contextmanager
    def _put_back(self) -> Iterator[None]:
        """Within this the module is in eval mode and may change; afterwards it is as it was before the first count."""
        state = self._state
        self._module.eval()
        try:
            yield
        finally:
            state.restore()


def _may_be_illegal(value: Any) -> bool:
    """Whether a module may raise because of the values that were drawn, and not because of the sizes: integers, flags."""
    return not getattr(value, "is_floating_point", lambda: False)()


def _is_quick(at_example: Counted, known: Scaling, size: int, base: Counted) -> bool:
    """Whether a call that has the counts `at_example` at the example's size may run at this size only to be counted."""
    multiplied = at_example.multiplied * known.ratio(size, base, "multiplied")
    computed = at_example.computed * known.ratio(size, base, "computed")
    return multiplied <= _MOST_COUNTED and computed <= _MOST_COUNTED_ELEMENTS


def _in_proportion(ends: tuple[Counted, Counted], steps: tuple[Counted, Counted], beyond: Counted) -> Counted | None:
    """Counts at which `ends` arrive by the step by which `steps` arrive at `beyond`; None if only one of both has a step.

    A few operators that only the smallest sizes spare (DETR: 3 of 1421) are no step.
    """
    found = []
    for low, high, start, end, far in zip(*map(astuple, (*ends, *steps, beyond)), strict=True):
        is_still = low == high and abs(end - start) * _STILL <= end
        if not is_still and (start == end or low == high):
            return None
        found.append(high if is_still else high + (far - end) * (high - low) // (end - start))
    return Counted(*(max(0, each) for each in found))


_LARGE_ENOUGH = 256  # the size of the count that decides: beyond it nothing is counted
_LARGE_ENOUGH_IF_LONG = 64
_OFF = Fraction(1, 50)  # relative: sizes that are halved and rounded up are no exact polynomial
_BETWEEN, _FIRST_STEP = 24, 64
_STEP = 4
STEEPEST = 3.0

Count = Literal["operators", "elements", "answered", "multiplied", "computed"]
"""One of the numbers that are counted."""
SizeCounts = Sequence[tuple[int, Counted]]


@dataclass(frozen=True)
class Scaling:
    """Counts at several sizes of one dim, in ascending order."""

    counted: list[tuple[int, Counted]] = field(default_factory=list)

    def ratio(self, size: int, base: Counted, count: Count) -> float:
        """How many times the base's count the count at this size is: a power of the size between two counts and beyond."""
        of = attrgetter(count)
        if len(self.counted) == 1 or size <= self.counted[0][0]:
            return max(of(self.counted[0][1]), 1) / max(of(base), 1)
        after = min(bisect_left(self.counted, size, 1, key=lambda each: each[0]), len(self.counted) - 1)
        (x0, y0), (x1, y1) = (
            (_place(at), math.log(max(of(each), 1))) for at, each in self.counted[after - 1 : after + 1]
        )
        slope = (y1 - y0) / (x1 - x0)
        if size > self.counted[after][0]:  # beyond the last one
            slope = min(max(slope, 0.0), STEEPEST)
        return math.exp(y1 + slope * (_place(size) - x1) - math.log(max(of(base), 1)))


def _place(size: int) -> float:
    """The logarithm of a size; a size of 0 has one of its own, below that of 1."""
    return math.log(max(size, 0.5))


def next_counted_size(counted: SizeCounts, *, is_long: bool = False) -> int:
    """The next size at which a call is counted; `is_long`: it has many operators.

    Such a call is counted between the first sizes and 64 rather than beyond 64, where the first counts are on no line. Where
    the first size has the counts of the second, since no call could be counted there, two near sizes follow.
    """
    last = counted[-1][0]
    if is_long and len(counted) in (2, 3) and counted[0][1] is counted[1][1]:
        return max(_FIRST_STEP, 2 * last if len(counted) == 2 else 3 * last // 2)
    is_gap = len(counted) >= 3 and counted[-2][0] < _BETWEEN and last >= _FIRST_STEP
    return _BETWEEN if is_long and is_gap else max(_FIRST_STEP, _STEP * last)


def predict_counts(counted: SizeCounts, size: int, *, is_long: bool = False) -> Counted | None:
    """The counts at this size; None unless the last of at least four counts is at the quadratic through the three before it.

    `is_long`: the call has many operators; the last of three counts at the line through the two before it is enough.
    """
    if counted[-1][0] < (_LARGE_ENOUGH_IF_LONG if is_long else _LARGE_ENOUGH):
        return None
    if len(counted) >= 4 and _is_on(counted[-4:]):
        return _rounded(_at(counted[-3:], size))
    if is_long and len(counted) >= 3 and _is_on(counted[-3:]):
        return _rounded(_at(counted[-2:], size))
    return None


def _is_on(counted: SizeCounts) -> bool:
    """Whether the last of these counts is at the polynomial through the others."""
    *known, (last, measured) = counted
    expected = zip(_at(known, last), astuple(measured), strict=True)
    return all(abs(one - other) <= _OFF * other for one, other in expected)


def _rounded(numbers: Sequence[Fraction]) -> Counted:
    return Counted(*(max(0, int(each)) for each in numbers))


def _at(known: SizeCounts, size: int) -> list[Fraction]:
    """Each number of the counts on the polynomial through all of them."""
    weights = []
    for place, (at, _) in enumerate(known):
        others = [other for index, (other, _) in enumerate(known) if index != place]
        weight = Fraction(1)
        for other in others:
            weight *= Fraction(size - other, at - other)
        weights.append(weight)
    columns = zip(*(astuple(each) for _, each in known), strict=True)
    return [
        sum((weight * number for weight, number in zip(weights, column, strict=True)), Fraction()) for column in columns
    ]
