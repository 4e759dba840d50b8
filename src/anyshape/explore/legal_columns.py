"""Integers whose bounds differ from column to column, as where each column of a table of categories indexes a table of its own.

No bound of the whole input describes them: numbers are drawn within the range that each column has in the example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from anyshape.domain import Number, Sizes
from anyshape.inputs import Declared
from anyshape.inputs.calls import Inputs
from anyshape.inputs.declared import InputLeaf
from anyshape.inputs.kinds import ValueKind, column_by_column
from anyshape.inputs.making import seed_of

_SEEDS = (1, 2)


@dataclass(frozen=True)
class ColumnMaker:
    """Makes inputs as the declaration does, with some inputs, by path, drawn column by column. The example stays as it is."""

    declared: Declared
    kinds: Mapping[str, ValueKind]

    def __call__(self, sizes: Sizes, seed: int = 0, /) -> Inputs:
        declared = self.declared
        made = declared.make(sizes, seed)
        if seed == 0 and all(declared.example_sizes[name] == size for name, size in sizes.items()):
            return made
        flat = zip(declared.leaves, declared.flat(made), strict=True)
        return declared.rebuild([self._drawn(leaf, value, seed) for leaf, value in flat])

    def _drawn(self, leaf: InputLeaf, value: Any, seed: int) -> Any:
        if leaf.path not in self.kinds:
            return value
        generator = torch.Generator().manual_seed(seed_of(seed, leaf.path))
        return self.kinds[leaf.path].draw(tuple(value.shape), generator).to(value)


def draw_by_column(
    declared: Declared, answers: Callable[[Inputs], bool], leaves: Sequence[InputLeaf], points: Sequence[Sizes]
) -> Declared | None:
    """The declaration with these integers drawn column by column; None where the module refuses such at one of the points."""
    values = dict(zip(declared.leaves, declared.flat(declared.example), strict=True))
    tables = [leaf for leaf in leaves if leaf.axes and isinstance(leaf.axes[-1], Number)]
    found = {leaf.path: kind for leaf in tables if (kind := column_by_column([values[leaf]])) is not None}
    drawn = replace(declared, make=ColumnMaker(declared, found))
    if not found or not points or not all(answers(drawn.make(sizes, seed)) for sizes in points for seed in _SEEDS):
        return None
    return drawn
