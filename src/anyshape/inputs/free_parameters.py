"""Parameters of a function of sizes that no axis follows: values, sizes that a rule determines, or an error by name.

    inputs(batch=3, vocab=100): randint(0, vocab, (batch,))    vocab decides values        ->  a ValueParameter
    where=["w == h"], where=["batch == 1"]                     a rule determines w, batch  ->  its rules hold for the others
    inputs(batch=3, seq=5): randn(batch, 5)                    seq changes nothing         ->  AS068

A rule that bounds sizes through a value (`past + seq <= 16`, and no axis follows past) is refused, since the file sees no
`past`; one that allows some value at all sizes of the domain (`length <= seq`) bounds no size, and decides the values made.
"""

from __future__ import annotations

import dis
import inspect
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType
from typing import Any

import torch

from anyshape.domain import (
    Condition,
    Dim,
    Domain,
    Expr,
    Number,
    Ref,
    Sizes,
    decide,
    dims_of,
    evaluate,
    format_condition,
    holds,
    is_about,
    smallest_point,
    substitute,
)
from anyshape.findings import DeclarationError, Finding, Source
from anyshape.inputs.axis_messages import UnusedParameter, rule_through_value, unfit_axis, unused_parameter
from anyshape.inputs.calls import BoundCall
from anyshape.inputs.declared import ValueParameter
from anyshape.inputs.making import choices_of, seeded
from anyshape.inputs.probe_sizes import find_ties
from anyshape.inputs.probing import Key, changed_floats, check_alike, measure
from anyshape.inputs.sizes_function import Parameter, SizesFunction
from anyshape.modules.user_code import codes_of, make_source

_MOST_TRIED = 256  # combinations of values that are tried for one that every size allows


@dataclass(frozen=True)
class Settled:
    """What the free parameters are.

    `follows` has those that a rule of the domain determines, as expressions of the sizes. `rules` are relations of the sizes
    alone, `about_values` those that mention values; `legal` has values at which these hold at all sizes of the domain.
    """

    values: tuple[ValueParameter, ...]
    loose: frozenset[int]
    follows: Mapping[str, Expr]
    rules: tuple[Condition, ...]
    about_values: tuple[Condition, ...]
    legal: Mapping[str, Expr]

    def allow(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the rules about values hold, those that mention no other argument."""
        numbers = {name: value for name, value in arguments.items() if type(value) is int}
        return all(holds(rule, numbers) for rule in self.about_values if is_about(rule, numbers))

    def at_defaults(self, sizes: Sizes) -> dict[str, Any]:
        """Every free parameter by name: values at their defaults, as far as the rules allow that."""
        chosen: dict[str, Any] = {value.name: value.default for value in self.values}
        follows = {name: evaluate(expr, sizes) for name, expr in self.follows.items()}
        if not self.allow({**sizes, **chosen}):
            chosen.update((name, evaluate(expr, sizes)) for name, expr in self.legal.items())
        return {**chosen, **follows}


@dataclass(frozen=True)
class Probed:
    """A function of sizes after probing: its domain, the example's sizes, and the expression of each axis and int."""

    function: SizesFunction
    domain: Domain
    example: Mapping[str, int]
    found: Mapping[Key, Expr]

    @property
    def sizes(self) -> tuple[str, ...]:
        """The parameters that axes and ints follow."""
        return tuple(dict.fromkeys(name for expr in self.found.values() for name in dims_of(expr)))

    @property
    def free(self) -> list[Parameter]:
        return [parameter for parameter in self.function.parameters if parameter.name not in self.sizes]


def settle(probed: Probed) -> tuple[Settled, BoundCall]:
    """What each free parameter is, and the inputs at the example. Raises DeclarationError for one that decides nothing."""
    determined = _determined(probed.domain, [parameter.name for parameter in probed.free])
    caller = _Caller(probed)
    values: list[ValueParameter] = []
    loose: set[int] = set()
    follows: dict[str, Expr] = {}
    for parameter in probed.free:
        is_determined = parameter.may_be_size and parameter.name in determined
        effect = caller.find_effect(parameter, is_determined)
        if is_determined:
            follows[parameter.name] = determined[parameter.name]
            is_used = effect.changes_values or effect.other_axes is not None or effect.error is not None
        else:
            values.append(ValueParameter(parameter.name, tuple(effect.kept)))
            loose |= effect.loose
            is_used = effect.changes_values or not parameter.may_be_size
            if effect.other_axes is not None and parameter.may_be_size:
                raise DeclarationError(caller.unfit(parameter.name, *effect.other_axes))
        if not is_used:
            raise DeclarationError(_unused(probed, parameter, effect, caller))
    return _split_rules(probed.domain, values, follows, loose), caller.bound


def _determined(domain: Domain, free: Sequence[str]) -> dict[str, Expr]:
    """The free dims that have one size only, or that an equality of the domain gives in terms of others."""
    numbers: dict[str, Expr] = {
        dim.name: Number(dim.smallest) for dim in domain.dims if dim.smallest == dim.max and dim.name in free
    }
    follows = {name: substitute(expr, numbers) for name, expr in find_ties(domain, free).follows.items()}
    return {**follows, **numbers}


@dataclass
class _Effect:
    """What other values of one parameter change."""

    kept: list[Any]
    tried: list[Any] = field(default_factory=list)
    loose: set[int] = field(default_factory=set)
    changes_values: bool = False
    other_axes: tuple[Any, Mapping[Key, int]] | None = None
    error: DeclarationError | None = None


class _Caller:
    """The function at the example's sizes, called with other values of one parameter."""

    def __init__(self, probed: Probed) -> None:
        self.probed = probed
        parameters = probed.function.parameters
        self.defaults = {p.name: probed.example[p.name] if p.may_be_size else p.default for p in parameters}
        self.bound = self.call({})
        self.unstable = _changed(self.bound, self.call({}))  # from random numbers that no seed of ours reaches

    def call(self, values: Mapping[str, Any]) -> BoundCall:
        with seeded("values"):
            return self.probed.function.call({**self.defaults, **values})

    def find_effect(self, parameter: Parameter, is_determined: bool) -> _Effect:
        """The choices under which the inputs are built alike, and what these change."""
        default = self.defaults[parameter.name]
        effect = _Effect([default])
        # A determined dim moves with others only: whether an axis follows it shows outside of the domain.
        inside = parameter.may_be_size and not is_determined
        dim = self.probed.domain.dim(parameter.name) if inside else None
        for choice in choices_of(default, dim)[1:]:
            effect.tried.append(choice)
            try:
                self._try(parameter.name, choice, effect, inside)
            except DeclarationError as error:
                effect.error = effect.error or error
        return effect

    def _try(self, name: str, choice: Any, effect: _Effect, inside: bool) -> None:
        bound = self.call({name: choice})
        check_alike(self.bound, bound, f"at {name} = {choice}")
        floats = changed_floats(self.bound, bound)
        if (measured := measure(bound)) != measure(self.bound):
            if not inside or self.probed.domain.contains({**self.probed.example, name: choice}):
                effect.other_axes = effect.other_axes or (choice, measured)
            return
        effect.changes_values |= bool(_changed(self.bound, bound) - self.unstable)
        effect.kept.append(choice)
        effect.loose |= floats

    def unfit(self, name: str, choice: Any, measured: Mapping[Key, int]) -> Finding:
        """The finding for an axis that follows this parameter by no expression."""
        usual = measure(self.bound)
        leaf, axis = key = next(key for key in usual if measured[key] != usual[key])
        rows = [({name: self.defaults[name]}, usual[key]), ({name: choice}, measured[key])]
        return unfit_axis(self.bound.paths[leaf], "value" if axis is None else axis, rows)


def _changed(first: BoundCall, second: BoundCall) -> set[int]:
    """The leaves whose values differ."""
    pairs = enumerate(zip(first.values, second.values, strict=False))
    return {index for index, (one, other) in pairs if not _is_same(one, other)}


def _is_same(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return bool(one == other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    flat = [each.detach().to_dense().reshape(-1).contiguous() for each in (one, other)]
    return torch.equal(*(each.view(torch.uint8) for each in flat))  # by their bits: NaN is equal to itself then


def _split_rules(
    domain: Domain, values: Sequence[ValueParameter], follows: Mapping[str, Expr], loose: set[int]
) -> Settled:
    """The domain's conditions by what they are about; those on determined dims hold for what determines them."""
    called = [value.name for value in values if value.name in domain.names]
    shown = [name for name in domain.names if name not in called and name not in follows]
    ranges = [condition for name in follows for condition in domain.dim(name).conditions()]
    relations = [relation for relation in domain.relations if not any(name in follows for name in dims_of(relation))]
    moved = [substitute(rule, follows) for rule in (*domain.relations, *ranges) if rule not in relations]
    sizes = Domain(tuple(domain.dim(name) for name in shown), tuple(r for r in relations if is_about(r, shown)))
    for rule in moved:
        if dims_of(rule) and is_about(rule, shown) and not decide(sizes, rule).proved:
            sizes = sizes.with_relations(rule)
    about_values = tuple(rule for rule in (*relations, *moved) if any(name in called for name in dims_of(rule)))
    return Settled(
        values=tuple(values),
        loose=frozenset(loose),
        follows=follows,
        rules=sizes.relations,
        about_values=about_values,
        legal=_find_legal(domain, sizes, values, about_values) if about_values else {},
    )


def _find_legal(
    domain: Domain, sizes: Domain, values: Sequence[ValueParameter], rules: Sequence[Condition]
) -> dict[str, Expr]:
    """A value for each parameter, so that the rules hold at all sizes. Raises DeclarationError where there is none."""
    named = [value for value in values if any(value.name in dims_of(rule) for rule in rules)]
    dims = [domain.dim(value.name) for value in named]
    ranged = Domain(tuple(dim if dim.declared else Dim(dim.name, 0) for dim in dims))
    alone = [rule for rule in rules if is_about(rule, ranged.names)]
    smallest = smallest_point(ranged, *alone) or {}
    least = [[Number(smallest[value.name])] if smallest else [] for value in named]
    others = [[Number(value.default), *map(Ref, sizes.names)] for value in named]
    bounds = [condition for dim in dims if dim.declared for condition in dim.conditions()]
    choices = itertools.product(*(first + rest for first, rest in zip(least, others, strict=True)))
    for chosen in itertools.islice(choices, _MOST_TRIED):
        legal = {value.name: expr for value, expr in zip(named, chosen, strict=True)}
        if all(_always_holds(sizes, substitute(rule, legal)) for rule in (*bounds, *rules)):
            return legal
    mixed = next((rule for rule in rules if rule not in alone), rules[0])
    raise DeclarationError(rule_through_value(format_condition(mixed), ranged.names, sizes.names))


def _always_holds(domain: Domain, rule: Condition) -> bool:
    return decide(domain, rule).proved if dims_of(rule) else holds(rule, {})


def _unused(probed: Probed, parameter: Parameter, effect: _Effect, caller: _Caller) -> Finding:
    """The finding for a parameter that decides nothing, with the axis that happens to have its size."""
    size = caller.defaults[parameter.name]
    alike = [key for key, expr in probed.found.items() if key[1] is not None and expr == Number(size)]
    paths = caller.bound.paths
    use = UnusedParameter(
        parameter.name,
        size,
        [(paths[leaf], axis) for leaf, axis in alike if axis is not None],
        tried=effect.tried,
        unstable=[paths[index] for index in sorted(caller.unstable)],
        refusal=effect.error.finding.why if effect.error is not None else "",
    )
    rules = [format_condition(rule) for rule in probed.domain.conditions() if parameter.name in dims_of(rule)]
    is_written = probed.domain.dim(parameter.name).declared or len(rules) > 1
    return unused_parameter(use, rules if is_written else [], _line_of(probed.function, size if alike else None))


def _line_of(function: SizesFunction, number: int | None) -> Source | None:
    """The line of the user's function that has this number, else its first line."""
    target = function.function
    while isinstance(target, partial):
        target = target.func
    target = inspect.unwrap(target) if callable(target) else target
    target = getattr(target, "__func__", target)
    if not isinstance(target, FunctionType):
        target = getattr(type(target).__call__, "__func__", type(target).__call__)
    if not isinstance(target, FunctionType):
        return None
    for code in codes_of(target):
        for instruction in dis.get_instructions(code):
            found = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
            line = instruction.positions.lineno if instruction.positions else None
            if number is not None and line and instruction.opname.startswith("LOAD_") and has_number(found, number):
                return make_source(code.co_filename, line, code.co_qualname)
    return make_source(target.__code__.co_filename, target.__code__.co_firstlineno, target.__code__.co_qualname)


def has_number(values: Sequence[Any], number: int) -> bool:
    """Whether this int is among the values: True and 1.0 are equal to 1, and are none."""
    return any(type(value) is int and value == number for value in values)
