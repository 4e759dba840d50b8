"""The caches of transformers, seen as layers of tensors: `past_key_values.0.key`.

transformers is never imported here: a cache is known by the class that it comes from. A layer's public tensors are its
leaves, so that a static cache's own counter is an input too; what else a layer holds is taken over as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from anyshape.inputs.structure import Attributes, Layers, Structure, join

Walk = Callable[[Any, str], Structure]

_SPOKEN = {"keys": "key", "values": "value"}
_COUNTER = "cumulative_length"


def is_cache(value: Any) -> bool:
    """Whether the value is a cache of transformers, static, dynamic or both."""
    return any(
        base.__name__ == "Cache" and base.__module__ == "transformers.cache_utils" for base in type(value).__mro__
    )


def cache_structure(cache: Any, path: str, walk: Walk, *, is_answer: bool = False) -> Structure:
    """The structure of a cache; `walk(value, path)` takes each of its leaves.

    The counter of a dynamic layer is a leaf of an input that does not follow the keys, and never one of an answer: it equals
    the length of the keys up to a layer's window and not beyond, so the sizes would decide how many outputs there are.
    """
    if hasattr(cache, "self_attention_cache"):
        return _pair(cache, path, walk, is_answer)
    named = [(join(path, str(index)), layer) for index, layer in enumerate(cache.layers)]
    layers = Layers(tuple(_layer(layer, place, walk, is_answer) for place, layer in named))
    taken_over = {name: value for name, value in vars(cache).items() if name != "layers"}
    return CacheStructure(type(cache), (("layers", None),), ("layers",), (layers,), taken_over)


class CacheStructure(Attributes):
    """A cache whose layers are spoken of by their number alone."""

    def items(self) -> tuple[tuple[str, Structure], ...]:
        return self.children[0].items()


def _pair(cache: Any, path: str, walk: Walk, is_answer: bool) -> Structure:
    names = ("self_attention_cache", "cross_attention_cache")
    children = tuple(
        cache_structure(getattr(cache, name), join(path, name), walk, is_answer=is_answer) for name in names
    )
    taken_over = {name: value for name, value in vars(cache).items() if name not in names}
    return Attributes(type(cache), tuple((name, None) for name in names), names, children, taken_over)


def _layer(layer: Any, path: str, walk: Walk, is_answer: bool) -> Structure:
    lengths: list[str] = []
    found: list[tuple[tuple[str, str | int | None], str, Structure]] = []
    taken_over: dict[str, Any] = {}
    for name, value in vars(layer).items():
        spoken = _SPOKEN.get(name, name)
        if _is_dynamic_counter(layer, name, value) and (is_answer or _equals_length(layer, value)):
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
