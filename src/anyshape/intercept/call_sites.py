"""Redirect calls in the user's functions: of builtins by other code objects, of torch functions that take numpy arrays.

    int(x.shape[1] * 0.3)     LOAD_GLOBAL int, CALL     ->     LOAD_CONST <open int>, CALL

Only calls change: `dtype=int`, `isinstance(n, int)` and `type(n) is int` still read the builtin itself. A frame that runs in
another thread keeps the code object that it started with, and the functions of ours do there what the builtin does.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

import torch
from torch._subclasses.fake_tensor import is_fake
from torch.overrides import TorchFunctionMode

from anyshape.intercept.open_arrays import OpenArray, as_tensors, open_array
from anyshape.intercept.patching import StandsFor
from anyshape.intercept.real_numbers import leaves_of

Calls = Mapping[str, Callable[..., Any]]

_NOP = dis.opmap["NOP"]
_EXTENDED = dis.opmap["EXTENDED_ARG"]
_CACHE = dis.opmap["CACHE"]
_LOAD_CONST = dis.opmap["LOAD_CONST"]
_LOAD_GLOBAL = dis.opmap["LOAD_GLOBAL"]
_PUSH_NULL = dis.opmap["PUSH_NULL"]
_NULL_IS_LAST = sys.version_info >= (3, 13)  # LOAD_GLOBAL pushes the function and a NULL, in an order that changed
_MAKERS = {torch.tensor, torch.as_tensor, torch.asarray}
_CLASSES = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "LongTensor": torch.int64,
    "BoolTensor": torch.bool,
}


@contextmanager
def redirected_calls(functions: Iterable[FunctionType], calls: Calls) -> Iterator[None]:
    """Within this, these functions call ours where they call a builtin of that name. Afterwards their code is as before."""
    before: list[tuple[FunctionType, CodeType]] = []
    try:
        for function in functions:
            shadowed = function.__globals__.keys() & calls.keys()
            code = redirect(function.__code__, {name: calls[name] for name in calls if name not in shadowed})
            if code is not function.__code__:
                before.append((function, function.__code__))
                function.__code__ = code
        yield
    finally:
        for function, code in before:
            function.__code__ = code


def redirect(code: CodeType, calls: Calls) -> CodeType:
    """The code with these calls redirected, nested functions included; the same object where there are none."""
    return _redirected(SameCode(code), tuple(calls.items()))


class SameCode:
    """A code object, compared by identity: Python compares code objects by content, and leaves out their file."""

    __slots__ = ("code",)

    def __init__(self, code: CodeType) -> None:
        self.code = code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameCode) and other.code is self.code

    def __hash__(self) -> int:
        return id(self.code)


@lru_cache(maxsize=4096)
def _redirected(same: SameCode, calls: tuple[tuple[str, Callable[..., Any]], ...]) -> CodeType:
    code = same.code
    wanted = dict(calls)
    constants = [redirect(each, wanted) if isinstance(each, CodeType) else each for each in code.co_consts]
    is_same = all(one is other for one, other in zip(constants, code.co_consts, strict=True))
    written = bytearray(code.co_code)
    for name, start, end in _called_globals(code, wanted.keys()):
        is_same = False
        constants.append(wanted[name])
        written[start:end] = _load(len(constants) - 1, end - start)
    return code if is_same else code.replace(co_code=bytes(written), co_consts=tuple(constants))


def _called_globals(code: CodeType, wanted: Set[str]) -> Iterator[tuple[str, int, int]]:
    """The globals of these names that are loaded to be called right here: then the load has a NULL beside it.

    With each the places where its load begins, prefixes included, and ends. `dis` takes several times as long.
    """
    names = code.co_names
    if not wanted & set(names):
        return
    units, start, argument = code.co_code, 0, 0
    for place in range(0, len(units), 2):
        argument = argument << 8 | units[place + 1]
        if units[place] == _EXTENDED:
            continue
        if units[place] == _LOAD_GLOBAL and argument & 1 and names[argument >> 1] in wanted:
            end = place + 2
            while units[end] == _CACHE:
                end += 2
            yield names[argument >> 1], start, end
        start, argument = place + 2, 0


def _load(constant: int, size: int) -> bytes:
    """Bytecode of that size, which leaves the constant and a NULL on the stack."""
    prefix = [constant >> 24 & 255, constant >> 16 & 255, constant >> 8 & 255]
    while prefix and not prefix[0]:
        prefix.pop(0)
    load = [*(unit for each in prefix for unit in (_EXTENDED, each)), _LOAD_CONST, constant & 255]
    null = [_PUSH_NULL, 0]
    whole = [*load, *null] if _NULL_IS_LAST else [*null, *load]
    return bytes([*whole, *[_NOP, 0] * ((size - len(whole)) // 2)])


class ArraysAsTensors(TorchFunctionMode):
    """Open arrays in torch's functions are tensors, and an array that a tensor without values gives is an open one."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is torch.Tensor.numpy and is_fake(args[0]):
            return open_array(args[0])
        if any(isinstance(leaf, OpenArray) for leaf in leaves_of((args, kwargs))):
            args, kwargs = as_tensors((args, dict(kwargs or {})))
            if func in _MAKERS and isinstance(args[0], torch.Tensor):
                return args[0].to((kwargs or {}).get("dtype") or args[0].dtype, copy=func is torch.tensor)
        return func(*args, **(kwargs or {}))


class OpenTorch:
    """The module torch, with functions that take open arrays as well."""

    def __getattr__(self, name: str) -> Any:
        return _array_takers().get(name) or getattr(torch, name)


def open_torch(value: Any) -> Any:
    """What replaces torch, or its `from_numpy`, in user code; None for anything else."""
    if value is torch:
        return OpenTorch()
    return _array_takers()["from_numpy"] if value is torch.from_numpy else None


@lru_cache(maxsize=1)
def _array_takers() -> dict[str, Any]:
    """Functions of torch on arrays that no function mode intercepts, in a form that takes open arrays too, by name."""
    from_numpy = torch.from_numpy

    def open_from_numpy(array: Any) -> torch.Tensor:
        return array.tensor if isinstance(array, OpenArray) else from_numpy(array)

    classes = {name: _open_class(getattr(torch, name), dtype) for name, dtype in _CLASSES.items()}
    return {"from_numpy": open_from_numpy, **classes}


def _open_class(own: type, dtype: torch.dtype) -> StandsFor:
    def make(cls: type, *args: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], OpenArray):
            return args[0].tensor.to(dtype, copy=True)
        return own(*args)

    return StandsFor(f"torch.{own.__name__}", (), {"__new__": make}, own=own)  # torch reads its dtype off the name
