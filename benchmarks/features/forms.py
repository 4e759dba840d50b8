"""The forms in which torch and transformers declare open axes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.export import Dim

from features.feature import Case, at, feature
from features.language import rows

GROUP = "declarations"


class Sum(nn.Module):
    def forward(self, x, y):
        return x + y, x.sum(1)


class Joined(nn.Module):
    def forward(self, x, y):
        return torch.cat([x, y])


class Listed(nn.Module):
    def forward(self, parts: list[torch.Tensor], more: dict[str, torch.Tensor]):
        return torch.cat(parts).sum(0) + more["shift"]


class Cached(nn.Module):
    def forward(self, x, cache):
        keys, values = cache.update(x, x, 0)
        return (keys * values).sum(2)


def _sum(dynamic: Any) -> Case:
    return Case(Sum(), (rows(3, 4), rows(3, 4)), dynamic=dynamic, others=(at(rows(6, 4), rows(6, 4)),))


def _wide(dynamic: Any) -> Case:
    return Case(Sum(), (rows(3, 4), rows(3, 4)), dynamic=dynamic, others=(at(rows(6, 9), rows(6, 9)),))


@feature(GROUP, "`Dim` shared by two inputs")
def shared() -> Case:
    batch = Dim("batch", min=1, max=64)
    return _sum({"x": {0: batch}, "y": {0: batch}})


@feature(GROUP, "`Dim.DYNAMIC`")
def dynamic() -> Case:
    return _sum({"x": {0: Dim.DYNAMIC}, "y": {0: Dim.DYNAMIC}})


@feature(GROUP, "`Dim.AUTO`")
def auto() -> Case:
    return _sum({"x": {0: Dim.AUTO, 1: Dim.AUTO}, "y": {0: Dim.AUTO, 1: Dim.AUTO}})


@feature(GROUP, "`Dim.STATIC`, an int and `None` beside open axes")
def static() -> Case:
    return _sum({"x": (Dim.DYNAMIC, Dim.STATIC), "y": (Dim.DYNAMIC, 4)})


@feature(GROUP, "`None` for an input")
def none() -> Case:
    return Case(
        Joined(), (rows(3, 4), rows(2, 4)), dynamic={"x": {0: "a"}, "y": None}, others=(at(rows(6, 4), rows(2, 4)),)
    )


@feature(GROUP, "a tuple of tuples, by position")
def by_position() -> Case:
    return _sum((("batch", None), ("batch", None)))


@feature(GROUP, "derived dims, `2*batch`")
def derived() -> Case:
    batch = Dim("batch", min=1, max=64)
    return Case(
        Joined(),
        (rows(3, 4), rows(6, 4)),
        dynamic={"x": {0: batch}, "y": {0: 2 * batch}},
        others=(at(rows(5, 4), rows(10, 4)),),
    )


@feature(GROUP, "derived dims, `batch + 1`")
def derived_sum() -> Case:
    batch = Dim("batch", min=1, max=64)
    return Case(
        Joined(),
        (rows(3, 4), rows(4, 4)),
        dynamic={"x": {0: batch}, "y": {0: batch + 1}},
        others=(at(rows(5, 4), rows(6, 4)),),
    )


@feature(GROUP, "axes without a name, `[0, 1]` of `dynamic_axes`")
def unnamed() -> Case:
    return _wide({"x": [0, 1], "y": [0, 1]})


@feature(GROUP, "`dynamic_axes` with names")
def named_axes() -> Case:
    return _wide({"x": {0: "batch", 1: "width"}, "y": {0: "batch", 1: "width"}})


@feature(GROUP, "`ShapesCollection`")
def collection() -> Case:
    x, y = rows(3, 4), rows(3, 4)
    found = torch.export.ShapesCollection()
    found[x] = {0: Dim.DYNAMIC}
    found[y] = {0: Dim.DYNAMIC}
    return Case(Sum(), (x, y), dynamic=found, others=(at(rows(6, 4), rows(6, 4)),))


@feature(GROUP, "`AdditionalInputs`")
def additional() -> Case:
    found = torch.export.AdditionalInputs()
    found.add((rows(5, 4), rows(5, 4)))
    return Case(Sum(), (rows(3, 4), rows(3, 4)), dynamic=found, others=(at(rows(6, 4), rows(6, 4)),))


@feature(GROUP, "lists and dicts of tensors")
def nested() -> Case:
    def call(a: int, b: int) -> Any:
        return at([rows(a, 4), rows(b, 4)], {"shift": torch.ones(4)})

    return Case(
        Listed(),
        *call(2, 3),
        dynamic={"parts": [{0: "a"}, {0: "b"}], "more": {"shift": None}},
        others=(call(5, 1), call(1, 7)),
    )


def _cache(length: int) -> Any:
    from transformers import DynamicCache

    cache = DynamicCache()
    state = torch.linspace(-1, 1, 2 * 2 * length * 4).reshape(2, 2, length, 4)
    cache.update(state, state * 2, 0)
    return cache


def _cached(dynamic: Any) -> Case:
    x = torch.ones(2, 2, 1, 4)
    return Case(
        Cached(),
        (x,),
        {"cache": _cache(3)},
        dynamic=dynamic,
        others=(at(x, cache=_cache(5)), at(x * 2, cache=_cache(1))),
    )


@feature(GROUP, "`DynamicCache`, the flat list form")
def cache_flat() -> Case:
    return _cached({"x": None, "cache": [{2: "past"}, {2: "past"}]})


@feature(GROUP, "`DynamicCache`, the nested form")
def cache_nested() -> Case:
    return _cached({"x": None, "cache": [[{2: "past"}], [{2: "past"}]]})


@feature(GROUP, "an example with an empty axis")
def empty() -> Case:
    return Case(
        Joined(),
        (rows(3, 4), torch.zeros(0, 4)),
        dynamic={"x": {0: "a"}, "y": {0: "b"}},
        others=(at(rows(2, 4), rows(5, 4)), at(rows(2, 4), torch.zeros(0, 4))),
    )


@feature(GROUP, "a `Dim` with `min=0`: torch's default, read as 1")
def zero() -> Case:
    return Case(
        Joined(),
        (rows(3, 4), rows(2, 4)),
        dynamic={"x": {0: Dim("a", min=1, max=64)}, "y": {0: Dim("b", min=0, max=64)}},
        others=(at(rows(1, 4), rows(6, 4)),),
    )
