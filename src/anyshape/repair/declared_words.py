"""Words for the axes of a file's inputs and outputs (`input: batch 3 224 224`), read against the sizes in the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from anyshape.domain import Dim, Domain, Expr, Number, Ref, Undefined, dims_of, evaluate
from anyshape.findings import DeclarationError, Finding, UsageError, nearest
from anyshape.graphs import places_of, readings_of
from anyshape.inputs.axis_messages import unreadable_form, unsolvable_size
from anyshape.inputs.words import AsItIs, read_words
from anyshape.repair.known_shapes import Axes, Contradiction, axes_text, is_same

_TRIED_SIZES = (7, 11, 13, 17, 19, 23)


@dataclass(frozen=True)
class DeclaredAxes:
    """The axes of every input, of some outputs, and the size of each dim in the file.

    A dim that the file has already has no size in it: one is made up.
    """

    inputs: Mapping[str, Axes]
    sizes: Mapping[str, int]
    outputs: Mapping[str, Mapping[int, Expr]] = field(default_factory=dict)

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for axes in self.inputs.values() for axis in axes for name in dims_of(axis)))

    def check_outputs(self, graph: ir.Graph, found: Mapping[str, Axes]) -> None:
        """Raise Contradiction where an output does not have the declared axes."""
        for name, axes in self.outputs.items():
            own = found[name]
            if any(not is_same(own[axis], expr) for axis, expr in axes.items()):
                value = next(value for value in graph.outputs if value.name == name)
                node = value.producer()
                assert node is not None
                raise Contradiction(node, f"output {name!r} would be {axes_text(own)}, which is not what was declared.")


def split_declaration(texts: Sequence[str]) -> dict[str, str]:
    """`["x: batch 3", "y: batch seq"]` -> words by name."""
    found: dict[str, str] = {}
    for text in texts:
        name, colon, words = text.partition(":")
        if not colon or not words.strip():
            raise DeclarationError(
                unreadable_form(name.strip() or text, text, "a name, a colon, and a word for each axis.")
            )
        found[name.strip()] = words.strip()
    return found


def read_declared(graph: ir.Graph, words: Mapping[str, str]) -> DeclaredAxes:
    """What the words say. Raises DeclarationError or UsageError where they do not fit the file."""
    inputs = {str(value.name): value for value in graph.inputs if value.name not in graph.initializers}
    outputs = {str(value.name): value for value in graph.outputs}
    for name in words:
        if name not in inputs and name not in outputs:
            raise DeclarationError(_unknown(name, [*inputs, *outputs]))
    made = _MadeUp()
    shapes = {name: made.sizes(value) for name, value in inputs.items()}
    axes = {name: _axes(name, words.get(name), shape) for name, shape in shapes.items()}
    sizes = _solved(axes, {name: [size for size, _ in shape] for name, shape in shapes.items()})
    return DeclaredAxes(
        axes, sizes, {name: _of_output(value, words[name]) for name, value in outputs.items() if name in words}
    )


class _MadeUp:
    """Sizes for axes that are open in the file already."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}

    def sizes(self, value: ir.Value) -> list[tuple[int, str | None]]:
        """The size of each axis, and the name that the file has for it."""
        if value.shape is None:
            raise UsageError(_no_shape(str(value.name)))
        found: list[tuple[int, str | None]] = []
        for index, size in enumerate(value.shape):
            if isinstance(size, int) and size >= 0:
                found.append((size, None))
                continue
            text = None if isinstance(size, int) else size.value
            name = text if text and text.isidentifier() else f"{value.name}_{index}"
            made = self._sizes.setdefault(name, _TRIED_SIZES[len(self._sizes) % len(_TRIED_SIZES)])
            found.append((made, name))
        return found


def _axes(name: str, text: str | None, shape: Sequence[tuple[int, str | None]]) -> Axes:
    sizes = tuple(size for size, _ in shape)
    own = [Number(size) if dim is None else Ref(dim) for size, dim in shape]
    if text is None:
        return tuple(own)
    found = read_words(name, text, sizes)
    return tuple(
        own[axis]
        if isinstance(meaning := found.get(axis, AsItIs()), AsItIs) or not isinstance(meaning, Expr)
        else meaning
        for axis in range(len(sizes))
    )


def _of_output(value: ir.Value, text: str) -> dict[int, Expr]:
    if value.shape is None:
        raise UsageError(_no_shape(str(value.name)))
    sizes = tuple(size if isinstance(size, int) else 0 for size in value.shape)
    found = read_words(str(value.name), text, sizes)
    return {axis: meaning for axis, meaning in found.items() if isinstance(meaning, Expr)}


def _solved(axes: Mapping[str, Axes], shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """The size of each dim in the file. Raises DeclarationError where there is none."""
    places = places_of(axes)
    names = tuple(dict.fromkeys(name for place in places for name in dims_of(place.expr)))
    readings = readings_of(Domain(tuple(Dim(name) for name in names)), places)
    at = {place.key: shapes[place.input][place.axis] for place in places}
    try:
        sizes = {reading.dim: evaluate(reading.value, at) for reading in readings}
        for place in places:
            if any(name not in sizes for name in dims_of(place.expr)) or evaluate(place.expr, sizes) != at[place.key]:
                known = {name: size for name, size in sizes.items() if name in dims_of(place.expr)}
                raise DeclarationError(
                    unsolvable_size(place.input, place.axis, str(place.expr), at[place.key], known, ", in the file")
                )
    except Undefined as error:
        raise DeclarationError(error.finding) from error
    return sizes


def _unknown(name: str, known: Sequence[str]) -> Finding:
    near = nearest(name, known)
    return Finding(
        code="AS011",
        name="unknown-input",
        what=f"there is no input or output {name!r} in the file.",
        why=f"it has {', '.join(map(repr, known))}.",
        fix=f"did you mean {near!r}?" if near else "",
    )


def _no_shape(name: str) -> Finding:
    return Finding(
        code="AS048",
        name="not-a-tensor",
        what=f"the file does not say how many axes {name!r} has.",
        why="without them there are no sizes to speak of.",
        fix="export it again with shapes for its inputs and outputs.",
    )
