"""Keep a module's state: take it once, restore it before every call and at the end.

State is whatever forward can change: attributes of every submodule and of plain objects they hold, containers in place,
values of tensors and arrays, gradients, training flags, variables outside the module that its code writes (`reach`), and
the random numbers of torch, numpy and Python, those of generators that the module holds included.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch

from anyshape.modules.kept_containers import KeptContainers
from anyshape.modules.kept_tensors import KeptTensor, KeptTensors
from anyshape.modules.plain_access import attributes_of, container_kind, is_a, items_of, module_name
from anyshape.modules.reach import (
    GENERATORS,
    NOTHING,
    REWRITTEN,
    WRITTEN,
    outside_places,
    put_slot_values,
    slot_values,
    slots_of,
)
from anyshape.modules.same_values import is_same

_ALWAYS_COPIED_BYTES = 256 * 2**20
_FOREIGN = ("builtins", "torch", "numpy", "collections", "functools", "typing", "types", "enum", "re", "pathlib")
_DEPTH = 6
Written = frozenset[tuple[int, Any]]
"""Places: the number of a container or tensor, and which of its items, with whether that had another value."""


class ModuleState:
    """A snapshot of a module; `restore` may be called many times.

    Parameters beyond 256 MiB in all are not copied (a large model must not be held twice), but watched: writing into
    one of them cannot be undone, and `restore` then raises UsageError.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        found = _Walk(module)
        self._containers, self._undo = found.containers, found.undo
        size = sum(parameter.numel() * parameter.element_size() for parameter in module.parameters())
        copied = size <= _ALWAYS_COPIED_BYTES
        names = {id(parameter): name for name, parameter in module.named_parameters()}
        self._tensors = KeptTensors(
            KeptTensor(tensor, copied or id(tensor) not in names, names.get(id(tensor), "")) for tensor in found.tensors
        )
        self._gradients = [(parameter, parameter.grad) for parameter in module.parameters()]
        self._modes = [(part, part.training) for part in module.modules()]
        self._arrays = [(array, array.copy()) for array in found.arrays]
        self.random = RandomState(found.generators)

    def restore(self, *, thorough: bool = False) -> Written:
        """Put everything back, the random numbers included; gives the places that had been written.

        `thorough`: compare even what no call has yet written. To be set before the first call: nothing follows from a
        parameter that is as it was then.
        """
        for part, training in self._modes:
            if getattr(part, "training", training) != training:  # of a scripted module, it is out of our reach
                part.training = training
        undone = [*self._containers.restore(), *(undo() for undo in self._undo)]
        undone += self._tensors.restore(thorough)
        for array, values in self._arrays:
            is_other = array.tobytes() != values.tobytes()
            undone.append(WRITTEN if is_other else NOTHING)
            if is_other:
                array[...] = values
        for parameter, gradient in self._gradients:
            parameter.grad = gradient
        self.random.restore()
        if not any(undone):  # thousands of places, and a call seldom writes: looked at one by one only then
            return frozenset()
        return frozenset((number, key) for number, keys in enumerate(undone) for key in keys)


class RandomState:
    """The random numbers to come: torch's (on every device in use), numpy's, Python's, and those of `held` generators."""

    def __init__(self, held: Sequence[Any] = ()) -> None:
        self._torch = torch.random.get_rng_state()
        self._cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None  # type: ignore[no-untyped-call]
        self._numpy = np.random.get_state()
        self._python = random.getstate()
        self.held = tuple(held)
        self._held = [generator_state(generator) for generator in held]

    def restore(self) -> None:
        torch.random.set_rng_state(self._torch)
        if self._cuda is not None:
            torch.cuda.set_rng_state_all(self._cuda)
        np.random.set_state(self._numpy)
        random.setstate(self._python)
        for generator, state in zip(self.held, self._held, strict=True):
            set_generator_state(generator, state)

    def is_advanced(self) -> bool:
        """Whether a random number was drawn since the numbers to come were put back."""
        if random.getstate() != self._python or not torch.equal(torch.random.get_rng_state(), self._torch):
            return True
        _, keys, *rest = np.random.get_state()
        _, kept_keys, *kept_rest = self._numpy
        if rest != kept_rest or not np.array_equal(keys, kept_keys):
            return True
        held = zip(self.held, self._held, strict=True)
        return any(repr(generator_state(generator)) != repr(state) for generator, state in held)


def generator_state(generator: Any) -> Any:
    """The state of a generator object of torch, numpy or Python."""
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.get_state() if isinstance(generator, np.random.RandomState) else generator.getstate()


def set_generator_state(generator: Any, state: Any) -> None:
    """Put a generator object back into a state that `generator_state` gave."""
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    else:
        generator.set_state(state)


class _Walk:
    """All that can be reached from a module: tensors, and for each container or object a way to put it back."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.tensors: list[torch.Tensor] = []
        self.arrays: list[np.ndarray[Any, Any]] = []
        self.generators: list[Any] = []
        self.containers = KeptContainers()
        self.undo: list[Callable[[], frozenset[Any]]] = []  # of slots, and of places outside the module
        self._seen: set[int] = set()
        self._visit(module, 0)
        for tensor in (*module.parameters(), *module.buffers()):  # a scripted module hides them from the walk
            self._visit(tensor, 0)
        for place in outside_places(module):
            value = place.get()
            self.undo.append(partial(_put_back, place, value))
            self._visit(value, 0)

    def _visit(self, value: Any, depth: int) -> None:
        if id(value) in self._seen or depth > _DEPTH:
            return
        if is_a(value, torch.Tensor):
            self._seen.add(id(value))
            self.tensors.append(value)
            return
        if is_a(value, (np.ndarray, *GENERATORS)) and not is_a(value, random.SystemRandom):
            self._seen.add(id(value))
            if is_a(value, np.ndarray):
                self.arrays.append(value)
            else:
                self.generators.append(value)
            return
        content, has_slots = _content(value), bool(slots_of(value)) and not _is_foreign(value)
        if content is None and not has_slots:
            return
        self._seen.add(id(value))
        if content is not None and not is_a(value, (tuple, frozenset)):
            self.containers.add(content)
        slots = slot_values(value) if has_slots else {}
        if has_slots:
            self.undo.append(partial(put_slot_values, value, slots))
        # A module's depth is not that of a nested container: models are deep.
        inner = 0 if is_a(value, torch.nn.Module) else depth + 1
        for item in (*([] if content is None else items_of(content)), *slots.values()):
            self._visit(item, inner)


def _content(value: Any) -> Any:
    """What can be put back: the value itself if it is a container, the attributes of a module or plain object."""
    if container_kind(value) is not None:
        return value
    return attributes_of(value) if is_a(value, torch.nn.Module) or not _is_foreign(value) else None


def _is_foreign(value: Any) -> bool:
    """Whether the value is a class, a function, or an object of a library: its attributes are not the user's."""
    if is_a(value, torch.nn.Module):
        return False
    return is_a(value, type) or callable(value) or module_name(value) in _FOREIGN


def _put_back(place: Any, value: Any) -> frozenset[Any]:
    """Set a place outside of the module to its value; what was written."""
    now = place.get()
    place.set(value)
    return NOTHING if now is value else REWRITTEN if is_same(now, value) else WRITTEN


@contextmanager
def kept(module: torch.nn.Module) -> Iterator[None]:
    """Within this the module is in eval mode and may change; afterwards it is as before, also after an error."""
    state = ModuleState(module)
    module.eval()
    try:
        yield
    finally:
        state.restore(thorough=True)
