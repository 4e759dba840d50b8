"""Inputs: which axis of which nested input is which expression of the dims, and inputs made at any sizes.

This file: `declare`: a declaration of inputs, in any of its forms -> one record; and its first form, a function of sizes.

A callable is a function of sizes, a list is several examples, everything else is one example.

A parameter that no axis follows is a value: it keeps its default under seed 0 and varies under the others, so that
verification sees more than one value of it.

Files, in the order in which data flows:

    structure       nested values without their leaves, caches of transformers among them
    tree            nested inputs and outputs -> a flat list of leaves with paths
    calls           inputs bound to the parameters of forward
    words           `batch past+seq 64` -> axes; what a user's key means in a call
    torch_forms     dynamic_axes, dynamic_shapes, Dim, caches by layer
    forms           every form of declaring axes -> {path: {axis: expression}}
    assemble        dynamic, names and domain, read and checked -> Declared: the last step of all ways
    sizes_function  a function of sizes: its parameters and their ranges
    probe_sizes     the sizes at which that function is called
    probing         observed sizes of every axis at those sizes
    free_parameters parameters that no axis follows: values, sizes that a rule determines, or an error
    fit             observed sizes -> the expression of an axis
    fit_one         an integer function of one size, from its values
    by_examples     second and third way: an example with words, or several examples
    from_examples   which axes vary together in several examples
    by_trying       call the module at other sizes; an expression for each axis that can vary
    axis_moves      which axes can change, and which only together
    kinds           which kind of values an example has
    making          inputs at other sizes, drawn in that kind
    declared        the record Declared, which everything downstream reads
    added_inputs    a declaration with further inputs: lengths, the model's state
    axis_messages   findings about axes and sizes
    call_messages   findings about calls and names
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from anyshape.domain import (
    Condition,
    Expr,
    Number,
    Sizes,
    declare_domain,
    dims_of,
    simplify,
)
from anyshape.findings import DeclarationError
from anyshape.findings.arguments import read_words
from anyshape.inputs.added_inputs import StateInput, state_parameter, with_state
from anyshape.inputs.assemble import (
    Options,
    Parts,
    assemble,
    check_output_dims,
    is_auto,
    names_in,
    ranges_of,
    read_written,
    rules_in,
)
from anyshape.inputs.axis_messages import unreadable_form, unreadable_whole, words_disagree
from anyshape.inputs.by_examples import declare_by_examples
from anyshape.inputs.by_trying import explain_bad_inputs, find_made_integers, is_bad_value
from anyshape.inputs.call_messages import no_examples, unknown_input
from anyshape.inputs.calls import BoundCall, Inputs, read_signature
from anyshape.inputs.declared import Declared, InputLeaf, ValueParameter, check_values, dtype_of
from anyshape.inputs.forms import Forms
from anyshape.inputs.free_parameters import Probed as ProbedFunction
from anyshape.inputs.free_parameters import Settled, settle
from anyshape.inputs.making import declare_values, seeded
from anyshape.inputs.probe_sizes import choose_example
from anyshape.inputs.probing import Probed, probe
from anyshape.inputs.sizes_function import DimRange, SizesFunction, dim, read_function, size_parameters
from anyshape.inputs.torch_forms import additional_examples
from anyshape.inputs.tree import flatten, flatten_outputs
from anyshape.inputs.words import Open

__all__ = [
    "BoundCall",
    "Declared",
    "DimRange",
    "InputLeaf",
    "Inputs",
    "StateInput",
    "ValueParameter",
    "declare",
    "dim",
    "explain_bad_inputs",
    "find_made_integers",
    "flatten",
    "flatten_outputs",
    "is_bad_value",
    "state_parameter",
    "with_state",
]
_SAYS_ITSELF = "a function of sizes says by itself which axes vary."


def declare(
    module: Callable[..., Any],
    inputs: Any,
    *,
    dynamic: Any = None,
    where: Sequence[str | Condition] | str = (),
    input_names: Sequence[str] | Mapping[str, str] | None = None,
    names: Mapping[str, str] | None = None,
    output_names: Sequence[str] | None = None,
    example_sizes: Mapping[str, Any] | None = None,
    values: Mapping[str, str] | str | None = None,
) -> Declared:
    """The declaration of a module's inputs. Raises DeclarationError, which names the input and the axis."""
    further = additional_examples(dynamic)
    if further and not is_sizes_function(inputs):
        inputs, dynamic = [*(inputs if isinstance(inputs, list) else [inputs]), *further], None
    options = Options(
        dynamic=dynamic,
        where=(where,) if isinstance(where, (str, Condition)) else rules_in(where),
        input_names=names_in("input_names", input_names),
        names=None if names is None else read_words("names", names, "names={'x': 'input'}"),
        output_names=None if output_names is None else tuple(names_in("output_names", output_names) or ()),
        example_sizes=dict(example_sizes or {}),
    )
    signature = read_signature(module)
    if dynamic is not None and makes_one_example(inputs):
        inputs = declare_by_function(signature, inputs, replace(options, dynamic=None, where=(), names=None)).example
    if is_sizes_function(inputs):
        return declare_values(declare_by_function(signature, inputs, options), values)
    examples = inputs if isinstance(inputs, list) else [inputs]
    if not examples:
        raise DeclarationError(no_examples())
    return declare_values(declare_by_examples(module, signature, examples, options), values)


def makes_one_example(inputs: Any) -> bool:
    """Whether the inputs are a function without parameters: with words for the axes of what it returns, that is an example."""
    try:
        return is_sizes_function(inputs) and not inspect.signature(inputs).parameters
    except (TypeError, ValueError):  # a callable that shows no signature
        return False


def is_sizes_function(inputs: Any) -> bool:
    """Whether the inputs are a function of sizes rather than inputs themselves."""
    return callable(inputs) and not isinstance(inputs, (Inputs, torch.Tensor, torch.nn.Module))


def declare_by_function(signature: inspect.Signature, function: Callable[..., Any], options: Options) -> Declared:
    """Dims, axes and values of a function of sizes."""
    read = read_function(function, signature, options.example_sizes)
    may_be_sizes = size_parameters(read.parameters)
    rules = [*options.where, *(rule for parameter in may_be_sizes for rule in parameter.rules)]
    domain = declare_domain([parameter.dim for parameter in may_be_sizes], rules)
    others = {p.name: p.default for p in read.parameters if not p.may_be_size}
    example = choose_example(domain, {p.name: p.default for p in may_be_sizes if p.given})
    probed = probe(read, domain, others, example)
    settled, bound = settle(ProbedFunction(read, domain, example, probed.found))
    leaves = _leaves(probed, bound, settled.loose)
    written = _agreed(leaves, bound, options)
    names = [name for name in domain.names if any(name in dims_of(expr) for expr in probed.found.values())]
    check_output_dims(written.outputs, names)
    parts = Parts(
        source="function",
        signature=signature,
        bound=bound,
        leaves=leaves,
        dims=tuple(domain.dim(name) for name in names),
        rules=(*settled.rules, *ranges_of(written.dims.values(), names)),
        example_sizes=example,
        values=settled.values,
        output_axes=written.outputs,
    )
    return assemble(parts, options, lambda named: FunctionMaker(read, named, settled))


def _agreed(leaves: Sequence[InputLeaf], bound: BoundCall, options: Options) -> Forms:
    """What the user wrote about axes; what was written about inputs must be what the function makes."""
    if is_auto(options):
        raise DeclarationError(unreadable_whole(options.dynamic, _SAYS_ITSELF))
    written = read_written(options, bound)
    forms = written.forms
    for name in written.renames:
        raise DeclarationError(unknown_input(name, bound.paths, options.output_names or ()))
    for path in forms.numbers:
        why = "a function of sizes makes a number an input by giving back one of its parameters."
        raise DeclarationError(unreadable_form(path, "value", why))
    for leaf in leaves:
        for axis, word in forms.axes.get(leaf.path, {}).items():
            found = leaf.axes[axis]
            agrees = not isinstance(found, Number) if isinstance(word, Open) else True
            if isinstance(word, Expr):
                agrees = simplify(word) == found
            if not agrees:
                raise DeclarationError(
                    words_disagree(leaf.path, axis, str(word) if isinstance(word, Expr) else "open", str(found))
                )
    return forms


@dataclass(frozen=True)
class FunctionMaker:
    """Makes inputs by calling the user's function, and checks that they are what was declared."""

    function: SizesFunction
    leaves: tuple[InputLeaf, ...]
    free: Settled

    def __call__(self, sizes: Sizes, seed: int = 0, /) -> Inputs:
        chosen, defaults = self._choose(sizes, seed), self.free.at_defaults(sizes)
        try:
            return self._make(sizes, seed, chosen)
        except DeclarationError:
            if chosen == defaults:
                raise
            return self._make(sizes, seed, defaults)  # the value was our idea, and the function has no inputs for it

    def _choose(self, sizes: Sizes, seed: int) -> dict[str, Any]:
        chosen = self.free.at_defaults(sizes)
        chooser = random.Random(seed)
        for value in self.free.values if seed else ():
            allowed = [each for each in value.choices if self.free.allow({**sizes, **chosen, value.name: each})]
            chosen[value.name] = chooser.choice(allowed) if allowed else chosen[value.name]
        return chosen

    def _make(self, sizes: Sizes, seed: int, values: Mapping[str, Any]) -> Inputs:
        with seeded("make", seed, sorted(sizes.items())):
            names = {parameter.name for parameter in self.function.parameters}
            bound = self.function.call({**{n: size for n, size in sizes.items() if n in names}, **values})
        check_values(self.leaves, bound.values, sizes)
        return bound.rebuild(bound.values)


def _leaves(probed: Probed, bound: BoundCall, loose: Collection[int]) -> tuple[InputLeaf, ...]:
    leaves: list[InputLeaf] = []
    for index, (path, value) in enumerate(bound.leaves):
        number = probed.found.get((index, None))
        if isinstance(value, torch.Tensor):
            axes = tuple(probed.found[index, axis] for axis in range(value.ndim))
            leaves.append(InputLeaf(path, path, "tensor", dtype_of(value), axes))
        elif number is not None and not isinstance(number, Number):
            leaves.append(InputLeaf(path, path, "scalar", "int64", value=number))
        elif index in loose or index in probed.floats:
            leaves.append(InputLeaf(path, path, "scalar", "float32", value=value))
        else:
            leaves.append(InputLeaf(path, path, "constant", dtype_of(value), value=value))
    return tuple(leaves)
