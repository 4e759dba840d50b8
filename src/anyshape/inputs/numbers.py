"""A declaration with whole numbers beside its inputs, each given as the length of one more input.

    dims batch, seq, inputs x   ->   dims batch, seq, value_1, inputs x and value_1[value_1]

So a number that a model reads from a tensor is, to whatever captures one way through the model, a size like any other.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import torch

from anyshape.domain import Dim, Domain, Ref
from anyshape.inputs.calls import Inputs, bind_inputs
from anyshape.inputs.declared import Declared, InputLeaf

NUMBER_DTYPE = "bool"
_DRAWS = 12
_STRIDE = 7919

Asked = Callable[[Inputs], Mapping[str, int]]


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
