"""A function behind `lru_cache` is called through while a module is captured, and cached as before afterwards."""

from __future__ import annotations

from functools import lru_cache, wraps

import pytest
import torch
from torch import nn

import anyshape
from anyshape.intercept.patching import uncached


@lru_cache(maxsize=2)
def table(length):
    return torch.arange(length).float()


def cached_unless_compiled(function):
    """A decorator that holds the cache in its closure, as that of transformers."""
    cached = lru_cache(maxsize=2)(function)

    @wraps(function)
    def call(*args):
        return function(*args) if torch.compiler.is_compiling() else cached(*args)

    call.cache_info, call.cache_clear = cached.cache_info, cached.cache_clear
    return call


class Model(nn.Module):
    @lru_cache(maxsize=2)  # noqa: B019 - as people write it
    def own(self, length):
        return torch.ones(length)

    @staticmethod
    @lru_cache(maxsize=2)
    def of_class(length):
        return torch.ones(length)

    @staticmethod
    @cached_unless_compiled
    def in_closure(length):
        return torch.ones(length)

    def forward(self, x):
        length = x.shape[-1]
        return x * table(length) + self.own(length) + self.of_class(length) + self.in_closure(length)


def test_nothing_is_remembered_while_it_is_entered() -> None:
    table.cache_clear()
    Model.own.cache_clear()
    Model.of_class.cache_clear()
    Model.in_closure.cache_clear()
    model = Model()
    with uncached(model), pytest.raises(ZeroDivisionError):
        model(torch.ones(3))
        raise ZeroDivisionError
    caches = (table, Model.own, Model.of_class, Model.in_closure)
    assert [cache.cache_info().currsize for cache in caches] == [0, 0, 0, 0]
    model(torch.ones(3))
    assert [cache.cache_info().currsize for cache in caches] == [1, 1, 1, 1]


@pytest.mark.parametrize("strategy", ["symbolic", "generalized"])
def test_a_traced_tensor_is_not_found_by_the_next_call(strategy) -> None:
    model = Model().eval()
    result = anyshape.export(model, lambda batch=2, seq=3: torch.randn(batch, seq), None, strategy=strategy)
    assert result.strategy == strategy
    assert type(model(torch.ones(300))) is torch.Tensor
