"""Inputs at other sizes, made from examples: each tensor is drawn in the kind of the example's values.

At the sizes of an example, seed 0 gives that example itself.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from anyshape.domain import evaluate
from anyshape.inputs.calls import BoundCall, Inputs
from anyshape.inputs.declared import InputLeaf, Sizes
from anyshape.inputs.kinds import ValueKind, recognise
from anyshape.inputs.random_state import seed_of
from anyshape.inputs.value_choices import choices_of


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
