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

from anyshape.modules.reach import GENERATORS, MISSING, Place, outside_places, put_slot_values, slot_values, slots_of

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
    containers = [
        (each, dict(each) if isinstance(each, dict) else list(each)) for slot in slots for each in _containers_on(slot)
    ]
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


def is_same(one: Any, other: Any) -> bool:
    """Whether two values of a slot are equal; objects that cannot be compared are equal if they are one object."""
    if one is other:
        return True
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.dtype == other.dtype and one.shape == other.shape and _has_bytes_of(one, other)
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if type(one) is not type(other) or not isinstance(one, (bool, int, float, complex, str, bytes, set, frozenset)):
        return False
    return bool(one == other) or (one != one and other != other)


def _has_bytes_of(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of one dtype and shape have the same bytes: zeros of unequal signs have not."""
    flat = [each.detach() for each in (one, other)]
    if all(map(_is_plain, flat)) and one.device == other.device:
        size = flat[0].numel() * flat[0].element_size()
        starts = [each.storage_offset() * each.element_size() for each in flat]
        kind = torch.int64 if all(number % 8 == 0 for number in (size, *starts)) else torch.uint8
        return torch.equal(*(bytes_of_contiguous(each).view(kind) for each in flat))
    return tensor_bytes(one) == tensor_bytes(other)


def bytes_of_contiguous(tensor: torch.Tensor) -> torch.Tensor:
    """The memory of a contiguous tensor as bytes, not copied.

    A single element is contiguous with any stride, also with the 0 of `expand`; `view` takes a stride of 1 only.
    """
    return tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8)


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor's memory has its elements in their order, and nothing else."""
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta or not tensor.numel():
        return False
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def tensor_bytes(tensor: torch.Tensor) -> bytes:
    """The bytes of a tensor's values, of any dtype."""
    try:
        dense = tensor.detach().to_dense() if tensor.layout is not torch.strided else tensor.detach()
        dense = dense.resolve_conj().resolve_neg().cpu().contiguous()
        return bytes_of_contiguous(dense).numpy().tobytes() if dense.numel() else b""
    except (RuntimeError, TypeError, NotImplementedError):  # quantized, meta
        return repr(tensor).encode()


def _leaves(
    value: Any, path: str, steps: tuple[Step, ...], seen: set[int]
) -> Iterator[tuple[str, tuple[Step, ...], Any]]:
    children = None if len(steps) > _DEPTH and not isinstance(value, torch.nn.Module) else _children(value)
    if children is None:
        if steps or not isinstance(value, torch.nn.Module):
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
    if isinstance(value, torch.nn.Module):
        own = [(("attribute", name), item) for name, item in _attributes(value).items() if name not in _TORCH]
        own += [(("attribute", name), item) for name, item in value._buffers.items()]
        weights = [(("attribute", name), item) for name, item in value._parameters.items() if _is_small(item)]
        return [*own, *weights, *((("part", name), part) for name, part in value._modules.items() if part is not None)]
    if isinstance(value, Mapping):
        return [(("item", key), item) for key, item in value.items()]
    if isinstance(value, (list, tuple, deque)):
        return [(("item", index), item) for index, item in enumerate(value)]
    if isinstance(value, _OPAQUE) or callable(value) or type(value).__module__.split(".")[0] in ("builtins", "torch"):
        return None
    if not hasattr(value, "__dict__") and not slots_of(value):
        return None
    return [(("attribute", name), item) for name, item in _attributes(value).items()]


def _attributes(value: Any) -> Mapping[str, Any]:
    """The attributes of an object, those in `__slots__` included."""
    own: dict[str, Any] = getattr(value, "__dict__", {})
    return {**own, **slot_values(value)} if slots_of(value) else own


def _put_attribute(value: Any, name: str, new: Any) -> None:
    """Set an attribute past the code of its class; MISSING removes it."""
    if name in slots_of(value):
        others = {key: item for key, item in slot_values(value).items() if key != name}
        put_slot_values(value, others if new is MISSING else {**others, name: new})
    else:
        vars(value).pop(name, None) if new is MISSING else vars(value).__setitem__(name, new)


def _take(value: Any, step: Step) -> Any:
    kind, key = step
    if isinstance(value, torch.nn.Module):
        spaces = (value._modules,) if kind == "part" else (_attributes(value), value._buffers, value._parameters)
        return next((space[key] for space in spaces if key in space), MISSING)
    if kind == "attribute":
        return _attributes(value).get(key, MISSING)
    try:
        return value[key]
    except (KeyError, IndexError, TypeError):
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
    if isinstance(value, torch.nn.Module):
        if kind == "attribute":
            value._buffers.pop(key, None)
            value._parameters.pop(key, None)
            _put_attribute(value, key, inner)
    elif isinstance(value, tuple):
        items = [*value[:key], inner, *value[key + 1 :]]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    elif kind == "attribute":
        _put_attribute(value, key, inner)
    elif isinstance(value, dict):
        value.pop(key, None) if inner is MISSING else value.__setitem__(key, inner)
    elif isinstance(value, (list, deque)) and key <= len(value):
        while len(value) > key and inner is MISSING:
            value.pop()
        if inner is not MISSING and key == len(value):
            value.append(inner)
        elif inner is not MISSING:
            value[key] = inner
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
    held = (
        vars(value) if hasattr(value, "__dict__") else value
        for value in _along(slot)
        if not isinstance(value, torch.nn.Module)
    )
    return [value for value in held if isinstance(value, (list, dict, deque))]


def _refill(container: Any, content: Any) -> None:
    container.clear()
    (container.update if isinstance(container, dict) else container.extend)(content)


def _copied(value: Any, earlier: Any = None) -> Any:
    if isinstance(value, torch.Tensor):
        is_known = isinstance(earlier, torch.Tensor) and is_same(earlier, value)
        return earlier if is_known else value.detach().clone()
    return value.copy() if isinstance(value, (np.ndarray, set)) else value


def _is_small(parameter: torch.Tensor | None) -> bool:
    return parameter is not None and parameter.numel() * parameter.element_size() <= _LARGE
