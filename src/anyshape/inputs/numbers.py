"""A declaration with whole numbers beside its inputs, each given as the length of one more input.

    dims batch, seq, inputs x   ->   dims batch, seq, value_1, inputs x and value_1[value_1]

So a number that a model computes and then asks for is, to everything downstream, a size like any other.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace

import torch

from anyshape.domain import Dim, Domain, Ref
from anyshape.inputs.calls import Inputs, bind_inputs
from anyshape.inputs.declared import Declared, InputLeaf

NUMBER_DTYPE = "bool"


def with_numbers(declared: Declared, numbers: Mapping[str, int]) -> Declared:
    """The declaration with an input for each number; `numbers` has the value of each in the example. Outputs lose their
    names, since what is declared so is a part of the user's module and not the module itself."""
    signature = _with_keywords(declared.signature, tuple(numbers))
    example = _with_lengths(declared.example, numbers)
    own = Domain(tuple(Dim(name, min=0) for name in numbers))
    leaves = tuple(InputLeaf(name, name, "tensor", NUMBER_DTYPE, (Ref(name),)) for name in numbers)
    domain = declared.domain

    def make(sizes: Mapping[str, int], seed: int = 0, /) -> Inputs:
        inputs = declared.make({name: sizes[name] for name in domain.names}, seed)
        return _with_lengths(inputs, {name: sizes[name] for name in numbers})

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
