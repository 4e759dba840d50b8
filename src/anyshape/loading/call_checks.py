"""Whether a call keeps the contract, checked before any runtime sees it.

Every rule is asked in an order in which the first answer is the most helpful one: names, then each input by itself,
then the dims that inputs share, then the rules on dims, then values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import anyshape.loading.broken_calls as say
from anyshape.domain import Compare, Condition, Domain, Number, Ref, Undefined, dims_of, evaluate, holds
from anyshape.domain.bounded_values import ValueBounds
from anyshape.domain.dims import Point
from anyshape.findings import ContractBroken, Finding
from anyshape.graphs import Place, Reading, places_of, readings_of
from anyshape.records.contract import Contract, Rule, TensorPromise

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class CallChecker:
    """A contract with all that can be worked out before the first call."""

    contract: Contract
    places: tuple[Place, ...]
    readings: tuple[Reading, ...]
    _inputs: Mapping[str, TensorPromise] = field(repr=False)
    dims: Mapping[Place, tuple[str, ...]] = field(repr=False)
    values: Mapping[str, ValueBounds] = field(repr=False)

    @staticmethod
    def of(contract: Contract) -> CallChecker:
        """The checker of a contract; solves for the dims once."""
        places = places_of(contract.input_axes, contract.input_numbers)
        inputs = {tensor.name: tensor for tensor in contract.inputs}
        dims = {place: dims_of(place.expr) for place in places}
        return CallChecker(contract, places, readings_of(contract.domain, places), inputs, dims, contract.value_bounds)

    def check(self, feeds: Mapping[str, Array], torch_inputs: Collection[str] = ()) -> Point:
        """The size of each dim that the call determines. Raises ContractBroken if the call breaks a rule.

        `torch_inputs` are those that the user gave as torch tensors, for the words of a fix.
        """
        self._check_names(feeds)
        for name, tensor in self._inputs.items():
            _check_tensor(tensor, feeds[name], is_torch=name in torch_inputs)
        call = self._call(feeds)
        call.check_places()
        call.check_dims()
        call.check_relations()
        call.check_undetermined()
        for name, bounds in self.values.items():
            _check_values(self._inputs[name], feeds[name], bounds, call.sizes)
        return call.sizes

    def bindings(self, feeds: Mapping[str, Array]) -> dict[str, str]:
        """`batch = 3 from 'x' axis 0`, for every dim that the call determines."""
        return self._call(feeds).bindings()

    def _call(self, feeds: Mapping[str, Array]) -> _Call:
        return _Call(self, {place.key: _size_at(place, feeds[place.input]) for place in self.places})

    def _check_names(self, feeds: Mapping[str, Array]) -> None:
        for name in feeds:
            if name not in self._inputs:
                raise ContractBroken(say.unknown_input(name, self.contract.inputs))
        missing = [tensor for tensor in self.contract.inputs if tensor.name not in feeds]
        if missing:
            raise ContractBroken(say.missing_input(missing, self.contract.inputs))


def _size_at(place: Place, array: Array) -> int:
    return int(array) if place.is_value else array.shape[place.axis]


def _check_tensor(tensor: TensorPromise, array: Array, is_torch: bool) -> None:
    dtype = spoken_dtype(array.dtype)
    if dtype != tensor.dtype:
        raise ContractBroken(say.wrong_dtype(tensor, dtype, is_torch))
    if len(array.shape) != len(tensor.axes):
        raise ContractBroken(say.wrong_rank(tensor, array.shape))
    for axis, expected in enumerate(tensor.axes):
        if isinstance(expected, Number) and array.shape[axis] != expected.value:
            raise ContractBroken(say.wrong_fixed_size(tensor, axis, array.shape))


def _check_values(tensor: TensorPromise, array: Array, bounds: ValueBounds, sizes: Point) -> None:
    known = array[~np.isnan(array)] if array.dtype.kind == "f" else array
    if not known.size:
        return
    low, high = bounds.range_at(sizes, tensor.dtype)
    least, most = float(known.min()), float(known.max())
    if least < low or most > high:
        raise ContractBroken(say.value_outside(tensor, bounds.text, least if least < low else most, sizes))


def spoken_dtype(dtype: np.dtype[Any]) -> str:
    """`float32`; `string` for texts; numpy's own `>f4` for bytes in an order that onnxruntime would misread."""
    if dtype.kind in "OUST":
        return "string"
    return dtype.name if dtype.isnative else dtype.str


class _Call:
    """The axes of one call, and the sizes that were read from them."""

    def __init__(self, checker: CallChecker, axes: Mapping[str, int]) -> None:
        self.contract = checker.contract
        self.dims = checker.dims
        self.axes = axes
        self.readings: dict[str, Reading] = {}
        self.sizes: Point = {}
        for reading in checker.readings:
            try:
                size = evaluate(reading.value, axes)
            except Undefined:
                continue  # n*m with n = 0 says nothing about m
            self.readings[reading.dim], self.sizes[reading.dim] = reading, size

    def bindings(self) -> dict[str, str]:
        """`batch = 3 from 'x' axis 0`, for every dim that is known."""
        return {
            name: f"{name} = {self.sizes[name]} from {' and '.join(map(str, reading.places))}"
            for name, reading in self.readings.items()
        }

    def check_places(self) -> None:
        for place, dims in self.dims.items():
            if any(name not in self.sizes for name in dims):
                continue
            expected, actual = self._value(place), self.axes[place.key]
            if expected != actual:
                raise ContractBroken(self._disagreement(place, actual, expected))

    def _disagreement(self, place: Place, actual: int, expected: int | None) -> Finding:
        sources = {name: self.readings[name] for name in self.dims[place]}
        solved = [name for name, reading in sources.items() if place in reading.places]
        if solved:  # solved from this very axis, with a rest: no whole numbers fit
            axes = {axis: self.axes[axis.key] for name in solved for axis in sources[name].places}
            known = {name: text for name, text in self.bindings().items() if name not in solved}
            return say.no_such_sizes(solved, axes.items(), known)
        reading = sources[place.expr.name] if isinstance(place.expr, Ref) else None
        if reading is not None and reading.is_direct and expected is not None:
            return say.dim_differs(place, actual, reading.places[0], expected, self.bindings())
        return say.wrong_axis(place, actual, expected, self.bindings())

    def _value(self, place: Place) -> int | None:
        try:
            return evaluate(place.expr, self.sizes)
        except Undefined:
            return None

    def check_dims(self) -> None:
        for dim in self.contract.domain.dims:
            size = self.sizes.get(dim.name)
            if size is None or dim.contains(size):
                continue
            is_outside = size < dim.min or (dim.max is not None and size > dim.max)
            message = say.out_of_range if is_outside else say.not_a_multiple
            rule = self._broken_rule(dim.name)
            raise ContractBroken(message(dim, self.readings[dim.name], size, self.bindings(), rule))

    def _broken_rule(self, dim: str) -> Rule | None:
        """The rule about this dim alone that its size breaks, with its origin."""
        for rule in self.contract.rules:
            if dims_of(rule.condition) == (dim,) and not holds(rule.condition, self.sizes):
                return rule
        return None

    def check_relations(self) -> None:
        for relation in self.contract.domain.relations:
            if all(name in self.sizes for name in dims_of(relation)) and not holds(relation, self.sizes):
                rule = next((rule for rule in self.contract.rules if rule.condition == relation), None)
                raise ContractBroken(say.relation_broken(relation, self.sizes, self.bindings(), rule))

    def check_undetermined(self) -> None:
        """Dims that no axis determines: it is enough that some sizes of them would fit."""
        open_dims = {name for name in self.contract.domain.names if name not in self.sizes}
        if not open_dims:
            return
        speaking = [(place, self.axes[place.key]) for place, dims in self.dims.items() if open_dims & set(dims)]
        relations = [r for r in self.contract.domain.relations if any(name in open_dims for name in dims_of(r))]
        if not speaking and not relations:
            return
        from anyshape.domain import find_point

        conditions: list[Condition] = [Compare("==", place.expr, Number(actual)) for place, actual in speaking]
        conditions += [Compare("==", Ref(name), Number(size)) for name, size in self.sizes.items()]
        if find_point(Domain(self.contract.domain.dims, tuple(relations)), *conditions) is None:
            raise ContractBroken(say.no_such_sizes(sorted(open_dims), speaking, self.bindings()))
