"""Where things are in a call, and what a user's key means there: a path, the beginning of one, or a name given to it.

Nones have a place too: torch's dynamic_shapes mirror the inputs, Nones included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from anyshape.inputs.calls import BoundCall
from anyshape.inputs.structure import CacheStructure, Leaf, Structure

KINDS = ("key", "value")


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
