"""A declaration with further inputs beside the user's: whole numbers, each the length of an input, and the model's state.

    dims batch, seq, inputs x   ->   dims batch, seq, value_1, inputs x and value_1[value_1]

So a number that a model reads from a tensor is, to whatever captures one way through the model, a size like any other.

    inputs x, state ema[8]   ->   inputs x and state.ema[8]

An axis of a state is a number, a dim of the inputs, or a dim of its own (`cache_k_1`), where the state grows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from anyshape.domain import Dim, Domain, Expr, Ref, Sizes, evaluate
from anyshape.inputs.calls import Inputs, bind_inputs
from anyshape.inputs.declared import Declared, InputLeaf
from anyshape.inputs.making import seed_of
from anyshape.modules.slots import Slot

NUMBER_DTYPE = "bool"
_DRAWS = 12
_STRIDE = 7919

Asked = Callable[[Inputs], Mapping[str, int]]
_NAMES = ("state", "kept_state", "model_state")


def with_numbers(
    declared: Declared, numbers: Mapping[str, int], asked: Asked | None = None, *, not_zero: Collection[str] = ()
) -> Declared:
    """The declaration with an input for each number; `numbers` has the value of each in the example. Outputs lose their
    names, since what is declared so is a part of the user's module and not the module itself. Those in `not_zero` are 1
    or more.

    With `asked`, which says what numbers a model asks of some inputs, inputs are drawn anew until they ask for the given
    ones, as far as a few draws do: an index that is made from the same values then stays within its bounds.
    """
    signature = _with_keywords(declared.signature, tuple(numbers))
    example = _with_lengths(declared.example, numbers)
    own = Domain(tuple(Dim(name, min=int(name in not_zero)) for name in numbers))
    leaves = tuple(InputLeaf(name, name, "tensor", NUMBER_DTYPE, (Ref(name),)) for name in numbers)
    domain = declared.domain

    def make(sizes: Mapping[str, int], seed: int = 0, /) -> Inputs:
        own, wanted = ({name: sizes[name] for name in names} for names in (domain.names, numbers))
        inputs = declared.make(own, seed)
        for turn in range(1, _DRAWS if asked is not None else 1):
            if asked is None or asked(inputs) == wanted:
                break
            inputs = declared.make(own, seed + turn * _STRIDE)
        return _with_lengths(inputs, wanted)

    bound = bind_inputs(signature, example)
    by_path = {leaf.path: leaf for leaf in (*declared.leaves, *leaves)}
    return replace(
        declared,
        domain=replace(domain, dims=(*domain.dims, *own.dims)),
        leaves=tuple(by_path[path] for path in bound.paths),
        example=example,
        example_sizes={**declared.example_sizes, **numbers},
        make=make,
        signature=signature,
        bound=bound,
        output_axes={},
        output_names=None,
    )


def _with_keywords(signature: inspect.Signature, names: tuple[str, ...]) -> inspect.Signature:
    parameters = list(signature.parameters.values())
    rest = [parameter for parameter in parameters if parameter.kind is inspect.Parameter.VAR_KEYWORD]
    own = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    return signature.replace(parameters=[*(p for p in parameters if p not in rest), *own, *rest])


def _with_lengths(inputs: Inputs, numbers: Mapping[str, int]) -> Inputs:
    given = {name: torch.zeros(number, dtype=torch.bool) for name, number in numbers.items()}
    return Inputs(inputs.args, {**inputs.kwargs, **given})


@dataclass(frozen=True, eq=False)
class StateInput:
    """One value of the model's state: its slot, its axes, its value before the first call, and values seen later.

    `initial` has size 1 at an axis that follows a dim of the inputs, and is expanded there. `own` are dims that only the
    state has.
    """

    name: str
    slot: Slot
    axes: tuple[Expr, ...]
    initial: torch.Tensor
    seen: tuple[torch.Tensor, ...]
    own: tuple[Dim, ...] = ()

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        return tuple(evaluate(axis, sizes) for axis in self.axes)

    def sizes_needed(self, sizes: Sizes) -> tuple[tuple[bool, int], ...]:
        """For each axis whether it is a dim of the state's own, and else its size beside inputs of these sizes."""
        own = [dim.name for dim in self.own]
        is_own = [isinstance(axis, Ref) and axis.name in own for axis in self.axes]
        return tuple((free, 0 if free else evaluate(axis, sizes)) for free, axis in zip(is_own, self.axes, strict=True))

    def first(self, sizes: Sizes) -> torch.Tensor:
        """The value before the first call, at these sizes of the inputs; an axis of its own has its first size."""
        needed = self.sizes_needed(sizes)
        shape = [size if own else wanted for size, (own, wanted) in zip(self.initial.shape, needed, strict=True)]
        return self.initial.expand(shape).clone()

    def draw(self, sizes: Sizes, seed: int) -> torch.Tensor:
        """A value at these sizes: for even seeds the first one, if it has that shape; else one made of what was seen."""
        shape = self.shape(sizes)
        if seed % 2 == 0 and self.first(sizes).shape == shape:
            return self.first(sizes)
        generator = torch.Generator().manual_seed(seed_of(seed, self.name))
        pool = torch.cat([value.reshape(-1) for value in (self.initial, *self.seen)])
        if pool.numel() == 0:
            pool = torch.zeros(1, dtype=self.initial.dtype)
        drawn = pool[torch.randint(0, pool.numel(), shape, generator=generator)]
        if not drawn.is_floating_point():
            return drawn
        return drawn * (0.5 + torch.rand(shape, generator=generator)).to(drawn.dtype)


def state_parameter(declared: Declared) -> str:
    """The name of the argument that holds the state: `state`, unless forward has a parameter of that name."""
    return next(name for name in _NAMES if name not in declared.signature.parameters)


def with_state(declared: Declared, states: Sequence[StateInput]) -> Declared:
    """The declaration with one input for each state."""
    parameter = state_parameter(declared)
    dims = tuple({dim.name: dim for state in states for dim in state.own}.values())
    names = declared.domain.names

    def make(sizes: Sizes, seed: int = 0, /) -> Inputs:
        inputs = declared.make({name: sizes[name] for name in names}, seed)
        return Inputs(
            inputs.args, {**inputs.kwargs, parameter: {state.name: state.draw(sizes, seed) for state in states}}
        )

    example_sizes = {**declared.example_sizes, **{dim.name: dim.min + 4 for dim in dims}}
    example = make(example_sizes, 0)
    signature = _with_parameter(declared.signature, parameter)
    bound = bind_inputs(signature, example)
    own = [_leaf(f"{parameter}.{state.name}", state) for state in states]
    by_path = {leaf.path: leaf for leaf in (*declared.leaves, *own)}
    return replace(
        declared,
        domain=replace(declared.domain, dims=(*declared.domain.dims, *dims)),
        leaves=tuple(by_path[path] for path in bound.paths),
        example=example,
        example_sizes=example_sizes,
        make=make,
        signature=signature,
        bound=bound,
    )


def _leaf(path: str, state: StateInput) -> InputLeaf:
    return InputLeaf(path, path, "tensor", str(state.initial.dtype).removeprefix("torch."), state.axes)


def _with_parameter(signature: inspect.Signature, name: str) -> inspect.Signature:
    parameters = list(signature.parameters.values())
    rest = [each for each in parameters if each.kind is inspect.Parameter.VAR_KEYWORD]
    own = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
    return signature.replace(parameters=[*(each for each in parameters if each not in rest), own, *rest])
