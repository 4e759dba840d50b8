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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from anyshape.domain import (
    Condition,
    Domain,
    Expr,
    Number,
    Sizes,
    declare_domain,
    dims_of,
    holds,
    is_about,
    parse_condition,
    simplify,
)
from anyshape.findings import DeclarationError
from anyshape.inputs.added_inputs import StateInput, state_parameter, with_state
from anyshape.inputs.assemble import Options, Parts, Rule, assemble, check_output_dims, is_auto, read_written
from anyshape.inputs.axis_messages import unreadable_form, unreadable_whole, words_disagree
from anyshape.inputs.by_examples import declare_by_examples
from anyshape.inputs.by_trying import explain_bad_inputs, find_made_integers, is_bad_value
from anyshape.inputs.call_messages import no_examples
from anyshape.inputs.calls import BoundCall, Inputs, read_signature
from anyshape.inputs.declared import Declared, InputLeaf, ValueParameter, check_values, dtype_of
from anyshape.inputs.making import choices_of, declare_values, seeded
from anyshape.inputs.probe_sizes import choose_example
from anyshape.inputs.probing import Probed, changed_floats, check_alike, measure, probe
from anyshape.inputs.sizes_function import DimRange, Parameter, SizesFunction, dim, read_function, size_parameters
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
        where=(where,) if isinstance(where, (str, Condition)) else tuple(where),
        input_names=input_names,
        names=names,
        output_names=None if output_names is None else tuple(output_names),
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
    sizes = list(dict.fromkeys(name for expr in probed.found.values() for name in dims_of(expr)))
    free = [parameter for parameter in read.parameters if parameter.name not in sizes]
    defaults = {p.name: example[p.name] if p.may_be_size else p.default for p in free}
    at_example = _Caller(read, {name: example[name] for name in sizes}, defaults)
    values, loose = at_example.find_values(free, domain)
    leaves = _leaves(probed, at_example.bound, loose)
    about_values, about_sizes = _split(rules, [parameter.name for parameter in free])
    outputs = _agreed_outputs(leaves, at_example.bound, options)
    check_output_dims(outputs, sizes)
    parts = Parts(
        source="function",
        signature=signature,
        bound=at_example.bound,
        leaves=leaves,
        dims=tuple(parameter.dim for parameter in may_be_sizes if parameter.name in sizes),
        rules=tuple(about_sizes),
        example_sizes=example,
        values=values,
        output_axes=outputs,
    )
    return assemble(parts, options, lambda named: FunctionMaker(read, named, values, tuple(about_values)))


def _agreed_outputs(
    leaves: Sequence[InputLeaf], bound: BoundCall, options: Options
) -> Mapping[str, Mapping[int, Expr]]:
    """What the user wrote about outputs; what was written about inputs must be what the function makes."""
    if is_auto(options):
        raise DeclarationError(unreadable_whole(options.dynamic, _SAYS_ITSELF))
    forms = read_written(options, bound).forms
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
    return forms.outputs


def _split(rules: Sequence[Rule], values: Sequence[str]) -> tuple[list[Condition], list[Rule]]:
    """Rules that mention values, and rules that mention sizes alone."""
    read = [(rule, parse_condition(rule) if isinstance(rule, str) else rule) for rule in rules]
    about_values = [condition for _, condition in read if any(name in values for name in dims_of(condition))]
    return about_values, [rule for rule, condition in read if condition not in about_values]


@dataclass(frozen=True)
class FunctionMaker:
    """Makes inputs by calling the user's function, and checks that they are what was declared."""

    function: SizesFunction
    leaves: tuple[InputLeaf, ...]
    values: tuple[ValueParameter, ...]
    rules: tuple[Condition, ...]

    def __call__(self, sizes: Sizes, seed: int = 0, /) -> Inputs:
        chosen = self._choose(sizes, seed)
        defaults = {value.name: value.default for value in self.values}
        try:
            return self._make(sizes, seed, chosen)
        except DeclarationError:
            if chosen == defaults:
                raise
            return self._make(sizes, seed, defaults)  # the value was our idea, and the function has no inputs for it

    def _choose(self, sizes: Sizes, seed: int) -> dict[str, Any]:
        chosen = {value.name: value.default for value in self.values}
        chooser = random.Random(seed)
        for value in self.values if seed else ():
            allowed = [choice for choice in value.choices if self._allows({**sizes, **chosen, value.name: choice})]
            chosen[value.name] = chooser.choice(allowed) if allowed else value.default
        return chosen

    def _allows(self, arguments: Mapping[str, Any]) -> bool:
        numbers = {name: value for name, value in arguments.items() if type(value) is int}
        return all(holds(rule, numbers) for rule in self.rules if is_about(rule, numbers))

    def _make(self, sizes: Sizes, seed: int, values: Mapping[str, Any]) -> Inputs:
        with seeded("make", seed, sorted(sizes.items())):
            names = {parameter.name for parameter in self.function.parameters}
            bound = self.function.call({**{n: size for n, size in sizes.items() if n in names}, **values})
        check_values(self.leaves, bound.values, sizes)
        return bound.rebuild(bound.values)


class _Caller:
    """The function at the example's sizes, tried at other values of the parameters that are no sizes."""

    def __init__(self, function: SizesFunction, sizes: Mapping[str, int], defaults: Mapping[str, Any]) -> None:
        self.function, self.sizes, self.defaults = function, sizes, defaults
        self.bound = self.call(defaults)

    def call(self, values: Mapping[str, Any]) -> BoundCall:
        with seeded("values"):
            return self.function.call({**self.sizes, **values})

    def find_values(self, free: Sequence[Parameter], domain: Domain) -> tuple[tuple[ValueParameter, ...], set[int]]:
        """Each value with the choices under which the inputs are built alike, and the leaves that follow a value."""
        found: list[ValueParameter] = []
        loose: set[int] = set()
        for parameter in free:
            kept = [self.defaults[parameter.name]]
            for choice in choices_of(kept[0], domain.dim(parameter.name) if parameter.may_be_size else None)[1:]:
                changed = self._changed_leaves({**self.defaults, parameter.name: choice})
                if changed is not None:
                    kept.append(choice)
                    loose |= changed
            found.append(ValueParameter(parameter.name, tuple(kept)))
        return tuple(found), loose

    def _changed_leaves(self, values: Mapping[str, Any]) -> set[int] | None:
        """The Python floats that this choice changes; None if it changes what the inputs are."""
        try:
            bound = self.call(values)
            check_alike(self.bound, bound, "")
            changed = changed_floats(self.bound, bound)
        except DeclarationError:
            return None
        return changed if measure(bound) == measure(self.bound) else None


def _leaves(probed: Probed, bound: BoundCall, loose: set[int]) -> tuple[InputLeaf, ...]:
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
