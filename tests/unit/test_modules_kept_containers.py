"""Containers are put back in place, and what was written is known, whichever of them it is."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

from anyshape.modules.kept_containers import KeptContainers
from anyshape.modules.reach import NOTHING, REWRITTEN, WRITTEN
from anyshape.modules.state import ModuleState

OLD = [1]


def containers() -> list[Any]:
    return [{"a": OLD, "b": 2}, [3, OLD], {4, 5}, deque([6]), OrderedDict(c=7, d=8), {}, []]


def kept_of(found: list[Any]) -> KeptContainers:
    kept = KeptContainers()
    for each in found:
        kept.add(each)
    return kept


def test_nothing_is_written_where_nothing_changed() -> None:
    found = containers()
    kept = kept_of(found)
    OLD.append(2)  # inside of an item, which is a container of its own
    assert kept.restore() == [NOTHING] * len(found)


CHANGES: list[tuple[int, Callable[[Any], Any], frozenset[Any]]] = [
    (0, lambda each: each.update(a=list(OLD)), frozenset({("a", True)})),
    (0, lambda each: each.update(z=1), frozenset({("<new>", True)})),
    (0, lambda each: each.pop("b"), frozenset({("b", True)})),
    (0, lambda each: each.update(training=True), frozenset({("<new>", True)})),
    (1, lambda each: each.reverse(), WRITTEN),
    (1, lambda each: each.append(1), WRITTEN),
    (2, lambda each: each.add(9), WRITTEN),
    (3, lambda each: each.popleft(), WRITTEN),
    (4, lambda each: each.update(c=8), frozenset({("c", True)})),
    (5, lambda each: each.update(new=1), frozenset({("<new>", True)})),
    (6, lambda each: each.append(1), WRITTEN),
]


@pytest.mark.parametrize(("place", "change", "written"), CHANGES)
def test_a_change_of_one_container_is_undone(place: int, change: Any, written: frozenset[Any]) -> None:
    found = containers()
    before = [each.copy() for each in found]
    kept = kept_of(found)
    change(found[place])
    assert kept.restore() == [written if each == place else NOTHING for each in range(len(found))]
    assert found == before
    assert kept.restore() == [NOTHING] * len(found)


def test_items_that_moved_from_one_container_to_the_next_are_noticed() -> None:
    found: list[list[int]] = [[1, 2], [3]]
    kept = kept_of(found)
    found[1].insert(0, found[0].pop())
    assert kept.restore() == [WRITTEN, WRITTEN]
    assert found == [[1, 2], [3]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.complex64], ids=str)
def test_a_tensor_is_written_if_its_bits_are_others(dtype: torch.dtype) -> None:
    module = torch.nn.Module()
    module.register_buffer("values", torch.tensor([float("nan"), 0.0, 1.0, 2.0], dtype=dtype))
    state = ModuleState(module)
    assert not state.restore()
    module.values[1] = -0.0
    assert state.restore()
    assert not torch.signbit(torch.view_as_real(module.values) if dtype.is_complex else module.values).any()


def test_a_write_of_an_equal_value_is_a_write_and_is_told_apart() -> None:
    values = [torch.zeros(2), 1000.5]
    named = {"a": torch.ones(2), "b": torch.ones(2)}
    kept = kept_of([values, named])
    values[0] = torch.zeros(2)
    named.update(a=torch.ones(2), b=torch.zeros(2))
    assert kept.restore() == [REWRITTEN, frozenset({("a", False), ("b", True)})]


def test_a_tensor_into_which_its_own_values_are_written_is_written() -> None:
    module = torch.nn.Module()
    module.register_buffer("values", torch.ones(3))
    state = ModuleState(module)
    module.values.copy_(torch.ones(3))
    assert [key for _, key in state.restore()] == [(None, False)]
    module.values.mul_(2)
    assert [key for _, key in state.restore()] == [(None, True)]
    assert not state.restore()
