"""Inputs at other sizes, made from examples: each tensor is drawn in the kind of the example's values, and within their bounds.

Python's, numpy's and torch's generators are set, on every device that torch has started; afterwards all go on where
they stood, also after an error.

The first is always the one given. A value that is neither a number nor a bool has no others.

At the sizes of an example, seed 0 gives that example itself.
"""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from anyshape.domain import Dim, evaluate
from anyshape.inputs.calls import BoundCall, Inputs
from anyshape.inputs.declared import Declared, InputLeaf, Sizes
from anyshape.inputs.kinds import ValueKind, recognise


@contextmanager
def seeded(*parts: object) -> Iterator[int]:
    """Within this, randomness depends on these parts alone; gives the number that they make."""
    number = seed_of(*parts)
    python, numpy = random.getstate(), np.random.get_state()
    cpu = torch.random.get_rng_state()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None  # type: ignore[no-untyped-call]
    try:
        random.seed(number)
        np.random.seed(number)
        torch.default_generator.manual_seed(number)
        if cuda is not None:
            torch.cuda.manual_seed_all(number)
        yield number
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.random.set_rng_state(cpu)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)


def seed_of(*parts: object) -> int:
    """A number that depends on the parts alone, the same in every process."""
    return zlib.crc32(repr(parts).encode())


_SMALL = (1, 2, 3, 5, 7)


def choices_of(value: Any, dim: Dim | None = None) -> tuple[Any, ...]:
    """The value, then others of its kind; ints stay within the range of the dim, if there is one."""
    if isinstance(value, bool):
        return (value, not value)
    if type(value) is int:
        others = [size for size in (*_SMALL, value + 1) if dim is None or dim.contains(size)]
        return tuple(dict.fromkeys((value, *others)))
    if type(value) is float:
        return tuple(dict.fromkeys((value, -value, 0.0, 2 * value) if value else (0.0, 1.0, -1.0)))
    return (value,)


@dataclass(frozen=True)
class ExampleMaker:
    """Makes inputs of the examples' kinds."""

    leaves: tuple[InputLeaf, ...]
    examples: tuple[tuple[Mapping[str, int], BoundCall], ...]
    kinds: Mapping[str, ValueKind] = field(default_factory=dict)

    def __call__(self, sizes: Sizes, seed: int = 0, /) -> Inputs:
        first = self.examples[0][1]
        for known, bound in self.examples if seed == 0 else ():
            if all(known[name] == sizes[name] for name in known):
                return first.rebuild([_copy(value) for value in bound.values])
        return first.rebuild([self._draw(index, leaf, sizes, seed) for index, leaf in enumerate(self.leaves)])

    def _draw(self, index: int, leaf: InputLeaf, sizes: Sizes, seed: int) -> Any:
        if leaf.kind == "constant":
            return leaf.value
        if leaf.number is not None:
            return evaluate(leaf.number, sizes)
        seen = [bound.values[index] for _, bound in self.examples]
        if leaf.kind == "scalar":
            choices = dict.fromkeys((*seen, *choices_of(seen[0])))
            return random.Random(seed_of(seed, leaf.path)).choice(list(choices)) if seed else seen[0]
        generator = torch.Generator().manual_seed(seed_of(seed, leaf.path))
        drawn = self.kinds[leaf.path].draw(leaf.shape(sizes), generator)
        return drawn.to(dtype=seen[0].dtype, device=seen[0].device)


def make_from(leaves: tuple[InputLeaf, ...], examples: Sequence[tuple[Mapping[str, int], BoundCall]]) -> ExampleMaker:
    """A maker whose kinds are recognised from all examples together."""
    kinds = {
        leaf.path: recognise([bound.values[index] for _, bound in examples])
        for index, leaf in enumerate(leaves)
        if leaf.kind == "tensor"
    }
    return ExampleMaker(leaves, tuple(examples), kinds)


def _copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


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
