"""The forms in which a declaration mirrors a cache: by layer, by kind of tensor, and flat.

by layer   [[k0, v0], [k1, v1]]                                    as the cache holds them
by kind    [[k0, k1], [v0, v1]], {"key_cache": [k0, k1], ...}      as transformers registers its caches with torch
flat       [k0, v0, k1, v1]                                        as other libraries do
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anyshape.inputs.places import Place

Pairs = list[tuple[Place, Any]]

_KINDS = ("key", "value")
_LISTS = {"key_cache": "key", "value_cache": "value"}


def match_cache_lists(place: Place, form: Mapping[Any, Any]) -> Pairs | None:
    """The tensors of a cache with the parts of {"key_cache": [...], "value_cache": [...]}; None for other forms."""
    if not _is_cache(place) or set(form) != set(_LISTS):
        return None
    lists = [form[name] for name in _LISTS]
    return _by_kind(place, lists) if _is_by_kind(place, lists) else None


def match_cache_parts(place: Place, form: Sequence[Any]) -> Pairs | None:
    """The tensors of a cache with their parts of a list; None where the list mirrors the layers, or is none of a cache."""
    if not _is_cache(place):
        return None
    if _is_by_kind(place, form):
        return _by_kind(place, form)
    tensors = [layer.children[kind] for layer in place.children.values() for kind in _KINDS]
    return list(zip(tensors, form, strict=True)) if len(form) == len(tensors) else None


def _is_cache(place: Place) -> bool:
    layers = place.children.values()
    return bool(layers) and all(kind in layer.children for layer in layers for kind in _KINDS)


def _is_by_kind(place: Place, form: Sequence[Any]) -> bool:
    """Whether the parts are all keys, then all values. Of two layers, key and value of one are declared alike."""
    is_of_lists = len(form) == len(_KINDS) and all(isinstance(part, (list, tuple)) for part in form)
    if not is_of_lists or any(len(part) != len(place.children) for part in form):
        return False
    return len(place.children) != len(_KINDS) or form[0] == form[1]


def _by_kind(place: Place, form: Sequence[Sequence[Any]]) -> Pairs:
    layers = place.children.values()
    return [
        (layer.children[kind], part)
        for kind, parts in zip(_KINDS, form, strict=True)
        for layer, part in zip(layers, parts, strict=True)
    ]
