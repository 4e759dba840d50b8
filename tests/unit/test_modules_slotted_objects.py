"""Attributes in `__slots__` are read, compared and put back as those of a `__dict__` are."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
import torch

from anyshape.modules.reach import put_slot_values, slot_values
from anyshape.modules.slots import changed_slots, putting, read_slots
from anyshape.modules.state import ModuleState


class Above:
    __slots__ = ("__hidden", "first")

    def __init__(self) -> None:
        self.first: Any = 1
        self.__hidden = 2

    def hide(self, value: int) -> None:
        self.__hidden = value


class Both(Above):
    """Slots of two classes, and a `__dict__` beside them."""

    __slots__ = ("__dict__", "items", "unset")

    def __init__(self) -> None:
        super().__init__()
        self.items = [1]
        self.free = 5


@dataclass(frozen=True, slots=True)
class Frozen:
    size: int


class Holder(torch.nn.Module):
    __slots__ = ("own",)

    def __init__(self) -> None:
        super().__init__()
        self.own: Any = 7
        self.box: Any = Both()
        self.frozen = Frozen(3)


CHANGES = {
    "box.first": lambda module: setattr(module.box, "first", 9),
    "box._Above__hidden": lambda module: module.box.hide(9),
    "box.unset": lambda module: setattr(module.box, "unset", 9),
    "box.items.0": lambda module: module.box.items.__setitem__(0, 9),
    "box.free": lambda module: setattr(module.box, "free", 9),
    "frozen.size": lambda module: object.__setattr__(module.frozen, "size", 9),
    "own": lambda module: setattr(module, "own", 9),
}


def contents(module: Holder) -> Any:
    return (slot_values(module), slot_values(module.box), dict(vars(module.box)), module.frozen, list(module.box.items))


@pytest.mark.parametrize("path", CHANGES)
def test_a_change_is_found_by_its_path_and_undone(path: str) -> None:
    module = Holder()
    before, state, first = contents(module), ModuleState(module), read_slots(module)
    assert not state.restore()
    CHANGES[path](module)
    assert [slot.path for slot in changed_slots(first, read_slots(module))] == [path]
    assert len(state.restore()) == 1
    assert contents(module) == before
    assert not state.restore()


@pytest.mark.parametrize("path", CHANGES)
def test_another_value_is_there_for_a_while(path: str) -> None:
    module = Holder()
    before, first = contents(module), read_slots(module)
    CHANGES[path](module)
    (slot,) = changed_slots(first, read_slots(module))
    changed = contents(module)
    with putting([slot], [first[path][1] if path in first else 4]):
        assert slot.get() == (first[path][1] if path in first else 4)
        assert path == "box.unset" or contents(module) == before
    assert contents(module) == changed


def test_a_slot_that_loses_its_value_gets_it_back() -> None:
    box = Both()
    kept = slot_values(box)
    del box.first
    box.unset = 1
    assert put_slot_values(box, kept) == {("first", True), ("unset", True)}
    assert slot_values(box) == kept


def test_a_tensor_in_a_slot_is_put_back() -> None:
    module = Holder()
    module.box.first = torch.zeros(2)
    state = ModuleState(module)
    module.box.first += 1
    assert state.restore()
    assert module.box.first.tolist() == [0, 0]


def test_slots_of_the_standard_library_are_left_out() -> None:
    assert slot_values(Fraction(1, 3)) == {}
