"""Words for the axes of a tensor (`batch past+seq 64`), and keys that name an input: a path, the beginning of one, or a
name.

Words stand apart by spaces or commas; a space beside an operator does not part them, so `past + seq` is one word.

Nones have a place too: torch's dynamic_shapes mirror the inputs, Nones included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from anyshape.domain import Expr, Number, caret, parse_expr
from anyshape.findings import DeclarationError, Finding
from anyshape.inputs.axis_messages import no_such_axis, unreadable_form, wrong_rank, wrong_size
from anyshape.inputs.calls import BoundCall
from anyshape.inputs.structure import CacheStructure, Leaf, Structure

_OPERATOR = "+-*/%"
_ELLIPSIS = "..."
KINDS = ("key", "value")


@dataclass(frozen=True)
class AsItIs:
    """An axis without a word: static with one example, whatever the examples show with several."""


@dataclass(frozen=True)
class Open:
    """An axis that varies, without a name. `must` is False for torch's AUTO, which may turn out static."""

    must: bool = True
    min: int | None = None
    max: int | None = None


AxisWord = Expr | AsItIs | Open


def read_words(path: str, text: str, shape: tuple[int, ...]) -> dict[int, AxisWord]:
    """The meaning of the words for each axis of a tensor of this shape."""
    words = split_words(text)
    ellipses = [index for index, (_, word) in enumerate(words) if word == _ELLIPSIS]
    if len(ellipses) > 1:
        raise DeclarationError(unreadable_form(path, text, "'...' can stand once only."))
    spoken = len(words) - len(ellipses)
    if spoken > len(shape) or (spoken < len(shape) and not ellipses):
        raise DeclarationError(wrong_rank(path, text, spoken, shape))
    gap = len(shape) - spoken
    axes: dict[int, AxisWord] = {}
    axis = 0
    for start, word in words:
        if word == _ELLIPSIS:
            axis += gap
            continue
        axes[axis] = read_word(path, word, text, start)
        axis += 1
    for axis, meaning in axes.items():
        check_number(path, axis, meaning, shape, text)
    return axes


def read_output_words(name: str, text: str) -> dict[int, AxisWord]:
    """The meaning of the words for an output, whose rank is not known yet: `...` can stand at the end only."""
    words = split_words(text)
    for index, (_, word) in enumerate(words):
        if word == _ELLIPSIS and index + 1 < len(words):
            raise DeclarationError(unreadable_form(name, text, "in an output '...' can stand at the end only."))
    return {axis: read_word(name, word, text, start) for axis, (start, word) in enumerate(words) if word != _ELLIPSIS}


def read_word(path: str, word: str, text: str | None = None, start: int = 0) -> AxisWord:
    """One word: `_` is no declaration, everything else is an expression of dims."""
    if word.strip() in ("_", ""):
        return AsItIs()
    try:
        return parse_expr(word)
    except DeclarationError as error:
        whole = word if text is None else text
        raise DeclarationError(_unreadable_word(path, whole, start, word, error.finding)) from error


def check_number(path: str, axis: int, meaning: AxisWord, shape: tuple[int, ...], text: object) -> None:
    """Raise DeclarationError where a number is not the example's size."""
    if isinstance(meaning, Number) and meaning.value != shape[axis]:
        raise DeclarationError(wrong_size(path, axis, meaning.value, shape[axis], str(text)))


def find_axis(path: str, axis: int, shape: tuple[int, ...]) -> int:
    """The axis counted from the front; one that the tensor has not is a DeclarationError."""
    if not -len(shape) <= axis < len(shape):
        raise DeclarationError(no_such_axis(path, axis, shape))
    return axis % len(shape)


def split_words(text: str) -> list[tuple[int, str]]:
    """The words with the place where each begins: at spaces and commas outside brackets, none beside an operator."""
    spans: list[tuple[int, int]] = []
    depth, start = 0, None
    for index, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        parts = char == "," or (char.isspace() and not _beside_operator(text, index))
        if parts and depth <= 0:
            if start is not None:
                spans.append((start, index))
            start = None
        elif start is None and not char.isspace():
            start = index
    if start is not None:
        spans.append((start, len(text)))
    return [(begin, text[begin:end].strip()) for begin, end in spans]


def _beside_operator(text: str, index: int) -> bool:
    before, after = text[:index].rstrip(), text[index:].lstrip()
    return (bool(before) and before[-1] in _OPERATOR) or bool(re.match(r"[+*/%-]", after))


def _unreadable_word(path: str, text: str, start: int, word: str, finding: Finding) -> Finding:
    return Finding(
        code=finding.code,
        name=finding.name,
        what=f"the words for {path!r} cannot be read at {word!r}.",
        excerpt=caret(text, start, start + len(word)),
        why=finding.why or finding.what,
        fix=finding.fix,
    )


@dataclass(frozen=True)
class Place:
    """A leaf, or a container with its children by name; `other_names` are further names for the same children."""

    path: str
    is_leaf: bool
    children: Mapping[str, Place]
    other_names: Mapping[str, Place] = field(default_factory=dict)

    def leaves(self) -> Iterator[str]:
        """The paths of the leaves here and below."""
        if self.is_leaf:
            yield self.path
        for child in self.children.values():
            yield from child.leaves()


def call_place(bound: BoundCall) -> Place:
    """The whole call, its parameters as children; what *args and **kwargs took lies below them."""
    parameters: dict[str, Any] = {}
    for argument in bound.passed:
        first, _, rest = argument.path.partition(".")
        place = _place(argument.path, argument.structure)
        if rest:
            parameters.setdefault(first, {})[rest] = place
        else:
            parameters[first] = place
    children = {
        name: Place(name, False, place) if isinstance(place, dict) else place for name, place in parameters.items()
    }
    return Place("", False, children)


def _place(path: str, structure: Structure) -> Place:
    children = {name: _place(f"{path}.{name}", child) for name, child in structure.items()}
    if isinstance(structure, CacheStructure):
        children = {name: _named_in_pairs(layer) for name, layer in children.items()}
    return Place(path, isinstance(structure, Leaf), children)


def _named_in_pairs(layer: Place) -> Place:
    """A layer of a cache; where it holds the states of linear attention, `key` and `value` are its first two tensors.

    Other exporters number all tensors of a cache and name them in pairs, hybrid caches included.
    """
    if any(kind in layer.children for kind in KINDS):
        return layer
    return replace(layer, other_names=dict(zip(KINDS, layer.children.values(), strict=False)))


def find_place(root: Place, key: str, aliases: Mapping[str, str]) -> Place | None:
    """The place that a key means: a path from here, a name given to an input, or a key of **kwargs alone."""
    if key in aliases:
        return _descend(root, aliases[key])
    found = _descend(root, key)
    if found is not None:
        return found
    below = [place for child in root.children.values() if (place := _descend(child, key)) is not None]
    return below[0] if len(below) == 1 and not root.path else None


def _descend(place: Place, path: str) -> Place | None:
    named = (*place.children.items(), *place.other_names.items())
    for name, child in named:  # a name may hold dots itself, so the path is eaten name by name
        if path == name:
            return child
        if path.startswith(f"{name}."):
            found = _descend(child, path[len(name) + 1 :])
            if found is not None:
                return found
    return None
