"""One concrete run of the module, as plain data: steps that refer to one another by position.

Everything that differs between two traces at the same sizes is gone here (names, proxies, fake tensors), so that two
traces can be compared step by step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch.utils._pytree import TreeSpec

ANSWER = "answer"
"""The target of the last step of every trace."""


@dataclass(frozen=True)
class Result:
    """What a step gave: the step's position, and which of its several outputs (None: it has one)."""

    step: int
    output: int | None = None


@dataclass(frozen=True)
class Input:
    """An open leaf of the inputs, by its position."""

    position: int


@dataclass(frozen=True, eq=False)
class Weight:
    """A tensor that the module holds: the same object in every trace."""

    name: str
    tensor: torch.Tensor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Weight) and other.tensor is self.tensor

    def __hash__(self) -> int:
        return id(self.tensor)


@dataclass(frozen=True, eq=False)
class Constant:
    """A tensor that the module made from Python values while it ran."""

    tensor: torch.Tensor


@dataclass(frozen=True)
class Tensors:
    """A Python list of tensors whose length may follow from a size: what `stack` and `cat` take."""

    items: tuple[Any, ...]


TENSOR_KINDS = (Result, Input, Weight, Constant)


@dataclass(frozen=True)
class Step:
    """One call of an operator. `leaves` are its arguments, flattened; `spec` puts them back into (args, kwargs).

    `shapes` are those of its outputs, with None for a size that values decide.
    """

    target: Any
    leaves: tuple[Any, ...]
    spec: TreeSpec
    stack: str
    shapes: tuple[tuple[Any, ...] | None, ...] = ()
    dtypes: tuple[torch.dtype | None, ...] = ()

    @cached_property
    def signature(self) -> tuple[Any, ...]:
        """What two steps must share to be one place of a template: operator, line, and kinds of arguments."""
        return self.target, self.stack, str(self.spec), tuple(_kind(leaf) for leaf in self.leaves)


@dataclass(frozen=True)
class Trace:
    """The steps at these sizes; the last one is the answer, whose leaves are the outputs."""

    sizes: Mapping[str, int]
    steps: tuple[Step, ...]
    input_shapes: tuple[tuple[int, ...], ...]
    input_dtypes: tuple[torch.dtype, ...]
    output_paths: tuple[str, ...] = field(default=())

    def shape_of(self, value: Any) -> tuple[int, ...] | None:
        """The shape of a tensor of this trace."""
        if isinstance(value, Result):
            return self.steps[value.step].shapes[value.output or 0]
        if isinstance(value, Input):
            return self.input_shapes[value.position]
        return tuple(value.tensor.shape)

    def dtype_of(self, value: Any) -> torch.dtype | None:
        """The dtype of a tensor of this trace."""
        if isinstance(value, Result):
            return self.steps[value.step].dtypes[value.output or 0]
        if isinstance(value, Input):
            return self.input_dtypes[value.position]
        found: torch.dtype = value.tensor.dtype
        return found


def _kind(leaf: Any) -> Any:
    if isinstance(leaf, Tensors):
        return "tensors"
    if isinstance(leaf, (Result, Input)):
        return "tensor"
    if isinstance(leaf, Weight):
        return "weight", id(leaf.tensor)
    if isinstance(leaf, Constant):
        return "constant", leaf.tensor.ndim, leaf.tensor.dtype
    if isinstance(leaf, (bool, str, type(None))):
        return leaf
    return type(leaf) if isinstance(leaf, (int, float)) else str(leaf)
