"""The values that a module keeps between calls, each with a path: `ema`, `encoder.h`, `cache.0`, `TOTAL`.

A slot can be read and written by its path also after forward has replaced the containers that lead to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from anyshape.modules.plain_access import (
    attributes_of,
    container_kind,
    is_a,
    items_of,
    keys_of,
    length_of,
    module_name,
)
from anyshape.modules.reach import GENERATORS, MISSING, Place, outside_places, put_slot_values, slot_values, slots_of
from anyshape.modules.same_values import is_same

_DEPTH = 6
_LARGE = 64 * 2**20
_TORCH = frozenset(vars(torch.nn.Module())) | {"training"}
_OPAQUE = (str, bytes, type, torch.Tensor, np.ndarray, *GENERATORS)


Step = tuple[str, Any]
_NOTHING = (None, None)


@dataclass(frozen=True, eq=False)
class Slot:
    """One value: where the search begins (the module, or a variable outside it), and the steps from there."""

    path: str
    root: torch.nn.Module | Place
    steps: tuple[Step, ...] = ()

    def get(self) -> Any:
        """The value, or MISSING where there is none now."""
        value = self.root.get() if isinstance(self.root, Place) else self.root
        for step in self.steps:
            value = _take(value, step)
        return value

    def owner(self) -> tuple[int, str] | None:
        """The id of the object that has the value as an attribute, and the name; None for other values."""
        if not self.steps or self.steps[-1][0] != "attribute":
            return None
        value = self.root.get() if isinstance(self.root, Place) else self.root
        for step in self.steps[:-1]:
            value = _take(value, step)
        return id(value), self.steps[-1][1]

    def set(self, value: Any) -> None:
        """Put a value there. What is a buffer or a parameter becomes a plain attribute of its part.

        Raises LookupError where the container that would hold it is not there.
        """
        if isinstance(self.root, Place):
            self.root.set(_put(self.root.get(), self.steps, value))
        else:
            _put(self.root, self.steps, value)


Slots = Mapping[str, tuple[Slot, Any]]
"""Readings by path: the slot, and a copy of its value."""


def read_slots(module: torch.nn.Module, earlier: Slots | None = None) -> dict[str, tuple[Slot, Any]]:
    """Every slot with a copy of its value. Parameters are left out where they are large.

    A tensor that has the value of an `earlier` reading is that reading's copy: many readings hold the weights once.
    """
    found: dict[str, tuple[Slot, Any]] = {}
    known = earlier or {}
    seen: set[int] = set()
    roots: list[tuple[str, Any, Any]] = [("", module, module)]
    roots += [(place.name, place, place.get()) for place in outside_places(module)]
    for name, root, value in roots:
        for path, steps, leaf in _leaves(value, name, (), seen):
            found.setdefault(path, (Slot(path, root, steps), _copied(leaf, known.get(path, _NOTHING)[1])))
    return found


def changed_slots(before: Slots, after: Slots) -> list[Slot]:
    """The slots whose values are not equal, those that appeared or vanished included."""
    paths = dict.fromkeys((*before, *after))
    absent = (None, MISSING)
    return [
        (before.get(path) or after[path])[0]
        for path in paths
        if not is_same(before.get(path, absent)[1], after.get(path, absent)[1])
    ]


@contextmanager
def putting(slots: Sequence[Slot], values: Sequence[Any]) -> Iterator[None]:
    """Within this the slots have these values; afterwards everything that leads to them is as before."""
    parts = {id(part): part for slot in slots for part in _along(slot) if isinstance(part, torch.nn.Module)}
    kept = [(part, dict(vars(part)), dict(part._buffers), dict(part._parameters)) for part in parts.values()]
    places = [(slot.root, slot.root.get()) for slot in slots if isinstance(slot.root, Place)]
    containers = [(each, _content_of(each)) for slot in slots for each in _containers_on(slot)]
    slotted = [(each, slot_values(each)) for slot in slots for each in _along(slot) if slots_of(each)]
    try:
        for slot, value in zip(slots, values, strict=True):
            slot.set(value)
        yield
    finally:
        for container, content in containers:
            _refill(container, content)
        for each, attributes in slotted:
            put_slot_values(each, attributes)
        for place, value in places:
            place.set(value)
        for part, attributes, buffers, parameters in kept:
            for live, saved in ((part._buffers, buffers), (part._parameters, parameters)):
                live.clear()
                live.update(saved)  # type: ignore[arg-type]
            vars(part).clear()
            vars(part).update(attributes)


def _leaves(
    value: Any, path: str, steps: tuple[Step, ...], seen: set[int]
) -> Iterator[tuple[str, tuple[Step, ...], Any]]:
    children = None if len(steps) > _DEPTH and not is_a(value, torch.nn.Module) else _children(value)
    if children is None:
        if steps or not is_a(value, torch.nn.Module):
            yield path, steps, value
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    for step, child in children:
        name = str(step[1])
        yield from _leaves(child, f"{path}.{name}" if path else name, (*steps, step), seen)


def _children(value: Any) -> list[tuple[Step, Any]] | None:
    """The parts of a module, container or plain object; None for a leaf."""
    if is_a(value, torch.nn.Module):
        own = [(("attribute", name), item) for name, item in _attributes(value).items() if name not in _TORCH]
        own += [(("attribute", name), item) for name, item in value._buffers.items()]
        weights = [(("attribute", name), item) for name, item in value._parameters.items() if _is_small(item)]
        return [*own, *weights, *((("part", name), part) for name, part in value._modules.items() if part is not None)]
    if is_a(value, dict):
        return [(("item", key), item) for key, item in zip(keys_of(value), items_of(value), strict=True)]
    if is_a(value, (list, tuple, deque)):
        return [(("item", index), item) for index, item in enumerate(items_of(value))]
    if is_a(value, _OPAQUE) or callable(value) or module_name(value) in ("builtins", "torch"):
        return None
    if attributes_of(value) is None and not slots_of(value):
        return None
    return [(("attribute", name), item) for name, item in _attributes(value).items()]


def _attributes(value: Any) -> Mapping[str, Any]:
    """The attributes of an object, those in `__slots__` included."""
    own = attributes_of(value) or {}
    return {**own, **slot_values(value)} if slots_of(value) else own


def _put_attribute(value: Any, name: str, new: Any) -> None:
    """Set an attribute past the code of its class; MISSING removes it."""
    if name in slots_of(value):
        others = {key: item for key, item in slot_values(value).items() if key != name}
        put_slot_values(value, others if new is MISSING else {**others, name: new})
    else:
        own = attributes_of(value)
        if own is None:
            raise LookupError(name)
        own.pop(name, None) if new is MISSING else own.__setitem__(name, new)


def _take(value: Any, step: Step) -> Any:
    kind, key = step
    if is_a(value, torch.nn.Module):
        spaces = (value._modules,) if kind == "part" else (_attributes(value), value._buffers, value._parameters)
        return next((space[key] for space in spaces if key in space), MISSING)
    if kind == "attribute":
        return _attributes(value).get(key, MISSING)
    container = container_kind(value)
    if container is None or container in (set, frozenset):
        return MISSING
    try:
        return dict.get(value, key, MISSING) if issubclass(container, dict) else container.__getitem__(value, key)
    except (IndexError, TypeError):
        return MISSING


def _put(value: Any, steps: tuple[Step, ...], new: Any) -> Any:
    """The value with something new at the end of the steps: itself, or another tuple where it is one."""
    if not steps:
        return new
    if value is MISSING or value is None:
        raise LookupError(steps[0][1])
    step, rest = steps[0], steps[1:]
    inner = _put(_take(value, step), rest, new)
    kind, key = step
    if is_a(value, torch.nn.Module):
        if kind == "attribute":
            value._buffers.pop(key, None)
            value._parameters.pop(key, None)
            _put_attribute(value, key, inner)
    elif is_a(value, tuple):
        items = items_of(value)
        items[key] = inner
        return type(value)(*items) if hasattr(type(value), "_fields") else type(value)(items)
    elif kind == "attribute":
        _put_attribute(value, key, inner)
    elif is_a(value, dict):
        plain = container_kind(value)
        if inner is not MISSING:
            plain.__setitem__(value, key, inner)
        elif dict.get(value, key, MISSING) is not MISSING:
            plain.__delitem__(value, key)
    elif is_a(value, (list, deque)) and key <= length_of(value):
        plain = container_kind(value)
        while length_of(value) > key and inner is MISSING:
            plain.pop(value)
        if inner is not MISSING and key == length_of(value):
            plain.append(value, inner)
        elif inner is not MISSING:
            plain.__setitem__(value, key, inner)
    else:
        raise LookupError(key)
    return value


def _along(slot: Slot) -> Iterator[Any]:
    value = slot.root.get() if isinstance(slot.root, Place) else slot.root
    yield value
    for step in slot.steps[:-1]:
        value = _take(value, step)
        yield value


def _containers_on(slot: Slot) -> list[Any]:
    along = [value for value in _along(slot) if not is_a(value, torch.nn.Module)]
    held = [part for value in along for part in (value, attributes_of(value))]
    return [value for value in held if is_a(value, (list, dict, deque))]


def _content_of(container: Any) -> list[Any]:
    return list(zip(keys_of(container), items_of(container), strict=True))


def _refill(container: Any, content: list[Any]) -> None:
    kind = container_kind(container)
    kind.clear(container)
    for key, item in content:
        kind.__setitem__(container, key, item) if issubclass(kind, dict) else kind.append(container, item)


def _copied(value: Any, earlier: Any = None) -> Any:
    if is_a(value, torch.Tensor):
        is_known = is_a(earlier, torch.Tensor) and is_same(earlier, value)
        return earlier if is_known else value.detach().clone()
    if is_a(value, set):
        return set.copy(value)
    return value.copy() if is_a(value, np.ndarray) else value


def _is_small(parameter: torch.Tensor | None) -> bool:
    return parameter is not None and parameter.numel() * parameter.element_size() <= _LARGE
