"""From a contract to rules on the axes of a graph's inputs, and from what a graph declares to a contract.

`graph_rules`: dims do not exist in a graph, so every rule mentions axes only: `past + seq <= 4096` is a rule on two axes of
two inputs. A dim may have no axis that gives its value (`n` of an axis `n//2`): then `anyshape.load` checks the rules on `n`,
and the graph only that the axis lies in the range of `n//2`.

`contract_of_foreign`: the names of dims in a file of another exporter are kept where they are expressions that we can read;
any other name becomes one dim of a name that can be written, so that equal names stay equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from keyword import iskeyword
from typing import TYPE_CHECKING

from anyshape.domain import (
    All,
    Compare,
    Condition,
    Dim,
    Domain,
    Expr,
    Number,
    Ref,
    dims_of,
    is_about,
    parse_expr,
    simplify,
    substitute,
)
from anyshape.findings import DeclarationError, Finding, UsageError
from anyshape.graphs import Place, Reading, places_of, readings_of
from anyshape.records.contract import Contract, TensorPromise

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir


@dataclass(frozen=True)
class GraphRule:
    """A condition on axes, which are named by the keys of their places; `message` is its requirement in words."""

    message: str
    condition: Condition


def graph_rules(contract: Contract) -> tuple[tuple[Place, ...], tuple[GraphRule, ...]]:
    """The places that rules mention, and all rules, in the order in which they are best tested."""
    places = places_of(contract.input_axes, contract.input_numbers)
    readings = {reading.dim: reading for reading in readings_of(contract.domain, places)}
    axes = {dim: reading.value for dim, reading in readings.items()}
    rules = [
        *_agreement(places, readings, axes),
        *_open_places(contract, places, readings),
        *(rule for dim in contract.domain.dims if dim.name in readings for rule in _dim(dim, readings[dim.name])),
        *_relations(contract, axes),
    ]
    return places, tuple(rules)


def _agreement(
    places: tuple[Place, ...], readings: Mapping[str, Reading], axes: Mapping[str, Expr]
) -> Iterator[GraphRule]:
    """Every axis is what its dims give."""
    for place in places:
        if any(dim not in readings for dim in dims_of(place.expr)):
            continue
        expected, actual = substitute(place.expr, axes), Ref(place.key)
        if simplify(expected) == actual:
            continue  # the dim is read from this very axis
        yield GraphRule(_agreement_message(place, readings), Compare("==", actual, expected))


def _agreement_message(place: Place, readings: Mapping[str, Reading]) -> str:
    reading = readings[place.expr.name] if isinstance(place.expr, Ref) else None
    if reading is None or not reading.is_direct:
        return f"AS404: {place} must be {place.expr}"
    other = reading.places[0]
    if other.input == place.input:
        return f"AS401: axis {place.axis} of {place.input!r} must equal axis {other.axis} ({reading.dim})"
    return f"AS401: {reading.dim} of {place.input!r} must equal {reading.dim} of {other.input!r}"


def _open_places(contract: Contract, places: tuple[Place, ...], readings: Mapping[str, Reading]) -> Iterator[GraphRule]:
    """An axis whose dims cannot be read still has a smallest and a largest size."""
    for place in places:
        if all(dim in readings for dim in dims_of(place.expr)):
            continue
        from anyshape.domain import range_of

        found = range_of(contract.domain, place.expr)
        low, high = (end if isinstance(end, int) else None for end in (found or (None, None)))
        least = low if place.is_value else max(low or 0, 0)
        limits = _limits(Ref(place.key), least, high, is_axis=not place.is_value)
        if limits is not None:
            yield GraphRule(f"AS402: {place} ({place.expr}) must be {_spoken_range(least, high)}", limits)


def _dim(dim: Dim, reading: Reading) -> Iterator[GraphRule]:
    spoken = _spoken_dim(reading)
    # No axis is shorter than 0, but what is computed from axes can be, and a number.
    is_axis = reading.is_direct and not reading.places[0].is_value
    limits = _limits(reading.value, dim.min, dim.max, is_axis=is_axis)
    if limits is not None:
        yield GraphRule(f"AS402: {spoken} must be {_spoken_range(dim.min, dim.max)}", limits)
    if dim.multiple != 1:
        rest = reading.value % dim.multiple
        yield GraphRule(f"AS403: {spoken} must be a multiple of {dim.multiple}", Compare("==", rest, Number(0)))


def _limits(value: Expr, low: int | None, high: int | None, is_axis: bool = True) -> Condition | None:
    ends: list[Condition] = []
    if low is not None and (low > 0 or not is_axis):
        ends.append(Compare(">=", value, Number(low)))
    if high is not None:
        ends.append(Compare("<=", value, Number(high)))
    return None if not ends else ends[0] if len(ends) == 1 else All(tuple(ends))


def _spoken_dim(reading: Reading) -> str:
    if reading.is_direct:
        return f"{reading.dim} of {reading.places[0].input!r}"
    return f"{reading.dim} (from {' and '.join(map(str, reading.places))})"


def _spoken_range(low: int | None, high: int | None) -> str:
    if high is None:
        return f"at least {low}"
    return f"at most {high}" if not low else f"{low} to {high}" if low != high else str(low)


def _relations(contract: Contract, axes: Mapping[str, Expr]) -> Iterator[GraphRule]:
    for relation in contract.domain.relations:
        if all(dim in axes for dim in dims_of(relation)):
            yield GraphRule(f"AS405: the sizes must keep {relation}", substitute(relation, axes))


def contract_of_foreign(model: onnx.ModelProto | ir.Model) -> Contract:
    """Inputs, outputs and dims as the graph declares them, with status unknown and every dim from 1 without an end.

    An axis of an input without a name becomes a dim named after it (`x_0`); an axis of an output that mentions
    dims that no input has is None. An output whose rank the file does not declare has no axes. Raises UsageError on what
    is no tensor, and on inputs of unknown rank.
    """
    import onnx_ir as ir

    loaded = model if isinstance(model, ir.Model) else ir.from_proto(model)
    names = _Names()
    graph = loaded.graph
    for value in graph.inputs:  # names that read as they are come first: nobody else may take them
        names.reserve(value)
    inputs = [_tensor(value, names, is_input=True) for value in graph.inputs if value.name not in graph.initializers]
    dims = tuple(dict.fromkeys(name for tensor in inputs for axis in tensor.axes if axis for name in dims_of(axis)))
    outputs = [_known_only(_tensor(value, names, is_input=False), dims) for value in graph.outputs]
    return Contract(
        status="unknown",
        domain=Domain(tuple(Dim(name) for name in dims)),
        rules=(),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        opset=graph.opset_imports.get("", 0),
        versions={loaded.producer_name: loaded.producer_version or ""} if loaded.producer_name else {},
    )


def _tensor(value: ir.Value, names: _Names, is_input: bool) -> TensorPromise:
    name = value.name or ""
    if value.dtype is None or type(value.type).__name__ != "TensorType":
        raise UsageError(_not_a_tensor(value, "input" if is_input else "output"))
    if value.shape is None and is_input:
        raise UsageError(_no_rank(name))
    axes = [names.expr(name, axis, size, is_input) for axis, size in _sizes(value)]
    return TensorPromise(name, name, dtype_name(value.dtype), tuple(axes))


def dtype_name(dtype: ir.DataType) -> str:
    """The name of the dtype in numpy and torch; `string` for texts."""
    name = dtype.numpy().name
    return "string" if name == "object" else name


def _sizes(value: ir.Value) -> Iterator[tuple[int, int | str | None]]:
    """Axis and size: a number, a name, or None. A negative number is how some exporters write that they do not know."""
    for axis, size in enumerate(value.shape or ()):
        if isinstance(size, int):
            yield axis, size if size >= 0 else None
        else:
            yield axis, size.value or None


def _known_only(tensor: TensorPromise, dims: tuple[str, ...]) -> TensorPromise:
    axes = (axis if axis is not None and is_about(axis, dims) else None for axis in tensor.axes)
    return TensorPromise(tensor.name, tensor.path, tensor.dtype, tuple(axes))


class _Names:
    """The dims of one file: which expression each of its names is."""

    def __init__(self) -> None:
        self._exprs: dict[str, Expr] = {}
        self._taken: set[str] = set()

    def reserve(self, value: ir.Value) -> None:
        for _, size in _sizes(value):
            if isinstance(size, str) and size not in self._exprs:
                expr = _readable(size)
                if expr is not None:
                    self._exprs[size] = expr
                    self._taken.update(dims_of(expr))

    def expr(self, tensor: str, axis: int, size: int | str | None, is_input: bool) -> Expr | None:
        if isinstance(size, int):
            return Number(size)
        if size is None:
            return Ref(self._free(f"{tensor}_{axis}")) if is_input else None
        if size not in self._exprs:
            readable = _readable(size)
            self._exprs[size] = Ref(self._free(size)) if readable is None else readable
        return self._exprs[size]

    def _free(self, text: str) -> str:
        """A name like the text that can be written, and that is not taken yet."""
        name = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_") or "dim"
        name = f"_{name}" if name[0].isdigit() or iskeyword(name) else name
        number, free = 2, name
        while free in self._taken:
            free, number = f"{name}_{number}", number + 1
        self._taken.add(free)
        return free


def _readable(text: str) -> Expr | None:
    try:
        expr = parse_expr(text)
    except DeclarationError:
        return None
    return expr if dims_of(expr) else None


def _not_a_tensor(value: ir.Value, kind: str) -> Finding:
    return Finding(
        code="AS048",
        name="not-a-tensor",
        what=f"{kind} {value.name!r} of the file is {value.type or 'of no known type'}, not a tensor.",
        why="anyshape speaks of tensors only, not of sequences, maps and optional values.",
    )


def _no_rank(name: str) -> Finding:
    return Finding(
        code="AS048",
        name="not-a-tensor",
        what=f"the file does not say how many axes input {name!r} has.",
        why="without them there are no sizes to speak of.",
        fix="export it again with shapes for its inputs.",
    )
