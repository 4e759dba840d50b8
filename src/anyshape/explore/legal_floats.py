"""Which floating-point values the module takes: bounds, learned where it raises for values; declared ones, tried at both ends.

    if (x > 2.5).any(): raise ...        x <= 2.5

At some of the refused sizes all elements of an input get one number, and the largest and the smallest number that the module
takes are searched by bisection. They are bounds if they are the same at all of these sizes.

    nn.Embedding(10, 4), "0 <= ids < 20"    it raises at ids = 19, and takes 0 <= ids <= 9

Of a declared range both ends are tried: in all elements, in the first alone, or in the last alone (lengths that must fall
take their lowest number at the end only). A number is refused where the module raises for all three and takes another one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, floor, inf

import torch

from anyshape.domain import Expr, Sizes, evaluate, simplify
from anyshape.domain.bounded_values import name_in_bounds
from anyshape.explore.legal_values import LegalValues, expressions_of
from anyshape.findings import DeclarationError
from anyshape.inputs import Declared
from anyshape.inputs.calls import Inputs
from anyshape.inputs.declared import InputLeaf
from anyshape.inputs.making import BoundedMaker, declare_values
from anyshape.records.explored import RefusedValue

Answers = Callable[[Inputs], bool]

_CALMER = (0.3, 0.1, 0.03, 0.01, 0.0)
_FARTHEST = 1e4
_MOST_POINTS = 3
_HALVINGS = 60
_SEEDS = (0, 1, 2)
_EXACT = 1e-6
_FEWER_HALVINGS = 40
_DIGITS = 4


@dataclass(frozen=True)
class _Calm:
    """Sizes at which the module refused, and inputs nearer to zero which it takes there."""

    sizes: Sizes
    inputs: Inputs


def find_calm(declared: Declared, answers: Answers, refused: Sequence[Sizes]) -> list[_Calm]:
    """Some of the refused sizes at which the module answers to the same values scaled down: no size is at fault there."""
    leaves = _float_leaves(declared)
    found = []
    for sizes in refused[:_MOST_POINTS] if leaves else ():
        made = declared.make(sizes, 0)
        calmer = (_changed(declared, made, leaves, partial(torch.mul, other=scale)) for scale in _CALMER)
        inputs = next(filter(answers, calmer), None)
        if inputs is not None:
            found.append(_Calm(sizes, inputs))
    return found


def learn_floats(declared: Declared, answers: Answers, calm: Sequence[_Calm]) -> LegalValues | None:
    """Bounds of the floating-point inputs; None where one number in all elements shows none."""
    if declared.only_given_values or not calm:
        return None
    found = {leaf: bounds for leaf in _float_leaves(declared) if (bounds := _bounds(declared, answers, calm, leaf))}
    if not found:
        return None
    ranges = {leaf.name: bounds for leaf, bounds in found.items()}
    texts = {leaf.name: _text(leaf, *bounds) for leaf, bounds in found.items()}
    drawn = replace(declared, make=BoundedMaker(declared, lambda _: ranges))
    if not all(answers(drawn.make(each.sizes, seed)) for each in calm for seed in _SEEDS):
        return None
    try:
        return LegalValues(declare_values(drawn, {**declared.value_texts, **texts}), texts, "")
    except DeclarationError:  # the example is not within: the bounds are not what they seem
        return None


def _bounds(declared: Declared, answers: Answers, calm: Sequence[_Calm], leaf: InputLeaf) -> tuple[float, float] | None:
    """The smallest and the largest number that this input may have; None where it has no end, or not one for all sizes."""
    ends = []
    for far in (-_FARTHEST, _FARTHEST):
        seen = [_end(declared, answers, each, leaf, far) for each in calm]
        if None in seen or len(set(seen)) > 1:
            return None
        ends.append(seen[0])
    low, high = ends
    if low is None or high is None or (low == -inf and high == inf):
        return None
    return low, high


def _end(declared: Declared, answers: Answers, calm: _Calm, leaf: InputLeaf, far: float) -> float | None:
    """The farthest number towards this end that the module takes, infinite where it takes all; None if it takes none."""

    def takes(number: float) -> bool:
        return answers(_changed(declared, calm.inputs, [leaf], lambda value: torch.full_like(value, number)))

    if takes(far):
        return inf if far > 0 else -inf
    near = next((number for number in (0.0, 0.5, 0.01) if takes(number)), None)
    if near is None:
        return None
    outside = far
    for _ in range(_HALVINGS):
        middle = (near + outside) / 2
        near, outside = (middle, outside) if takes(middle) else (near, middle)
    inside = (floor(near / _EXACT) if far > 0 else ceil(near / _EXACT)) * _EXACT
    return next((number for number in _short(near) if abs(number - near) < _EXACT and takes(number)), inside)


def _short(number: float) -> Iterator[float]:
    """The number with more and more decimals, rounded towards zero and away from it."""
    for decimals in range(6):
        scale = 10.0**decimals
        yield floor(number * scale) / scale
        yield (floor(number * scale) + 1) / scale


def _changed(
    declared: Declared, inputs: Inputs, leaves: Sequence[InputLeaf], change: Callable[[torch.Tensor], torch.Tensor]
) -> Inputs:
    flat = zip(declared.leaves, declared.flat(inputs), strict=True)
    return declared.rebuild([change(value) if leaf in leaves else value for leaf, value in flat])


def _float_leaves(declared: Declared) -> list[InputLeaf]:
    return [
        leaf
        for leaf in declared.tensor_leaves
        if leaf.dtype.startswith(("float", "bfloat")) and leaf.name not in declared.value_texts
    ]


def _text(leaf: InputLeaf, low: float, high: float) -> str:
    name = name_in_bounds(leaf.name)
    if low == -inf:
        return f"{name} <= {high:g}"
    return f"{low:g} <= {name}" if high == inf else f"{low:g} <= {name} <= {high:g}"


def find_refused_values(declared: Declared, answers: Answers, points: Sequence[Sizes]) -> tuple[RefusedValue, ...]:
    """The first refused end of each input whose values are declared. The module answers at the points."""
    leaves = [leaf for leaf in declared.tensor_leaves if _is_number(leaf) and leaf.name in declared.value_texts]
    found = (_InputTrials(declared, answers, leaf).find(points[:_MOST_POINTS]) for leaf in leaves)
    return tuple(each for each in found if each is not None) if not declared.only_given_values else ()


class _InputTrials:
    """Calls with one number in all elements, or in one element, of an input."""

    def __init__(self, declared: Declared, answers: Answers, leaf: InputLeaf) -> None:
        self._declared = declared
        self._answers = answers
        self._leaf = leaf
        self._is_whole = not leaf.dtype.startswith(("float", "bfloat"))

    def find(self, points: Sequence[Sizes]) -> RefusedValue | None:
        for end in (1, 0):
            for sizes in points:
                limit = self._declared.value_ranges(sizes)[self._leaf.name][end]
                if math.isfinite(limit) and not self._takes(sizes, limit) and self._near(sizes) is not None:
                    return self._described(limit, sizes, points)
        return None

    def _described(self, number: float, sizes: Sizes, points: Sequence[Sizes]) -> RefusedValue:
        name = self._leaf.name
        inputs = next(self._changed(sizes, number))
        return RefusedValue(
            name, self._declared.value_texts[name], number, dict(sizes), inputs, self._taken(sizes, points)
        )

    def _taken(self, sizes: Sizes, points: Sequence[Sizes]) -> str:
        """The bounds that the module keeps, `0 <= ids <= 9`; "" where none describe all points."""
        low, high = (math.isfinite(end) for end in self._declared.value_ranges(sizes)[self._leaf.name])
        name = name_in_bounds(self._leaf.name)
        lowest, highest = (self._rule(points, end) for end in (0, 1))
        if (low and not lowest) or (high and not highest):
            return ""
        return " <= ".join([*([lowest] if low else []), name, *([highest] if high else [])])

    def _rule(self, points: Sequence[Sizes], end: int) -> str:
        """One number or expression of the dims that is this end at all of the points; "" where there is none."""
        found = [(sizes, self._end(sizes, end)) for sizes in points]
        ends = [(sizes, number) for sizes, number in found if number is not None]
        values = {number for _, number in ends}
        if len(values) == 1:
            return f"{min(values):g}"
        if not self._is_whole or not ends:
            return ""
        exprs: Iterator[Expr] = expressions_of(self._declared.domain.names, int(ends[0][1]))
        fitting = (expr for expr in exprs if all(evaluate(expr, sizes) == number for sizes, number in ends))
        found_expr = next(fitting, None)
        return "" if found_expr is None else str(simplify(found_expr))

    def _end(self, sizes: Sizes, end: int) -> float | None:
        """The last number towards this end of the declared range that the module takes at these sizes."""
        near, far = self._near(sizes), self._declared.value_ranges(sizes)[self._leaf.name][end]
        return self._last_taken(sizes, near, far) if near is not None and math.isfinite(far) else None

    def _last_taken(self, sizes: Sizes, near: float, far: float) -> float:
        if self._takes(sizes, far):
            return far
        for _ in range(_FEWER_HALVINGS):
            middle = float(int((near + far) / 2)) if self._is_whole else (near + far) / 2
            if middle in (near, far):
                break
            near, far = (middle, far) if self._takes(sizes, middle) else (near, middle)
        return near if self._is_whole else self._rounded(near, far)

    def _rounded(self, near: float, far: float) -> float:
        """With few digits, on the side of `near`."""
        scaled = near * 10**_DIGITS
        return float((math.floor(scaled) if far > near else math.ceil(scaled)) / 10**_DIGITS)

    def _near(self, sizes: Sizes) -> float | None:
        """A number of the inputs that the module also takes in other elements."""
        made = self._elements(sizes)
        low, high = self._declared.value_ranges(sizes)[self._leaf.name]
        shown = sorted({float(value) for value in made.reshape(-1).tolist() if low <= value <= high})
        return next((number for number in (*shown[:2], *shown[-1:]) if self._takes(sizes, number)), None)

    def _takes(self, sizes: Sizes, number: float) -> bool:
        return any(self._answers(inputs) for inputs in self._changed(sizes, number))

    def _elements(self, sizes: Sizes) -> torch.Tensor:
        declared = self._declared
        tensor: torch.Tensor = declared.flat(declared.make(sizes, 0))[declared.leaves.index(self._leaf)]
        return tensor

    def _changed(self, sizes: Sizes, number: float) -> Iterator[Inputs]:
        declared, place = self._declared, self._declared.leaves.index(self._leaf)
        flat = declared.flat(declared.make(sizes, 0))
        tensor = flat[place]
        filled = torch.full_like(tensor, int(number) if self._is_whole else number)
        yield declared.rebuild([*flat[:place], filled, *flat[place + 1 :]])
        for element in (0, -1) if tensor.numel() > 1 else ():
            changed = tensor.clone().reshape(-1)
            changed[element] = filled.reshape(-1)[element]
            yield declared.rebuild([*flat[:place], changed.reshape(tensor.shape), *flat[place + 1 :]])


def _is_number(leaf: InputLeaf) -> bool:
    return leaf.dtype.startswith(("int", "uint", "float", "bfloat"))
