"""Walks over what a module holds, and over the globals of its code, run nothing of the classes of what they meet."""

from __future__ import annotations

import math
from collections import OrderedDict, UserDict, deque
from typing import Any

import numpy as np
import pytest
import torch

import anyshape
from anyshape.modules.kept_containers import KeptContainers
from anyshape.modules.numbers_in_code import numbers_in_code
from anyshape.modules.slots import changed_slots, read_slots
from anyshape.modules.state import ModuleState
from anyshape.modules.user_code import functions_beside, user_functions

RUN: list[str] = []


def _refusing(name: str) -> Any:
    def method(self: Any, *given: Any, **options: Any) -> Any:
        RUN.append(name)
        raise RuntimeError(f"{name} of the user's class ran")

    return method


_METHODS = (
    "__len__",
    "__iter__",
    "__eq__",
    "__ne__",
    "__bool__",
    "__getattr__",
    "__getitem__",
    "__contains__",
    "__repr__",
)
_OTHERS = ("items", "values", "keys", "get", "pop", "update", "clear", "extend", "append", "copy", "__reversed__")


def odd(base: type, *, is_proxy: bool = True) -> Any:
    """An object of a class that extends the base, and whose methods all raise."""
    own: dict[str, Any] = {name: _refusing(name) for name in (*_METHODS, *_OTHERS)}
    if is_proxy:
        own["__class__"] = property(_refusing("__class__"))
    if base in (object, tuple, int, str):
        own["__hash__"] = _refusing("__hash__")
    kind: Any = type(f"Odd{base.__name__}", (base,), own)
    return base.__new__(kind, *(((1, 2),) if base is tuple else ()))


class Called(torch.nn.Module):
    """Its code names odd objects."""

    limit = odd(tuple, is_proxy=False)

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if IMPORT is None or TABLE is None else self.linear(x)


OBJECTS = {base.__name__: odd(base) for base in (object, tuple, list, dict, OrderedDict, set, deque, UserDict)}
LAZY = odd(object)
GLOBAL = odd(dict)
IMPORT = odd(object, is_proxy=False)
TABLE = odd(dict, is_proxy=False)


class Model(torch.nn.Module):
    limit = odd(tuple)

    def __init__(self, held: Any) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 2)
        vars(self).update(held=held, more={"held": [held]})  # torch's own `__setattr__` asks for `__class__`

    def forward(self, x: torch.Tensor, given: Any = LAZY) -> torch.Tensor:
        if LAZY is None or GLOBAL is None:
            return x
        return self.linear(x)


@pytest.mark.parametrize("name", OBJECTS)
def test_no_walk_runs_code_of_an_object_that_it_meets(name: str) -> None:
    RUN.clear()
    module = Model(OBJECTS[name])
    state = ModuleState(module)
    before = read_slots(module)
    assert user_functions(module)
    assert functions_beside(module)
    numbers_in_code(module)
    assert changed_slots(before, read_slots(module)) == []
    assert not state.restore(thorough=True)
    assert RUN == []


@pytest.mark.parametrize("base", [list, dict, OrderedDict, set, deque], ids=lambda base: base.__name__)
def test_a_container_of_an_odd_class_is_put_back_past_its_methods(base: Any) -> None:
    RUN.clear()
    content = odd(base)
    put = {list: list.append, deque: deque.append, set: set.add}.get(base)
    if put is None:
        base.__setitem__(content, "a", 1)
    else:
        put(content, 1)
    kept = KeptContainers()
    kept.add(content)
    if put is None:
        base.__setitem__(content, "b", 2)
    else:
        put(content, 2)
    assert kept.restore() != [frozenset()]
    assert [*base.__iter__(content)] == ["a" if put is None else 1]
    assert kept.restore() == [frozenset()]
    assert RUN == []


def test_an_ordered_dict_gets_its_order_back() -> None:
    content = OrderedDict(a=1, b=2)
    kept = KeptContainers()
    kept.add(content)
    content.move_to_end("a")
    kept.restore()
    assert list(content) == ["a", "b"]


def test_a_model_with_such_objects_is_exported() -> None:
    RUN.clear()
    exported = anyshape.export(Called(), lambda batch=3: torch.randn(batch, 4), where=["batch <= 8"], verify="quick")
    assert exported.is_kept


class Pooled(Called):
    """Captured by traces: numbers and arrays in its globals are opened, and odd objects lie beside them."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x)[: math.floor(np.sqrt(x.shape[0] * x.shape[0]))]


def test_a_model_whose_numbers_are_opened_is_exported_beside_such_objects() -> None:
    exported = anyshape.export(Pooled(), lambda batch=3: torch.randn(batch, 4), where=["batch <= 8"], verify="quick")
    assert exported.is_kept
