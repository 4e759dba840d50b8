"""Inputs made from an example, with values moved into their bounds at every size."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch

from anyshape.inputs.calls import Inputs
from anyshape.inputs.declared import Declared, InputLeaf, Sizes
from anyshape.inputs.random_state import seed_of

Ranges = Callable[[Sizes], Mapping[str, tuple[float, float]]]
Arrange = Callable[[torch.Tensor, int, int], torch.Tensor]


@dataclass(frozen=True)
class BoundedMaker:
    """Makes inputs as the declaration does, with the values of some inputs, by name, in their ranges.

    Values outside are drawn anew, within. Integers of inputs in `arranged`, by name, are all drawn anew and put in the
    order that its function gives them, which also takes the lowest and the highest legal number. The example stays as it is.
    """

    declared: Declared
    ranges: Ranges
    arranged: Mapping[str, Arrange] = field(default_factory=dict)

    def __call__(self, sizes: Sizes, seed: int = 0, /) -> Inputs:
        declared = self.declared
        made = declared.make(sizes, seed)
        if seed == 0 and all(declared.example_sizes[name] == size for name, size in sizes.items()):
            return made
        ranges = self.ranges(sizes)
        flat = zip(declared.leaves, declared.flat(made), strict=True)
        return declared.rebuild(
            [
                self._moved(leaf, value, ranges[leaf.name], seed) if leaf.name in ranges else value
                for leaf, value in flat
            ]
        )

    def _moved(self, leaf: InputLeaf, value: torch.Tensor, legal: tuple[float, float], seed: int) -> torch.Tensor:
        low, high = legal
        if not value.numel() or value.is_complex() or high < low:
            return value
        generator = torch.Generator().manual_seed(seed_of(seed, leaf.path))
        if value.is_floating_point() or value.dtype == torch.bool or math.isinf(low) or math.isinf(high):
            return value.clamp(None if math.isinf(low) else low, None if math.isinf(high) else high)
        drawn = torch.randint(int(low), int(high) + 1, value.shape, generator=generator).to(value)
        if leaf.name in self.arranged:
            return self.arranged[leaf.name](drawn, int(low), int(high))
        return torch.where((value < low) | (value > high), drawn, value)
