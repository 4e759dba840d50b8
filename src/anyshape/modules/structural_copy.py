"""A copy of a module that shares its weights: an export works on it, so that the user's own module can run meanwhile.

    module, parts, containers, plain objects     copied: forward may change them
    parameters                                   shared: weights are held once, and tied ones stay tied
    buffers, other tensors, numpy arrays         copied; tensors that share memory still do
    everything else                              shared: functions, classes, locks, files, objects of other libraries

The copy of a module on an accelerator lies on the CPU, parameters and all. An index out of range is an error there; on a GPU it
ends every later call of the process, and an export tries sizes and values at which a model may fail.

A module that cannot be copied this way is worked on itself: a scripted one, one with lazy parameters, or one whose functions
reach the module by another way than `self`.
"""

from __future__ import annotations

import copy
import functools
import sys
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from enum import Enum
from types import FunctionType, MethodType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

_FOREIGN = (
    "builtins",
    "torch",
    "numpy",
    "collections",
    "functools",
    "typing",
    "types",
    "enum",
    "re",
    "pathlib",
    "threading",
)
_DEPTH = 30
_MOST_ARRAY_BYTES = 256 * 2**20


_CPU = torch.device("cpu")
_IN_PLACE = ("cpu", "meta")


def is_on_accelerator(value: Any) -> bool:
    """Whether a tensor, a device or the text of one, or a tensor of a module, is of a GPU or another accelerator."""
    if isinstance(value, torch.nn.Module):
        return any(map(is_on_accelerator, (*value.parameters(), *value.buffers())))
    if isinstance(value, torch.Tensor):
        return value.device.type not in _IN_PLACE
    if isinstance(value, torch.device):
        return value.type not in _IN_PLACE
    return isinstance(value, str) and value.partition(":")[0] in ("cuda", "mps", "xpu", "hpu", "npu")


def working_copy(module: Any) -> Any:
    """The copy, or a method of the copy; what is neither a torch.nn.Module nor a method of one comes back as it is."""
    if isinstance(module, MethodType):
        return MethodType(module.__func__, working_copy(module.__self__))
    if not isinstance(module, torch.nn.Module):
        return module
    try:
        return _Copier(module).copied(module, 0)
    except _NoCopy:
        return copy.deepcopy(module).to(_CPU) if is_on_accelerator(module) else module


class _NoCopy(Exception):
    """A part of the module works only where it is."""


class _Copier:
    """Copies values once each; what refers to the module then refers to the copy."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._parts = {id(part) for part in module.modules()}
        self._made: dict[int, Any] = {}
        self._kept: list[Any] = []  # so that no other value gets the id of one that was copied
        self._array_bytes = 0
        self._moves = is_on_accelerator(module)
        parameters = list(module.parameters())
        if any(
            isinstance(each, (UninitializedParameter, UninitializedBuffer)) for each in (*parameters, *module.buffers())
        ):
            raise _NoCopy
        memories = [memory for memory in map(_memory, parameters) if memory is not None]
        self._tensor_memo: dict[Any, Any] = {"torch": {memory._cdata: memory for memory in memories}}

    def copied(self, value: Any, depth: int) -> Any:
        if id(value) in self._made:
            return self._made[id(value)]
        make = self._maker(value)
        if make is None or depth > _DEPTH:
            return value
        self._kept.append(value)
        made = make(value, depth)
        self._made.setdefault(id(value), made)
        return self._made[id(value)]

    def _maker(self, value: Any) -> Callable[[Any, int], Any] | None:
        """How a value is copied; None if it is shared."""
        if isinstance(value, torch.nn.Module):
            return self._module
        if self._moves and is_on_accelerator(value):
            return lambda value, depth: moved_to_cpu(value)
        if isinstance(value, torch.Tensor):
            return None if isinstance(value, torch.nn.Parameter) else self._tensor
        if isinstance(value, FunctionType):
            self._check(value, 0)
            return None
        for kinds, make in self._makers():
            if isinstance(value, kinds):
                return make
        return self._object if _is_plain(value) else None

    def _makers(self) -> Iterator[tuple[Any, Callable[[Any, int], Any]]]:
        yield np.ndarray, self._array
        yield dict, self._dict
        yield (list, deque, set), self._sequence
        yield tuple, self._tuple
        yield MethodType, lambda method, depth: MethodType(method.__func__, self.copied(method.__self__, depth + 1))
        yield functools.partial, self._partial
        yield weakref.ref, self._reference
        yield SimpleNamespace, self._object

    def _module(self, module: torch.nn.Module, depth: int) -> torch.nn.Module:
        if isinstance(module, torch.jit.ScriptModule):
            raise _NoCopy
        return self._object(module, -1)  # models are deep; containers in them are not

    def _object(self, value: Any, depth: int) -> Any:
        try:
            made = object.__new__(type(value)) if not isinstance(value, SimpleNamespace) else SimpleNamespace()
        except TypeError:  # of a class that is not written in Python
            if isinstance(value, torch.nn.Module):
                raise _NoCopy from None
            return value
        self._made[id(value)] = made
        vars(made).update({name: self.copied(item, depth + 1) for name, item in list(vars(value).items())})
        return made

    def _tensor(self, tensor: torch.Tensor, depth: int) -> torch.Tensor:
        try:
            return copy.deepcopy(tensor if tensor.is_leaf else tensor.detach(), self._tensor_memo)
        except (RuntimeError, NotImplementedError, TypeError):  # a kind of tensor that has no copy
            return tensor

    def _array(self, array: Any, depth: int) -> Any:
        self._array_bytes += array.nbytes
        return array if self._array_bytes > _MOST_ARRAY_BYTES else array.copy()

    def _dict(self, value: dict[Any, Any], depth: int) -> Any:
        made = _emptied(value)
        if made is None:
            return value
        self._made[id(value)] = made
        for key, item in list(value.items()):
            made[self.copied(key, depth + 1) if isinstance(key, torch.nn.Module) else key] = self.copied(
                item, depth + 1
            )
        return made

    def _sequence(self, value: Any, depth: int) -> Any:
        made = _emptied(value)
        if made is None:
            return value
        self._made[id(value)] = made
        items = [self.copied(item, depth + 1) for item in list(value)]
        (made.update if isinstance(made, set) else made.extend)(items)
        return made

    def _tuple(self, value: tuple[Any, ...], depth: int) -> Any:
        items = [self.copied(item, depth + 1) for item in value]
        if all(one is other for one, other in zip(items, value, strict=True)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)

    def _partial(self, value: functools.partial[Any], depth: int) -> Any:
        function, args, keywords = (
            self.copied(each, depth + 1) for each in (value.func, tuple(value.args), dict(value.keywords))
        )
        made = functools.partial(function, *args, **keywords)
        vars(made).update({name: self.copied(item, depth + 1) for name, item in vars(value).items()})
        return made

    def _reference(self, value: weakref.ref[Any], depth: int) -> Any:
        target = value()
        return weakref.ref(self.copied(target, depth + 1)) if isinstance(target, torch.nn.Module) else value

    def _check(self, function: FunctionType, depth: int) -> None:
        """Raise where a function reaches a part of the module by itself: it would run that one and not the copy."""
        names = function.__code__.co_names
        values = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        values += [function.__globals__[name] for name in names if name in function.__globals__]
        for cell in function.__closure__ or ():
            try:
                values.append(cell.cell_contents)
            except ValueError:  # a cell that nothing was put into yet
                continue
        for value in values:
            if id(value) in self._parts or id(getattr(value, "__self__", None)) in self._parts:
                raise _NoCopy
            if isinstance(value, FunctionType) and depth < 3:
                self._check(value, depth + 1)


def moved_to_cpu(value: Any) -> Any:
    """A tensor of an accelerator copied to the CPU, a parameter as a parameter; a device as the CPU; all else as it is."""
    if not is_on_accelerator(value):
        return value
    if isinstance(value, torch.device):
        return _CPU
    if isinstance(value, str):
        return _CPU.type
    moved = value.detach().to(_CPU)
    if isinstance(value, torch.nn.Parameter):
        return torch.nn.Parameter(moved, requires_grad=value.requires_grad)
    return moved.requires_grad_(value.requires_grad)


def _emptied(value: Any) -> Any:
    """An empty container of the same kind; None for a kind that is not Python's own."""
    if isinstance(value, defaultdict):
        return defaultdict(value.default_factory) if type(value) is defaultdict else None
    if isinstance(value, deque):
        return deque(maxlen=value.maxlen) if type(value) is deque else None
    return type(value)() if type(value) in (dict, OrderedDict, list, set) else None


def _is_plain(value: Any) -> bool:
    """Whether a value is an object of a class written in Python that holds attributes, and no one-of-a-kind."""
    kind = type(value)
    if isinstance(value, (type, Enum, BaseException)) or kind.__module__.split(".")[0] in _FOREIGN:
        return False
    has_slots = any(vars(above).get("__slots__") for above in kind.__mro__)
    if has_slots or hasattr(kind, "__del__") or not getattr(value, "__dict__", None):
        return False
    home = sys.modules.get(kind.__module__)
    return home is None or not any(known is value for known in list(vars(home).values()))


def _memory(tensor: torch.Tensor) -> Any:
    try:
        return tensor.untyped_storage()
    except (RuntimeError, NotImplementedError):  # no memory of its own: sparse, nested
        return None
