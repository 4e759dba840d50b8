"""Whether the module takes all values that the user declares: its answers at both ends of each declared range.

    nn.Embedding(10, 4), "0 <= ids < 20"    it raises at ids = 19, and takes 0 <= ids <= 9

An input gets the number in all elements, in the first alone, or in the last alone: lengths that must fall take their lowest
number at the end only. A number is refused where the module raises for all three and takes another number that is declared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch

from anyshape.domain import Expr, Sizes, evaluate, simplify
from anyshape.domain.bounded_values import name_in_bounds
from anyshape.explore.legal_values import expressions_of
from anyshape.inputs import Declared
from anyshape.inputs.calls import Inputs
from anyshape.inputs.declared import InputLeaf
from anyshape.records.explored import RefusedValue

Answers = Callable[[Inputs], bool]
_MOST_POINTS = 3
_HALVINGS = 40
_DIGITS = 4


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
                if math.isfinite(limit) and self._is_refused(sizes, limit):
                    return self._described(limit, sizes, points)
        return None

    def _is_refused(self, sizes: Sizes, number: float) -> bool:
        return not self._takes(sizes, number) and self._near(sizes) is not None

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
        for _ in range(_HALVINGS):
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
