"""The user's module: its lines, its state, its flat form, its own operators.

This file: what a search through the code of a module found, kept while an export runs. A model whose values decide is run
hundreds of times, and each run replaces names in the user's code: to find these names again each time took a quarter of the
time of Longformer's export. A search is made again where a name came into the globals that it looked through, or an attribute
into the module; and in the next export, since code may be redefined in between.

Files, in the order in which data flows:

    callables            whatever the user passes as a model -> torch.nn.Module
    user_code            the user's functions behind a module, the numbers in them, which line is running or raised
    line_trace           run a call and visit each executed line of the user's code
    watched_comparisons  the numbers that the user's code compares in one call, and those in keys that it looks up
    unfollowed_uses      uses of sizes that no arithmetic follows: as a text, a key, an index of a table
    raised_errors        why a call raised: the operation, the tensor, the layer
    state                take a module's state once, restore it before every call
    kept_tensors         the values of a module's tensors, put back after a call
    reach                what the user's code can keep outside its module, and in lists, sets, dicts and `__slots__`
    slots                the values that a module keeps between calls, each with a path
    structural_copy      the copy of the module on which an export works
    module_forms         the module on a flat list of tensors, with its state as an argument, with another line
    call_limits          limits on calls of the user's code: time, memory, signals
    registered           `anyshape.translation`: the user's operators in ONNX
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
Spaces = tuple[dict[str, Any], ...]


class _Memo:
    """The results of each search by module, while `depth` is above 0."""

    def __init__(self) -> None:
        self.depth = 0
        self.found: dict[str, WeakKeyDictionary[torch.nn.Module, tuple[Spaces, tuple[int, ...], Any]]] = {}


_MEMO = _Memo()


@contextmanager
def searches_kept() -> Iterator[None]:
    """Enter around an export: one runs at a time."""
    _MEMO.depth += 1
    try:
        yield
    finally:
        _MEMO.depth -= 1
        if not _MEMO.depth:
            _MEMO.found.clear()


def kept_search(spaces_of: Callable[[T], Spaces]) -> Callable[[Callable[[Any], T]], Callable[[Any], T]]:
    """A function of a module is called once for each module; `spaces_of` its result are the globals that it looked through."""

    def decorate(search: Callable[[Any], T]) -> Callable[[Any], T]:
        name = f"{search.__module__}.{search.__qualname__}"

        @functools.wraps(search)
        def find(module: Any) -> T:
            if not _MEMO.depth:
                return search(module)
            by_module = _MEMO.found.setdefault(name, WeakKeyDictionary())
            known = by_module.get(module)
            if known is not None and known[1] == _lengths(module, known[0]):
                return known[2]  # type: ignore[no-any-return]
            found = search(module)
            spaces = spaces_of(found)
            by_module[module] = spaces, _lengths(module, spaces), found
            return found

        return find

    return decorate


def globals_of(functions: Iterable[FunctionType]) -> Spaces:
    """The globals of these functions, each once."""
    return tuple({id(function.__globals__): function.__globals__ for function in functions}.values())


def _lengths(module: torch.nn.Module, spaces: Spaces) -> tuple[int, ...]:
    """How many names there are: in each of the globals, and in the attributes of the module's parts and the dicts there."""
    attributes = [vars(part) for part in module.modules()]
    held = sum(len(value) for each in attributes for value in each.values() if isinstance(value, dict))
    return (*map(len, spaces), sum(map(len, attributes)), held)
