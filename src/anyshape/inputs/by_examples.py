"""The second and third way: an example and words for its axes, or several examples that show what varies.

Both are one thing: words fix what they mention, the examples show the rest; with one example nothing else varies.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from anyshape.domain import Compare, Condition, Dim, Expr, Number, Ref, dims_of, simplify, substitute, unknown_dim
from anyshape.findings import DeclarationError, Finding
from anyshape.inputs.assemble import Options, Parts, assemble, check_output_dims, is_auto, read_written
from anyshape.inputs.axis_messages import cannot_vary, found_by_trying, value_varies
from anyshape.inputs.axis_moves import Place
from anyshape.inputs.by_trying import TriedAxes, find_open_axes, name_of
from anyshape.inputs.call_messages import nothing_dynamic
from anyshape.inputs.calls import BoundCall, bind_inputs
from anyshape.inputs.declared import Declared, InputLeaf, Way, dtype_of
from anyshape.inputs.forms import Forms
from anyshape.inputs.from_examples import Column, Equation, infer_columns, solve_sizes
from anyshape.inputs.making import make_from
from anyshape.inputs.probing import check_alike
from anyshape.inputs.words import AsItIs, AxisWord, Open

_VALUE = -1  # the "axis" of a Python number: its value


@dataclass(frozen=True)
class _Given:
    """The module, the examples bound to it, and what the user wrote about their axes."""

    module: Callable[..., Any]
    examples: tuple[BoundCall, ...]
    forms: Forms

    @property
    def first(self) -> BoundCall:
        return self.examples[0]

    def word(self, place: Place) -> AxisWord:
        path, axis = place
        return (
            self.forms.numbers.get(path, AsItIs())
            if axis == _VALUE
            else self.forms.axes.get(path, {}).get(axis, AsItIs())
        )

    def column(self, place: Place) -> tuple[int, ...]:
        path, axis = place
        values = [dict(bound.leaves)[path] for bound in self.examples]
        return tuple(value if axis == _VALUE else int(value.shape[axis]) for value in values)

    def places(self) -> list[Place]:
        """Every axis of every tensor, and every int."""
        found: list[Place] = []
        for path, value in self.first.leaves:
            if isinstance(value, torch.Tensor):
                found.extend((path, axis) for axis in range(value.ndim))
            elif type(value) is int:
                found.append((path, _VALUE))
        return found


def declare_by_examples(
    module: Callable[..., Any], signature: inspect.Signature, examples: Sequence[Any], options: Options
) -> Declared:
    """Dims and axes of one or several examples."""
    bounds = tuple(bind_inputs(signature, example) for example in examples)
    for index, bound in enumerate(bounds[1:], start=2):
        check_alike(bounds[0], bound, f"in example {index}")
    written = read_written(options, bounds[0])
    auto = is_auto(options)
    given = _Given(module, bounds, _all_open(bounds[0]) if auto else written.forms)
    axes, dims, notes = _find_axes(given)
    leaves = tuple(_leaf(given, path, value, axes) for path, value in given.first.leaves)
    leaves, dims = _renamed(leaves, dims, written.renames)
    sizes = [solve_sizes(_equations(leaves, bound), _which(bounds, index)) for index, bound in enumerate(bounds)]
    check_output_dims(written.forms.outputs, list(sizes[0]))
    static = not sizes[0] and all(leaf.kind != "scalar" for leaf in leaves)
    parts = Parts(
        source=_way(auto, bounds, static),
        signature=signature,
        bound=bounds[0],
        leaves=leaves,
        dims=tuple(dims.values()),
        rules=(*options.where, *_unnamed_ranges(given, leaves)),
        example_sizes=sizes[0],
        output_axes=written.forms.outputs,
        notes=(*notes, *((nothing_dynamic(),) if static else ())),
        unnamed=frozenset(_unnamed(given, leaves) - set(written.renames.values())),
    )
    declared = assemble(parts, options, lambda named: make_from(named, list(zip(sizes, bounds, strict=True))))
    if not auto or static:
        return declared
    return replace(declared, notes=(found_by_trying(declared.paste), *declared.notes))


def _way(auto: bool, bounds: Sequence[BoundCall], static: bool) -> Way:
    if auto:
        return "auto"
    return "examples" if len(bounds) > 1 else "static" if static else "words"


def _which(bounds: Sequence[BoundCall], index: int) -> str:
    return f", in example {index + 1}" if len(bounds) > 1 else ""


def _all_open(bound: BoundCall) -> Forms:
    tensors = [(path, value.ndim) for path, value in bound.leaves if isinstance(value, torch.Tensor)]
    return Forms(axes={path: {axis: Open(must=False) for axis in range(ndim)} for path, ndim in tensors})


def _find_axes(given: _Given) -> tuple[dict[Place, Expr], dict[str, Dim], list[Finding]]:
    """What every axis is, the dims with written ranges, and notes on what cannot vary."""
    axes: dict[Place, Expr] = {}
    said = {place: word for place in given.places() if isinstance(word := given.word(place), Expr)}
    axes.update({place: simplify(word) for place, word in said.items()})
    known = _known_columns(given, said)
    dims = dict(given.forms.dims)
    notes: list[Finding] = []
    if len(given.examples) == 1:
        axes.update(_try_open(given, dims, notes))
    columns = [Column(place, given.column(place)) for place in given.places() if place not in axes]
    axes.update(infer_columns(columns, known))
    for place in given.places():
        word = given.word(place)
        if isinstance(word, Open) and word.must and isinstance(axes[place], Number):
            axes[place] = _new_dim(place, word, dims)
    return axes, dims, notes


def _known_columns(given: _Given, said: Mapping[Place, Expr]) -> dict[str, tuple[int, ...]]:
    """The size of each named dim in each example."""
    rows = []
    for index in range(len(given.examples)):
        equations = [Equation(*place, word, given.column(place)[index]) for place, word in said.items()]
        rows.append(solve_sizes(equations, _which(given.examples, index)))
    return {name: tuple(row[name] for row in rows) for name in rows[0]}


def _try_open(given: _Given, dims: dict[str, Dim], notes: list[Finding]) -> dict[Place, Expr]:
    """Axes that are open without a name: found by trying; what must vary gets a dim of its own in any case."""
    opened = {
        place: word for place in given.places() if isinstance(word := given.word(place), Open) and place[1] != _VALUE
    }
    if not opened:
        return {}
    sizes = {place: given.column(place)[0] for place in opened}
    found = find_open_axes(TriedAxes(given.module, given.first), sizes)
    for place, word in opened.items():
        if place in found:
            for name in dims_of(found[place]):
                if name == name_of(place):
                    _new_dim(place, word, dims)
        elif word.must:
            found[place] = _new_dim(place, word, dims)
        else:
            found[place] = Number(sizes[place])
            notes.append(cannot_vary(*place, sizes[place]))
    return found


def _new_dim(place: Place, word: AxisWord, dims: dict[str, Dim]) -> Ref:
    path, axis = place
    name = name_of(place) if axis != _VALUE else name_of((path, 0)).removesuffix("_0")
    low, high = (word.min, word.max) if isinstance(word, Open) else (None, None)
    dims[name] = Dim(name, 1 if low is None else low, high, declared=low is not None or high is not None)
    return Ref(name)


def _unnamed_ranges(given: _Given, leaves: Sequence[InputLeaf]) -> list[Condition]:
    """The ranges of axes that were declared without a name, also of those that turned out to be an expression of others."""
    rules: list[Condition] = []
    for leaf in leaves:
        for axis, expression in enumerate(leaf.axes):
            word = given.word((leaf.path, axis))
            if not isinstance(word, Open) or isinstance(expression, Number):
                continue
            rules += [] if word.min is None else [Compare(">=", expression, Number(word.min))]
            rules += [] if word.max is None else [Compare("<=", expression, Number(word.max))]
    return rules


def _leaf(given: _Given, path: str, value: Any, axes: Mapping[Place, Expr]) -> InputLeaf:
    if isinstance(value, torch.Tensor):
        return InputLeaf(path, path, "tensor", dtype_of(value), tuple(axes[path, axis] for axis in range(value.ndim)))
    number = axes.get((path, _VALUE))
    if number is not None and not isinstance(number, Number):
        return InputLeaf(path, path, "scalar", "int64", value=number)
    others = [dict(bound.leaves)[path] for bound in given.examples]
    if type(value) is float and (path in given.forms.numbers or any(other != value for other in others)):
        return InputLeaf(path, path, "scalar", "float32", value=value)
    for other in others:
        if other != value:
            raise DeclarationError(value_varies(path, value, other))
    return InputLeaf(path, path, "constant", dtype_of(value), value=value)


def _unnamed(given: _Given, leaves: Sequence[InputLeaf]) -> set[str]:
    """Dims of axes that were declared without a name and without a range."""
    bare, others = set[str](), set[str]()
    for leaf in leaves:
        for axis, expression in enumerate(leaf.axes):
            word = given.word((leaf.path, axis))
            is_bare = isinstance(word, Open) and word.min is None and word.max is None
            (bare if is_bare else others).update(dims_of(expression))
    return bare - others


def _equations(leaves: Sequence[InputLeaf], bound: BoundCall) -> list[Equation]:
    rows: list[Equation] = []
    for leaf, value in zip(leaves, bound.values, strict=True):
        rows += [Equation(leaf.path, axis, expr, int(value.shape[axis])) for axis, expr in enumerate(leaf.axes)]
        if leaf.number is not None:
            rows.append(Equation(leaf.path, _VALUE, leaf.number, value))
    return rows


def _renamed(
    leaves: tuple[InputLeaf, ...], dims: dict[str, Dim], renames: Mapping[str, str]
) -> tuple[tuple[InputLeaf, ...], dict[str, Dim]]:
    shown = list(dict.fromkeys(name for leaf in leaves for axis in leaf.axes for name in dims_of(axis)))
    for name in renames:
        if name not in shown:
            raise DeclarationError(unknown_dim(name, shown))
    new = {old: Ref(name) for old, name in renames.items()}
    named = tuple(replace(leaf, axes=tuple(simplify(substitute(axis, new)) for axis in leaf.axes)) for leaf in leaves)
    return named, {renames.get(name, name): replace(dim, name=renames.get(name, name)) for name, dim in dims.items()}
