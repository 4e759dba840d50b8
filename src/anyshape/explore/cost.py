"""How much a call at some sizes costs, in elements: what the module makes on the way, measured where it may be much."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from anyshape.inputs import Declared
from anyshape.modules.caches import uncached
from anyshape.modules.cost import count_elements
from anyshape.modules.state import kept

if TYPE_CHECKING:
    import torch

Sizes = Mapping[str, int]

CHEAP = 2_000_000  # elements: what most points may cost, so that thirty of them take a moment
AFFORDABLE = 30_000_000  # and what a few may: some hundred megabytes, some tenths of a second
_SURELY_FEW = 1_000_000
_SURELY_SHORT = 256


def costing(module: torch.nn.Module, declared: Declared) -> Callable[[Sizes], int]:
    """How many elements a call at some sizes makes: its inputs' where that is surely little, else measured."""

    @cache
    def measure(point: tuple[tuple[str, int], ...]) -> int:
        sizes = dict(point)
        values = declared.open_values(declared.make(sizes, 0))
        with kept(module), uncached(module):
            found = count_elements(lambda faked: declared.call(module, declared.rebuild(faked)), values, AFFORDABLE)
        # Where nothing can be measured, the worst that is common: every element meets every position.
        return declared.elements(sizes) * max(sizes.values()) if found is None else found

    def cost(sizes: Sizes) -> int:
        elements = declared.elements(sizes)
        if elements > AFFORDABLE or (elements <= _SURELY_FEW and max(sizes.values(), default=0) <= _SURELY_SHORT):
            return elements
        return measure(tuple(sizes.items()))

    return cost
