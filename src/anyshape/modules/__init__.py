"""The user's module: its lines, its state, its flat form, its own operators.

This file: what a search through the code of a module found, kept while an export runs. A model whose values decide is run
hundreds of times, and each run replaces names in the user's code: to find these names again each time took a quarter of the
time of Longformer's export. A search is made again where a name came into the globals that it looked through, or an attribute
into the module; and in the next export, since code may be redefined in between.

Files, in the order in which data flows:

    callables            whatever the user passes as a model -> torch.nn.Module
    user_code            the user's functions behind a module, and which line is running or raised
    compiled_parts       parts of a module in compiled code, in which nothing is watched
    numbers_in_code      the numbers in the code and the attributes of a module
    code_expressions     the expressions in a code object, for code that has no source text
    line_trace           run a call and visit each executed line of the user's code
    watched_comparisons  the numbers that the user's code compares in one call
    look_ups             the numbers in what is looked up, and in the keys of a container of any class
    uses_in_code         uses of values in a text or a code object: as a text, a key, an index of a table
    unfollowed_uses      what such uses work with in one call
    raised_errors        why a call raised: the operation, the tensor, the layer
    state                take a module's state once, restore it before every call
    plain_access         kind, attributes and items of an object, past the code of its class
    kept_tensors         the values of a module's tensors, put back after a call
    same_values          whether two values are the same, bit by bit
    reach                what the user's code can keep outside its module, and in `__slots__`
    kept_containers      lists, sets and dicts, put back after a call
    slots                the values that a module keeps between calls, each with a path
    structural_copy      the copy of the module on which an export works
    module_forms         the module on a flat list of tensors, with its state as an argument, with another line
    call_limits          limits on calls of the user's code: time, memory, signals
    registered           `anyshape.translation`: the user's operators in ONNX
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from anyshape.processes import is_own_process

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
Spaces = tuple[dict[str, Any], ...]


_FOUND: dict[str, WeakKeyDictionary[torch.nn.Module, tuple[Spaces, tuple[int, ...], Any]]] = {}
"""The results of each search by module, in a process of one export: code may be redefined before the next one."""


def kept_search(spaces_of: Callable[[T], Spaces]) -> Callable[[Callable[[Any], T]], Callable[[Any], T]]:
    """A function of a module is called once for each module; `spaces_of` its result are the globals that it looked through."""

    def decorate(search: Callable[[Any], T]) -> Callable[[Any], T]:
        name = f"{search.__module__}.{search.__qualname__}"

        @functools.wraps(search)
        def find(module: Any) -> T:
            if not is_own_process():
                return search(module)
            by_module = _FOUND.setdefault(name, WeakKeyDictionary())
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
    held = sum(dict.__len__(value) for each in attributes for value in each.values() if issubclass(type(value), dict))
    return (*map(len, spaces), sum(map(len, attributes)), held)
