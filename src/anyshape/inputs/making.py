"""Inputs at other sizes, made from examples: each tensor is drawn in the kind of the example's values, and within their bounds.

Bounds are the user's: `{"ids": "0 <= ids < 1000", "lengths": "1 <= lengths <= seq"}`; an input whose name is no Python name
(`cache.0`) is called `value` there. At the sizes of an example, seed 0 gives that example itself. A value that is neither a
number nor a bool has no others. The generators of Python, numpy and torch are set on every device that torch has started, and
go on afterwards where they stood, also after an error.
"""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from anyshape.domain import Dim, Domain, Expr, Sizes, dims_of, evaluate
from anyshape.domain.bounded_values import GIVEN, ValueBounds, name_in_bounds, parse_bounds
from anyshape.findings import DeclarationError, Finding, check_choice, nearest
from anyshape.findings.arguments import read_words
from anyshape.inputs.calls import BoundCall, Inputs
from anyshape.inputs.declared import Declared, InputLeaf
from anyshape.inputs.kinds import ValueKind, recognise
from anyshape.modules.kept_tensors import copied

_SMALL = (1, 2, 3, 5, 7)


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
                return first.rebuild([copied(value) for value in bound.values])
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
            inside = value.clamp(None if math.isinf(low) else low, None if math.isinf(high) else high)
            return inside.to(value.dtype)  # torch makes floats of integers that it clamps by floats
        drawn = torch.randint(int(low), int(high) + 1, value.shape, generator=generator).to(value)
        if leaf.name in self.arranged:
            return self.arranged[leaf.name](drawn, int(low), int(high))
        return torch.where((value < low) | (value > high), drawn, value)


def unknown_input_of_values(name: str, inputs: Sequence[str]) -> Finding:
    near = nearest(name, inputs)
    return Finding(
        code="AS311",
        name="value-bounds",
        what=f"values= has bounds for {name!r}, which is no tensor among the inputs.",
        why=f"the tensors are {', '.join(inputs)}." if inputs else "the module takes no tensors.",
        fix=f"did you mean {near!r}?" if near else "use one of these names.",
    )


def no_bounds(name: str, text: str, called: str) -> Finding:
    return Finding(
        code="AS311",
        name="value-bounds",
        what=f"values= has {text!r} for {name!r}, which does not bound its values.",
        why=f"a bound compares {called} with a number or with an expression of the dims: < <= == >= >, joined by and.",
        fix=f'values={{"{name}": "0 <= {called} <= 1"}}',
    )


def unknown_dim_in_bounds(name: str, dim: str, dims: Sequence[str]) -> Finding:
    near = nearest(dim, dims)
    return Finding(
        code="AS311",
        name="value-bounds",
        what=f"the values of {name!r} are bounded by {dim!r}, which is no dim.",
        why=f"the dims are {', '.join(dims)}." if dims else "the declaration has no dims.",
        fix=f"did you mean {near!r}?" if near else "use one of these, or a number.",
    )


def example_outside(name: str, text: str, seen: tuple[float, float]) -> Finding:
    return Finding(
        code="AS312",
        name="example-values",
        what=f"the values of {name!r} are declared as {text}, but the example has others.",
        why=f"its values lie between {seen[0]:.6g} and {seen[1]:.6g}.",
        fix="widen the bounds, or give an example inside of them.",
    )


def declare_values(declared: Declared, values: Mapping[str, str] | str | None) -> Declared:
    """The declaration with the bounds of its inputs' values. Raises DeclarationError on bounds that admit every value."""
    if values is None:
        return declared
    if isinstance(values, str):
        check_choice("values", values, (GIVEN,))
        return replace(declared, value_texts={leaf.name: GIVEN for leaf in declared.tensor_leaves})
    given = read_words("values", values, "values={'ids': '0 <= ids < 1000'}")
    found = {
        leaf.name: (leaf, _parse(leaf, text, declared.domain))
        for leaf, text in ((_leaf_called(name, declared), text) for name, text in given.items())
    }
    for leaf, bounds in found.values():
        _check_example(leaf, bounds, declared)

    def ranges(sizes: Sizes) -> dict[str, tuple[float, float]]:
        return {name: bounds.range_at(sizes, leaf.dtype) for name, (leaf, bounds) in found.items()}

    texts = {name: bounds.text for name, (_, bounds) in found.items()}
    return replace(declared, make=BoundedMaker(declared, ranges), value_texts=texts, value_ranges=ranges)


def promised_values(declared: Declared, promised: Mapping[str, str]) -> Declared:
    """The declaration with the values that a file's contract has, where the user declares none."""
    names = {leaf.name for leaf in declared.tensor_leaves}
    known = {name: text for name, text in promised.items() if name in names}
    if declared.value_texts or not known:
        return declared
    return declare_values(declared, GIVEN if GIVEN in known.values() else known)


def _leaf_called(name: str, declared: Declared) -> InputLeaf:
    for leaf in declared.tensor_leaves:
        if name in (leaf.name, leaf.path):
            return leaf
    raise DeclarationError(unknown_input_of_values(name, [leaf.name for leaf in declared.tensor_leaves]))


def _parse(leaf: InputLeaf, text: Any, domain: Domain) -> ValueBounds:
    name = name_in_bounds(leaf.name)
    try:
        parsed = parse_bounds(str(text), (name, leaf.path))
    except (SyntaxError, ValueError, DeclarationError) as error:
        raise DeclarationError(no_bounds(leaf.name, str(text), name)) from error
    for bound in parsed.bounds:
        unknown = [
            dim for dim in (dims_of(bound.limit) if isinstance(bound.limit, Expr) else ()) if dim not in domain.names
        ]
        if unknown:
            raise DeclarationError(unknown_dim_in_bounds(leaf.name, unknown[0], domain.names))
    return parsed


def _check_example(leaf: InputLeaf, bounds: ValueBounds, declared: Declared) -> None:
    values = dict(zip(declared.open_leaves, declared.open_values(declared.example), strict=True))
    low, high = bounds.range_at(declared.example_sizes, leaf.dtype)
    tensor = values[leaf]
    if tensor.numel() and not tensor.is_complex() and (float(tensor.min()) < low or float(tensor.max()) > high):
        raise DeclarationError(example_outside(leaf.name, bounds.text, (float(tensor.min()), float(tensor.max()))))
