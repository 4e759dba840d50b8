"""The forms in which a declaration mirrors a cache: by layer, by kind of tensor, and flat.

by layer   [[k0, v0], [k1, v1]]                                    as the cache holds them
by kind    [[k0, k1], [v0, v1]], {"key_cache": [k0, k1], ...}      as transformers registers its caches with torch
flat       [k0, v0, k1, v1]                                        as other libraries do; hybrid caches too: [k0, v0, state1];
           those of both halves of an EncoderDecoderCache, one after the other
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anyshape.inputs.places import KINDS, Place

Pairs = list[tuple[Place, Any]]

_HALVES = ("self_attention_cache", "cross_attention_cache")
_LISTS = {"key_cache": "key", "value_cache": "value"}


def match_cache_lists(place: Place, form: Mapping[Any, Any]) -> Pairs | None:
    """The tensors of a cache with the parts of {"key_cache": [...], "value_cache": [...]}; None for other forms."""
    if not _has_pairs(place) or set(form) != set(_LISTS):
        return None
    lists = [form[name] for name in _LISTS]
    return _by_kind(place, lists) if _is_by_kind(place, lists) else None


def match_cache_parts(place: Place, form: Sequence[Any]) -> Pairs | None:
    """The tensors of a cache with their parts of a list; None where the list mirrors the layers, or is none of a cache."""
    if _has_pairs(place) and _is_by_kind(place, form):
        return _by_kind(place, form)
    halves = [place.children[name] for name in _HALVES if name in place.children]
    layers = [_tensors(layer) for half in halves or [place] for layer in half.children.values()]
    if not all(layers):
        return None
    tensors = [tensor for layer in layers for tensor in layer]
    return list(zip(tensors, form, strict=True)) if len(form) == len(tensors) else None


def _has_pairs(place: Place) -> bool:
    """Whether this is a cache whose layers hold keys and values."""
    layers = place.children.values()
    return bool(layers) and all(kind in layer.children for layer in layers for kind in KINDS)


def _tensors(layer: Place) -> list[Place]:
    """The tensors of one layer of a cache: key and value, or its states; none where this is no layer of a cache."""
    if all(kind in layer.children for kind in KINDS):
        return [layer.children[kind] for kind in KINDS]
    return list(layer.children.values()) if layer.other_names else []


def _is_by_kind(place: Place, form: Sequence[Any]) -> bool:
    """Whether the parts are all keys, then all values. Of two layers, key and value of one are declared alike."""
    is_of_lists = len(form) == len(KINDS) and all(isinstance(part, (list, tuple)) for part in form)
    if not is_of_lists or any(len(part) != len(place.children) for part in form):
        return False
    return len(place.children) != len(KINDS) or form[0] == form[1]


def _by_kind(place: Place, form: Sequence[Sequence[Any]]) -> Pairs:
    layers = place.children.values()
    return [
        (layer.children[kind], part)
        for kind, parts in zip(KINDS, form, strict=True)
        for layer, part in zip(layers, parts, strict=True)
    ]
