"""Names, words, domain and checks -> Declared: the steps that all ways of declaring share.

The domain is canonical here: dims in the order in which the inputs show them, whichever way they were declared.

An entry of `names` for an input counts as one of `dynamic`; any other entry renames a dim whose name was made up.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import torch

from anyshape.domain import (
    Compare,
    Condition,
    Dim,
    Domain,
    Expr,
    Number,
    Op,
    Ref,
    decide,
    declare_domain,
    describe_dim,
    dims_of,
    format_condition,
    holds,
    unknown_dim,
)
from anyshape.findings import DeclarationError, Finding, UsageError
from anyshape.findings.arguments import read_list, read_words, wrong_argument
from anyshape.inputs.axis_messages import outside_domain, range_without_axis
from anyshape.inputs.call_messages import duplicate_name, too_many_names, unknown_input
from anyshape.inputs.calls import BoundCall
from anyshape.inputs.declared import Declared, InputLeaf, Make, ValueParameter, Way
from anyshape.inputs.forms import Forms, read_forms
from anyshape.inputs.words import call_place, find_place

Rule = str | Condition
AUTO = "auto"


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the user gave beside the inputs."""

    dynamic: Any = None
    where: tuple[Rule, ...] = ()
    input_names: Sequence[str] | Mapping[str, str] | None = None
    names: Mapping[str, str] | None = None
    output_names: tuple[str, ...] | None = None
    example_sizes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a way of declaring found out."""

    source: Way
    signature: inspect.Signature
    bound: BoundCall
    leaves: tuple[InputLeaf, ...]
    dims: tuple[Dim, ...]
    rules: tuple[Rule, ...]
    example_sizes: Mapping[str, int]
    values: tuple[ValueParameter, ...] = ()
    output_axes: Mapping[str, Mapping[int, Expr]] = field(default_factory=dict)
    notes: tuple[Finding, ...] = ()
    unnamed: frozenset[str] = frozenset()


def rules_in(where: Any) -> tuple[str | Condition, ...]:
    """The rules of a list of them. Raises UsageError for what is none."""
    return tuple(read_list("where", where, (str, Condition), "where=['1 <= batch <= 64']"))


def names_in(name: str, given: Any) -> Any:
    """Names as they were given: in the order of the values, or by path. Raises UsageError for what are none."""
    example = f"{name}=['x']"
    if given is None:
        return None
    names = read_words(name, given, example) if isinstance(given, Mapping) else read_list(name, given, (str,), example)
    for each in names.values() if isinstance(names, dict) else names:
        if not each or not each.isprintable():
            raise UsageError(
                wrong_argument(f"a name in {name}", each, "a file has names of printable characters.", example)
            )
    return names


def assemble(parts: Parts, options: Options, maker: Callable[[tuple[InputLeaf, ...]], Make]) -> Declared:
    """The record. Raises DeclarationError where names collide or the example lies outside its own domain."""
    leaves = name_leaves(parts.leaves, options.input_names)
    _check_names(leaves, options.output_names)
    domain = canonical_domain(leaves, parts.dims, parts.rules)
    sizes = {name: parts.example_sizes[name] for name in domain.names}
    domain = _with_zeros(domain, sizes)
    check_inside(domain, sizes)
    make = maker(leaves)
    return Declared(
        domain=domain,
        leaves=leaves,
        example=make(sizes, 0) if parts.source == "function" else parts.bound.rebuild(parts.bound.values),
        example_sizes=sizes,
        make=make,
        source=parts.source,
        signature=parts.signature,
        bound=parts.bound,
        values=parts.values,
        output_axes=parts.output_axes,
        output_names=options.output_names,
        notes=parts.notes,
        unnamed=parts.unnamed,
    )


def _with_zeros(domain: Domain, sizes: Mapping[str, int]) -> Domain:
    """The domain with 0 in the ranges of dims that have no declared one, and that are 0 in the example."""
    empty = [dim for dim in domain.dims if sizes[dim.name] == 0 and not dim.declared]
    for dim in empty:
        domain = domain.with_dim(replace(dim, min=0))
    return domain


def canonical_domain(leaves: Sequence[InputLeaf], dims: Sequence[Dim], rules: Sequence[Rule]) -> Domain:
    """The domain of the dims that the leaves show, under the rules; no axis is ever shorter than 0."""
    shown = [axis for leaf in leaves for axis in (*leaf.axes, *([leaf.number] if leaf.number is not None else []))]
    order = dict.fromkeys(name for axis in shown for name in dims_of(axis))
    known = {dim.name: dim for dim in dims}
    ranges_of(dims, order)
    domain = declare_domain([known.get(name, Dim(name)) for name in order], rules)
    for axis in dict.fromkeys(axis for leaf in leaves for axis in leaf.axes):
        exists = Compare(">=", axis, Number(0))
        if _may_be_negative(axis) and not decide(domain, exists).proved:
            domain = domain.narrowed(exists)
    return domain


def ranges_of(dims: Iterable[Dim], names: Collection[str]) -> tuple[Condition, ...]:
    """The written ranges of these dims as rules. Raises DeclarationError (AS068) for a dim that is none of the names."""
    for dim in dims:
        if dim.declared and dim.name not in names:
            raise DeclarationError(range_without_axis(describe_dim(dim), dim.name, list(names)))
    return tuple(condition for dim in dims if dim.declared for condition in dim.conditions())


def _may_be_negative(expr: Expr) -> bool:
    if isinstance(expr, Number):
        return expr.value < 0
    if isinstance(expr, Ref):
        return False
    return isinstance(expr, Op) and (expr.symbol == "-" or any(_may_be_negative(arg) for arg in expr.args))


def check_inside(domain: Domain, sizes: Mapping[str, int]) -> None:
    """Raise DeclarationError (AS025) unless the domain has the example's sizes, and name the rule that it breaks."""
    for rule in domain.conditions():
        if holds(rule, sizes):
            continue
        about = {name: sizes[name] for name in dims_of(rule)}
        raise DeclarationError(outside_domain(about, format_condition(rule)))


def name_leaves(
    leaves: tuple[InputLeaf, ...], names: Sequence[str] | Mapping[str, str] | None
) -> tuple[InputLeaf, ...]:
    """The leaves under the names that the user gave: a list names the first open leaves, a mapping names by path."""
    if names is None:
        return leaves
    if isinstance(names, Mapping):
        paths = [leaf.path for leaf in leaves]
        for path in names:
            if path not in paths:
                raise DeclarationError(unknown_input(path, paths))
        return tuple(replace(leaf, name=names.get(leaf.path, leaf.name)) for leaf in leaves)
    open_paths = [leaf.path for leaf in leaves if leaf.kind != "constant"]
    if len(names) > len(open_paths):
        raise DeclarationError(too_many_names(names, open_paths))
    by_path = dict(zip(open_paths, names, strict=False))
    return tuple(replace(leaf, name=by_path.get(leaf.path, leaf.name)) for leaf in leaves)


def _check_names(leaves: Sequence[InputLeaf], output_names: Sequence[str] | None) -> None:
    owners: dict[str, str] = {}
    named = [(leaf.name, f"input {leaf.path!r}") for leaf in leaves if leaf.kind != "constant"]
    named += [(name, f"output {index}") for index, name in enumerate(output_names or ())]
    for name, owner in named:
        if name in owners:
            raise DeclarationError(duplicate_name(name, owners[name], owner))
        owners[name] = owner


@dataclass(frozen=True)
class Written:
    """The axes as declared, and new names for names that were made up."""

    forms: Forms
    renames: Mapping[str, str]


def read_written(options: Options, bound: BoundCall) -> Written:
    """Everything that mentions axes, in one form."""
    root = call_place(bound)
    names = options.names or {}
    words = {key: text for key, text in names.items() if find_place(root, key, {}) is not None}
    renames = {key: text for key, text in names.items() if key not in words}
    dynamic = None if is_auto(options) else options.dynamic
    forms = read_forms(_merged(dynamic, words), bound, _aliases(options, bound), options.output_names)
    return Written(forms, renames)


def is_auto(options: Options) -> bool:
    """Whether the user leaves it to us which axes vary."""
    return isinstance(options.dynamic, str) and options.dynamic == AUTO


def _merged(dynamic: Any, words: Mapping[str, str]) -> Any:
    if not words:
        return dynamic
    return {**words, **dynamic} if isinstance(dynamic, Mapping) else words


def _aliases(options: Options, bound: BoundCall) -> dict[str, str]:
    """Names given to inputs -> their paths, so that a declaration can use either."""
    if isinstance(options.input_names, Mapping):
        return {name: path for path, name in options.input_names.items()}
    names = options.input_names or ()
    tensors = [path for path, value in bound.leaves if isinstance(value, torch.Tensor)]
    numbers = [path for path, value in bound.leaves if isinstance(value, torch.Tensor) or type(value) in (int, float)]
    return dict(zip(names, tensors if len(names) <= len(tensors) else numbers, strict=False))


def check_output_dims(outputs: Mapping[str, Mapping[int, Expr]], dims: Sequence[str]) -> None:
    """Raise DeclarationError on a slip of the pen; any other new name is a size that the model computes."""
    for output, axes in outputs.items():
        for name in (name for expr in axes.values() for name in dims_of(expr)):
            if name not in dims and get_close_matches(name, dims, n=1, cutoff=0.8):
                what = f"output {output!r} uses dim {name!r}, which no input has."
                raise DeclarationError(replace(unknown_dim(name, list(dims)), what=what))
