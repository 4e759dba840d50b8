"""What the inputs or the outputs of a call are made of: nested values without their leaves, caches of transformers among them.

A structure holds no tensors, and `rebuild` gives fresh containers each time, so that a module that
changes its arguments never reaches into the next call.

A cache of transformers is a structure of layers: `past_key_values.0.key`. transformers is never imported here: a cache is known
by the class that it comes from. A layer's public tensors are its leaves, so that a static cache's own counter is an input too;
what else a layer holds is taken over as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from anyshape.findings import Finding, InternalError

_SPOKEN = {"keys": "key", "values": "value"}
_COUNTER = "cumulative_length"


def join(path: str, name: str) -> str:
    """The path of a child; the outermost value has no path of its own."""
    return f"{path}.{name}" if path else name


class Structure:
    """Base of every kind of structure; `count` is its number of leaves."""

    __slots__ = ()

    @property
    def count(self) -> int:
        return sum(child.count for _, child in self.items())

    def items(self) -> tuple[tuple[str, Structure], ...]:
        """The children by the name that a person writes for them."""
        return ()

    def build(self, leaves: Iterator[Any]) -> Any:
        """The value with the next leaves in place."""
        raise NotImplementedError

    def rebuild(self, leaves: Sequence[Any]) -> Any:
        """A fresh value with these leaves in place, in the order in which they were found."""
        if len(leaves) != self.count:
            what = f"a structure of {self.count} leaves was given {len(leaves)} of them."
            fix = "this is our fault, sorry: please report it."
            raise InternalError(Finding(code="AS901", name="internal-error", what=what, fix=fix))
        return self.build(iter(leaves))


@dataclass(frozen=True)
class Leaf(Structure):
    """One value: a tensor, a number, a string."""

    @property
    def count(self) -> int:
        return 1

    def build(self, leaves: Iterator[Any]) -> Any:
        return next(leaves)


@dataclass(frozen=True)
class Absent(Structure):
    """None: part of the structure, never an input."""

    def build(self, leaves: Iterator[Any]) -> Any:
        return None


@dataclass(frozen=True)
class Named(Structure):
    """A value of some class whose children have names."""

    kind: type[Any]
    names: tuple[str, ...]
    children: tuple[Structure, ...]

    def items(self) -> tuple[tuple[str, Structure], ...]:
        return tuple(zip(self.names, self.children, strict=True))


@dataclass(frozen=True)
class Items(Named):
    """A tuple, a list, a named tuple or one of torch's own named results."""

    def build(self, leaves: Iterator[Any]) -> Any:
        values = [child.build(leaves) for child in self.children]
        is_named_tuple = issubclass(self.kind, tuple) and hasattr(self.kind, "_fields")
        return self.kind(*values) if is_named_tuple else self.kind(values)


@dataclass(frozen=True)
class Keyed(Structure):
    """A dict or another mapping, its keys in their own order."""

    kind: type[Any]
    keys: tuple[Any, ...]
    children: tuple[Structure, ...]
    as_keywords: bool = False

    def items(self) -> tuple[tuple[str, Structure], ...]:
        return tuple((str(key), child) for key, child in zip(self.keys, self.children, strict=True))

    def build(self, leaves: Iterator[Any]) -> Any:
        values = {key: child.build(leaves) for key, child in zip(self.keys, self.children, strict=True)}
        if self.as_keywords:
            return self.kind(**values)
        if not issubclass(self.kind, dict):
            return self.kind(values)
        made = self.kind.__new__(self.kind)  # the constructor of a defaultdict takes something else
        made.update(values)
        return made


@dataclass(frozen=True)
class Record(Named):
    """A dataclass; built without its `__init__`, whose parameters may not be its fields."""

    def build(self, leaves: Iterator[Any]) -> Any:
        record = object.__new__(self.kind)
        for name, child in self.items():
            object.__setattr__(record, name, child.build(leaves))
        return record


@dataclass(frozen=True)
class Registered(Named):
    """A class that the user registered with torch's pytree."""

    unflatten: Callable[[list[Any]], Any] = field(compare=False)

    def build(self, leaves: Iterator[Any]) -> Any:
        return self.unflatten([child.build(leaves) for child in self.children])


@dataclass(frozen=True)
class Attributes(Structure):
    """An object of transformers' caches: children become attributes, everything else is taken over.

    A child whose place is (attribute, key) lies in a dict of that name. `lengths` are attributes that count what the
    keys hold, and follow them.
    """

    kind: type[Any]
    places: tuple[tuple[str, str | int | None], ...]
    names: tuple[str, ...]
    children: tuple[Structure, ...]
    taken_over: Mapping[str, Any] = field(compare=False)
    lengths: tuple[str, ...] = ()

    def items(self) -> tuple[tuple[str, Structure], ...]:
        return tuple(zip(self.names, self.children, strict=True))

    def build(self, leaves: Iterator[Any]) -> Any:
        made = object.__new__(self.kind)
        vars(made).update({name: _fresh(value) for name, value in self.taken_over.items()})
        for (attribute, key), child in zip(self.places, self.children, strict=True):
            value = _own(child.build(leaves))
            if key is None:
                setattr(made, attribute, value)
            else:
                getattr(made, attribute)[key] = value
        for attribute in self.lengths:
            setattr(made, attribute, made.keys.shape[-2])
        return made


@dataclass(frozen=True)
class Layers(Structure):
    """The layers of a cache, a list."""

    children: tuple[Structure, ...]

    def items(self) -> tuple[tuple[str, Structure], ...]:
        return tuple((str(index), child) for index, child in enumerate(self.children))

    def build(self, leaves: Iterator[Any]) -> Any:
        return [child.build(leaves) for child in self.children]


def _fresh(value: Any) -> Any:
    """Containers are copied, so that two caches built from one structure never share them."""
    if isinstance(value, dict):
        return {key: _fresh(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_fresh(item) for item in value]
    return _own(value)


def _own(value: Any) -> Any:
    """A tensor of its own: a static cache writes into its tensors, and those must not be the caller's."""
    return value.clone() if hasattr(value, "untyped_storage") else value


Walk = Callable[[Any, str], Structure]


def is_cache(value: Any) -> bool:
    """Whether the value is a cache of transformers, static, dynamic or both."""
    return any(
        base.__name__ == "Cache" and base.__module__ == "transformers.cache_utils" for base in type(value).__mro__
    )


def cache_structure(cache: Any, path: str, walk: Walk, *, is_output: bool = False) -> Structure:
    """The structure of a cache; `walk(value, path)` takes each of its leaves.

    The counter of a dynamic layer is a leaf of an input that does not follow the keys, and never one of an output: it equals
    the length of the keys up to a layer's window and not beyond, so the sizes would decide how many outputs there are.
    """
    if hasattr(cache, "self_attention_cache"):
        return _pair(cache, path, walk, is_output)
    named = [(join(path, str(index)), layer) for index, layer in enumerate(cache.layers)]
    layers = Layers(tuple(_layer(layer, place, walk, is_output) for place, layer in named))
    taken_over = {name: value for name, value in vars(cache).items() if name != "layers"}
    return CacheStructure(type(cache), (("layers", None),), ("layers",), (layers,), taken_over)


class CacheStructure(Attributes):
    """A cache whose layers are spoken of by their number alone."""

    def items(self) -> tuple[tuple[str, Structure], ...]:
        return self.children[0].items()


def _pair(cache: Any, path: str, walk: Walk, is_output: bool) -> Structure:
    names = ("self_attention_cache", "cross_attention_cache")
    children = tuple(
        cache_structure(getattr(cache, name), join(path, name), walk, is_output=is_output) for name in names
    )
    taken_over = {name: value for name, value in vars(cache).items() if name not in names}
    return Attributes(type(cache), tuple((name, None) for name in names), names, children, taken_over)


def _layer(layer: Any, path: str, walk: Walk, is_output: bool) -> Structure:
    lengths: list[str] = []
    found: list[tuple[tuple[str, str | int | None], str, Structure]] = []
    taken_over: dict[str, Any] = {}
    for name, value in vars(layer).items():
        spoken = _SPOKEN.get(name, name)
        if _is_dynamic_counter(layer, name, value) and (is_output or _equals_length(layer, value)):
            lengths.append(name)
        elif _is_leaf(name, value):
            found.append(((name, None), spoken, walk(value, f"{path}.{spoken}")))
        elif isinstance(value, dict) and any(isinstance(item, torch.Tensor) for item in value.values()):
            taken_over[name] = dict.fromkeys(value)
            for key, item in value.items():
                if isinstance(item, torch.Tensor):
                    inner = f"{spoken}.{key}"
                    found.append(((name, key), inner, walk(item, f"{path}.{inner}")))
                else:
                    taken_over[name][key] = item
        else:
            taken_over[name] = value
    places, names, children = zip(*found, strict=True) if found else ((), (), ())
    return Attributes(type(layer), places, names, children, taken_over, tuple(lengths))


def _is_leaf(name: str, value: Any) -> bool:
    """Public tensors, and the counters that would otherwise be baked in without a word."""
    if isinstance(value, torch.Tensor):
        return not name.startswith("_")
    return name.startswith(_COUNTER) and isinstance(value, int)


def _is_dynamic_counter(layer: Any, name: str, value: Any) -> bool:
    """Whether this is the number of positions that a layer without a fixed length has seen."""
    is_int = isinstance(value, (int, torch.SymInt))
    return name.startswith(_COUNTER) and is_int and not hasattr(layer, "max_cache_len")


def _equals_length(layer: Any, value: int) -> bool:
    """Whether a counter is the length of the layer's keys, and so no input of its own."""
    keys = getattr(layer, "keys", None)
    return isinstance(keys, torch.Tensor) and keys.ndim >= 2 and keys.shape[-2] == value
