"""A function behind `lru_cache` is called through while a module is captured, and cached as before afterwards."""

from __future__ import annotations

from functools import lru_cache

import pytest
import torch
from torch import nn

import anyshape
from anyshape.intercept.patching import uncached


@lru_cache(maxsize=2)
def table(length):
    return torch.arange(length).float()


class Model(nn.Module):
    @lru_cache(maxsize=2)  # noqa: B019 - as people write it
    def own(self, length):
        return torch.ones(length)

    @staticmethod
    @lru_cache(maxsize=2)
    def of_class(length):
        return torch.ones(length)

    def forward(self, x):
        return x * table(x.shape[-1]) + self.own(x.shape[-1]) + self.of_class(x.shape[-1])


def test_nothing_is_remembered_while_it_is_entered() -> None:
    table.cache_clear()
    Model.own.cache_clear()
    Model.of_class.cache_clear()
    model = Model()
    with uncached(model), pytest.raises(ZeroDivisionError):
        model(torch.ones(3))
        raise ZeroDivisionError
    caches = (table, Model.own, Model.of_class)
    assert [cache.cache_info().currsize for cache in caches] == [0, 0, 0]
    model(torch.ones(3))
    assert [cache.cache_info().currsize for cache in caches] == [1, 1, 1]


@pytest.mark.parametrize("strategy", ["symbolic", "generalized"])
def test_a_traced_tensor_is_not_found_by_the_next_call(strategy) -> None:
    model = Model().eval()
    result = anyshape.export(model, lambda batch=2, seq=3: torch.randn(batch, seq), None, strategy=strategy)
    assert result.strategy == strategy
    assert type(model(torch.ones(300))) is torch.Tensor
