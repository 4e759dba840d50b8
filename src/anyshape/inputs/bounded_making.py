"""Inputs made from an example, with values moved into their bounds at every size."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from anyshape.inputs.calls import Inputs
from anyshape.inputs.declared import Declared, InputLeaf, Sizes
from anyshape.inputs.random_state import seed_of

Ranges = Callable[[Sizes], Mapping[str, tuple[float, float]]]
Arrange = Callable[[torch.Tensor, int], torch.Tensor]


@dataclass(frozen=True)
class BoundedMaker:
    """Makes inputs as the declaration does, with the values of some inputs, by name, in their ranges.

    Values outside are drawn anew, within; with `arrange`, all integers are, and it puts them in order, given the largest
    that is legal. The example stays as it is.
    """

    declared: Declared
    ranges: Ranges
    arrange: Arrange | None = None

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
        if self.arrange is not None:
            return self.arrange(drawn, int(high))
        return torch.where((value < low) | (value > high), drawn, value)
