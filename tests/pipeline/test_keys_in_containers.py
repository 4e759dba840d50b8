"""Keys that are made of several sizes, in containers of any class: the file is compared where a key is there."""

from __future__ import annotations

import collections
import contextlib
import enum
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import anyshape
from anyshape.explore import Costing, EachSize, find_unfollowed
from anyshape.exporting.size_census import SizeCensus
from anyshape.inputs import declare, flatten_outputs
from anyshape.modules.look_ups import numbers_of_keys
from anyshape.modules.unfollowed_uses import watch_uses
from anyshape.verify import Reference

PAIR = (40, 56)
WHERE = ["1 <= h <= 64", "1 <= w <= 64"]


class Table:
    """A container of the user's own, over a dict."""

    def __init__(self, entries: dict[Any, float]) -> None:
        self._entries = entries

    def __getitem__(self, key: Any) -> float:
        return self._entries.get(key, 1.0)

    def __contains__(self, key: Any) -> bool:
        return key in self._entries

    def get(self, key: Any, other: float) -> float:
        return self._entries.get(key, other)


class Slotted:
    __slots__ = ("names",)

    def __init__(self, *names: str) -> None:
        self.names = set(names)

    def __contains__(self, name: str) -> bool:
        return name in self.names


@dataclass(frozen=True)
class Size:
    height: int
    width: int


@dataclass(frozen=True, slots=True)
class Slots:
    height: int
    width: int


class WithDefault(dict):  # type: ignore[type-arg]
    def __missing__(self, key: Any) -> float:
        return 1.0


class Names(enum.Enum):
    N40_56 = 2.0


def module_with(held: Any, forward: Callable[[Any, torch.Tensor, int, int], torch.Tensor]) -> nn.Module:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.held = held

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return forward(self.held, x, x.shape[0], x.shape[1])

    return Model()


def in_text(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    return x * 2 if f"{h}x{w}" in t else x


def in_pair(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    return x * 2 if (h, w) in t else x


def in_keys(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    return x * 2 if (h, w) in t.keys() else x  # noqa: SIM118


def of_dict(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    return x * dict.get(t, (h, w), 1.0)


def item(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    return x * t[h, w]


def got(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    return x * t.get((h, w), 1.0)


def attribute(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    return x * getattr(t, f"n{h}_{w}", 1.0)


def has_attribute(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    return x * 2 if hasattr(t, f"n{h}_{w}") else x


def named(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    name = f"N{h}_{w}"
    return x * t[name].value if name in t.__members__ else x


def looped(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    for name, value in t:
        if name == f"{h}x{w}":
            return x * value
    return x


def keyed(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    size = Size(h, w)
    return x * 2 if size in t else x


def got_keyed(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    return x * t.get(Slots(h, w), 1.0)


def named_fields(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    return x * 2 if Size(width=w, height=h) in t else x


def joined_in_place(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    return x * 2 if "x".join(str(size) for size in (h, w)).strip() in t else x


def in_order(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    return x * 2 if (h, w) > t else x


def got_buffer(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    try:
        return x * t.get_buffer(f"n{h}_{w}")
    except AttributeError:
        return x


def got_part(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    try:
        return nn.Module.get_submodule(t, f"{h}x{w}")(x) * 2
    except AttributeError:
        return x


def of_variables(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    return x * vars(t).get(f"n{h}_{w}", 1.0)


def named_buffer(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    return x * dict(t.named_buffers()).get(f"n{h}_{w}", 1.0)


def row(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    return x * 2 if (t == np.array([h, w])).all(1).any() else x


def row_of_tensor(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    return x * 2 if (t == torch.tensor([h, w])).all(1).any() else x


def inside_text(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    return x * 2 if t.find(f";{h}x{w};") >= 0 else x


def by_value(t: Any, x: torch.Tensor, h: int, w: int) -> torch.Tensor:
    try:
        t((h, w))
    except ValueError:
        return x
    return x * 2


class Pairs(enum.Enum):
    SMALL = PAIR
    WIDE = (28, 61)


class WithAttributes(nn.Module):
    n40_56: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("n40_56", torch.ones(1))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "ParameterDict": lambda: module_with(nn.ParameterDict({"40x56": nn.Parameter(torch.ones(1))}), in_text),
    "ModuleDict": lambda: module_with(nn.ModuleDict({"40x56": nn.Identity()}), in_text),
    "an attribute of a module": lambda: module_with(WithAttributes(), has_attribute),
    "an attribute of an object": lambda: module_with(types.SimpleNamespace(n40_56=3.0), attribute),
    "frozenset": lambda: module_with(frozenset({PAIR, (41, 57)}), in_pair),
    "views of a dict": lambda: module_with({PAIR: 3.0}, in_keys),
    "a method of a class": lambda: module_with({PAIR: 3.0}, of_dict),
    "a class with __getitem__": lambda: module_with(Table({PAIR: 3.0}), item),
    "a class with __contains__": lambda: module_with(Table({PAIR: 3.0}), in_pair),
    "a class with get": lambda: module_with(Table({PAIR: 3.0}), got),
    "a class with slots": lambda: module_with(Slotted("40x56"), in_text),
    "a dict with __missing__": lambda: module_with(WithDefault({PAIR: 3.0}), item),
    "defaultdict": lambda: module_with(collections.defaultdict(lambda: 1.0, {PAIR: 3.0}), item),
    "ChainMap": lambda: module_with(collections.ChainMap({(1, 1): 1.0}, {PAIR: 3.0}), got),
    "UserDict": lambda: module_with(collections.UserDict({PAIR: 3.0}), in_pair),
    "MappingProxyType": lambda: module_with(types.MappingProxyType({PAIR: 3.0}), got),
    "Enum": lambda: module_with(Names, named),
    "a loop over names": lambda: module_with([("3x4", 2.0), ("7x9", 2.0), ("40x56", 3.0)], looped),
    "rows of an array": lambda: module_with(np.array([(3, 4), PAIR]), row),
    "a dataclass": lambda: module_with({Size(*PAIR), Size(7, 9)}, keyed),
    "a dataclass with slots": lambda: module_with({Slots(*PAIR): 3.0}, got_keyed),
    "a list of dataclasses": lambda: module_with([Size(7, 9), Size(*PAIR)], keyed),
    "a dataclass with named fields": lambda: module_with({Size(*PAIR), Size(7, 9)}, named_fields),
    "a text made in place": lambda: module_with({"40x56"}, joined_in_place),
    "beside a pair": lambda: module_with((40, 55), in_order),
    "get_buffer": lambda: module_with(WithAttributes(), got_buffer),
    "get_submodule": lambda: module_with(nn.ModuleDict({"40x56": nn.Identity()}), got_part),
    "vars": lambda: module_with(types.SimpleNamespace(n40_56=3.0), of_variables),
    "named_buffers": lambda: module_with(WithAttributes(), named_buffer),
    "a table of 200 keys": lambda: module_with({**{(n, 200): 1.0 for n in range(1, 200)}, PAIR: 3.0}, got),
}


def inputs(h: int = 6, w: int = 8) -> torch.Tensor:
    return torch.rand(h, w)


@pytest.mark.parametrize("name", MODELS)
def test_the_sizes_of_a_key_are_found(name: str) -> None:
    module = MODELS[name]()

    def watch(sizes: Any) -> Any:
        return watch_uses(lambda: module(inputs(**sizes)))

    found = find_unfollowed(declare(module, inputs, where=WHERE), watch, lambda sizes: True)
    assert {"h": 40, "w": 56} in found["w"].at_keys


@pytest.mark.parametrize("name", ["ParameterDict", "get_buffer", "a class with __contains__"])
def test_a_branch_by_a_key_is_right_everywhere(name: str, tmp_path: Path) -> None:
    module = MODELS[name]()
    anyshape.export(module, inputs, tmp_path / "m.onnx", where=WHERE)
    loaded = anyshape.load(tmp_path / "m.onnx")
    for h, w in (PAIR, (40, 55), (39, 56), (6, 8)):
        x = inputs(h, w)
        torch.testing.assert_close(loaded(x), module(x), atol=1e-5, rtol=1e-4)


def test_a_table_that_a_file_does_not_have_is_refused_with_its_line() -> None:
    with pytest.raises(anyshape.PromiseBroken, match=r"h=40, w=56(?s:.*)in Table\.(get|__getitem__)|in got:"):
        anyshape.export(MODELS["a class with get"](), inputs, where=WHERE)


def test_rows_of_a_tensor_that_python_looks_into_are_keys() -> None:
    module = module_with(torch.tensor([(3, 4), PAIR]), row_of_tensor)
    declared = declare(module, inputs, where=WHERE)
    with Reference(module, flatten_outputs) as reference:
        census = SizeCensus(declared, reference, Costing(module, declared), 0, lambda sizes: True)
        assert {"h": 40, "w": 56} in census.unfollowed([])["w"].at_keys


def test_texts_of_two_dims_without_keys_are_compared_at_all_pairs() -> None:
    module = module_with(";40x56;", inside_text)
    declared = declare(module, inputs, where=["1 <= h <= 8", "1 <= w <= 9"])
    found = find_unfollowed(declared, lambda sizes: watch_uses(lambda: module(inputs(**sizes))), lambda sizes: True)
    assert found["h"].joint == found["w"].joint == {"h", "w"}
    each = EachSize(declared, Costing(module, declared), found)
    compared = {(sizes["h"], sizes["w"]) for sizes in each.points({"h": 8, "w": 9})}
    assert {(h, w) for h in range(1, 9) for w in range(1, 10)} <= compared
    assert find_unfollowed_of("a class with get")["h"].joint == frozenset()


def find_unfollowed_of(name: str) -> Any:
    module = MODELS[name]()
    declared = declare(module, inputs, where=WHERE)
    return find_unfollowed(declared, lambda sizes: watch_uses(lambda: module(inputs(**sizes))), lambda sizes: True)


@pytest.mark.parametrize(("held", "forward"), [(Pairs, by_value), (";40x56;", inside_text)])
def test_two_dims_that_decide_together_are_right_wherever_the_contract_admits_them(
    held: Any, forward: Any, tmp_path: Path
) -> None:
    module = module_with(held, forward)
    anyshape.export(module, inputs, tmp_path / "m.onnx")
    loaded = anyshape.load(tmp_path / "m.onnx")
    for h, w in (PAIR, (28, 61), (40, 8), (6, 8)):
        x = inputs(h, w)
        with contextlib.suppress(anyshape.ContractBroken):
            torch.testing.assert_close(loaded(x), module(x), atol=1e-5, rtol=1e-4)


class Odd:
    """Its class computes in each method that a look at an object may call."""

    def __init__(self) -> None:
        self.n7_9 = 1.0
        object.__setattr__(self, "calls", [])

    def _called(self, *given: Any) -> Any:
        object.__getattribute__(self, "calls").append(given)
        raise RuntimeError

    __iter__ = __len__ = __hash__ = __eq__ = __contains__ = __getattr__ = __getattribute__ = _called  # type: ignore[assignment]


def test_keys_are_read_past_the_code_of_a_class() -> None:
    odd = Odd()
    assert (7, 9) in numbers_of_keys(odd)
    assert numbers_of_keys([odd, PAIR]) == [(), PAIR]
    assert object.__getattribute__(odd, "calls") == []


def test_calls_that_were_watched_before_take_no_part_of_what_is_affordable() -> None:
    module, asked = MODELS["a class with get"](), collections.Counter[tuple[int, ...]]()
    declared = declare(module, inputs, where=WHERE)

    def is_affordable(sizes: Any) -> bool:
        asked[tuple(sizes[name] for name in declared.domain.names)] += 1
        return True

    with Reference(module, flatten_outputs) as reference:
        census = SizeCensus(declared, reference, Costing(module, declared), 0, is_affordable)
        assert {"h": 40, "w": 56} in census.unfollowed([{"h": 20, "w": 30}])["w"].at_keys
    assert set(asked.values()) == {1}
