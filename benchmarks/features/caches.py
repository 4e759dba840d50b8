"""The caches of transformers as inputs, in the forms that declare them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from features.feature import Case, at, feature

GROUP = "caches"


def _state(length: int, scale: float = 1.0) -> torch.Tensor:
    return torch.linspace(-1, 1, 2 * 2 * length * 4).reshape(2, 2, length, 4) * scale


def _fill(cache: Any, length: int, layers: int) -> Any:
    for layer in range(layers):
        cache.update(_state(length, layer + 1), _state(length, -layer - 1), layer)
    return cache


def _dynamic(length: int, layers: int = 2) -> Any:
    from transformers import DynamicCache

    return _fill(DynamicCache(), length, layers)


def _both(length: int, source: int) -> Any:
    from transformers import EncoderDecoderCache

    return EncoderDecoderCache(_dynamic(length, 1), _dynamic(source, 1))


def _sliding(length: int) -> Any:
    from transformers import cache_utils

    return _fill(cache_utils.Cache(layers=[cache_utils.DynamicSlidingWindowLayer(sliding_window=16)]), length, 1)


def _hybrid(length: int) -> Any:
    from transformers import cache_utils

    layers = [cache_utils.DynamicSlidingWindowLayer(sliding_window=64), cache_utils.DynamicLayer()]
    return _fill(cache_utils.Cache(layers=layers), length, 2)


def _static(batch: int) -> Any:
    from transformers import cache_utils

    layer = cache_utils.StaticLayer(max_cache_len=8)
    layer.lazy_initialization(torch.zeros(batch, 2, 1, 4), torch.zeros(batch, 2, 1, 4))
    return cache_utils.Cache(layers=[layer])


class Reads(nn.Module):
    """Reads all layers of a cache, and writes none."""

    def forward(self, x, cache):
        found = (
            cache.self_attention_cache.layers + cache.cross_attention_cache.layers
            if self.is_pair(cache)
            else cache.layers
        )
        return sum((layer.keys * layer.values).sum(2) for layer in found) + x

    def is_pair(self, cache):
        return hasattr(cache, "cross_attention_cache")


class Writes(nn.Module):
    """Adds a step to each layer of a cache."""

    def forward(self, x, cache):
        total = torch.zeros(())
        for layer in range(len(cache.layers)):
            keys, values = cache.update(x, x * 2, layer)
            total = total + (keys * values).sum(2)
        return total


def _case(model: nn.Module, dynamic: Any, make: Any, sizes: tuple[Any, ...]) -> Case:
    first, *others = [make(*size) if isinstance(size, tuple) else make(size) for size in sizes]
    x = torch.ones(2, 2, 1, 4) if isinstance(model, Writes) else torch.ones(2, 2, 4)
    return Case(
        model, (x,), {"cache": first}, {"x": None, "cache": dynamic}, tuple(at(x, cache=each) for each in others)
    )


PAST = {2: "past"}


@feature(GROUP, "`DynamicCache` of two layers, the flat form")
def flat() -> Case:
    return _case(Writes(), [PAST] * 4, _dynamic, (3, 5, 1))


@feature(GROUP, "`DynamicCache` of two layers, by layer")
def by_layer() -> Case:
    return _case(Writes(), [(PAST, PAST), (PAST, PAST)], _dynamic, (3, 5, 1))


@feature(GROUP, "`DynamicCache` of two layers, keys and then values")
def by_kind() -> Case:
    return _case(Writes(), [[PAST, PAST], [PAST, PAST]], _dynamic, (3, 5, 1))


@feature(GROUP, "`DynamicCache`, `{'key_cache': ..., 'value_cache': ...}`")
def by_name() -> Case:
    return _case(Writes(), {"key_cache": [PAST, PAST], "value_cache": [PAST, PAST]}, _dynamic, (3, 5))


@feature(GROUP, "`EncoderDecoderCache`, the flat form")
def pair_flat() -> Case:
    source = {2: "source"}
    return _case(Reads(), [PAST, PAST, source, source], _both, ((3, 4), (5, 2)))


@feature(GROUP, "`EncoderDecoderCache`, the nested form")
def pair_nested() -> Case:
    source = {2: "source"}
    return _case(Reads(), [[[PAST], [PAST]], [[source], [source]]], _both, ((3, 4), (5, 2)))


@feature(GROUP, "a cache of a sliding layer")
def sliding() -> Case:
    return _case(Writes(), [PAST, PAST], _sliding, (3, 5))


@feature(GROUP, "a hybrid cache: a sliding layer and a full one")
def hybrid() -> Case:
    return _case(Writes(), [PAST] * 4, _hybrid, (3, 5))


@feature(GROUP, "a static cache with an open batch")
def static() -> Case:
    return Case(
        Reads(),
        (torch.ones(2, 2, 4),),
        {"cache": _static(2)},
        {"x": {0: "batch"}, "cache": [{0: "batch"}, {0: "batch"}]},
        (at(torch.ones(3, 2, 4), cache=_static(3)),),
    )
