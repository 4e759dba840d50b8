"""Functions of the user's behind `lru_cache`, without their caches while a module is captured.

An open size cannot be looked up, and a tensor that was only traced must not be found there by the next real call.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import _lru_cache_wrapper

import torch

from anyshape.modules.one_thread import is_by_thread
from anyshape.modules.patching import Standing, standing
from anyshape.modules.user_code import user_functions, user_parts


def uncached(module: torch.nn.Module) -> AbstractContextManager[None]:
    """While it is entered, such functions are called through."""
    return standing(uncached_functions(module))


def uncached_functions(module: torch.nn.Module) -> Iterator[Standing]:
    """The function behind each cache, among the globals of the user's functions and the methods of the user's classes."""
    spaces = {id(function.__globals__): function.__globals__ for function in user_functions(module)}
    kinds = dict.fromkeys(above for part in user_parts(module) for above in type(part).__mro__)
    for place, space in (*((each, each) for each in spaces.values()), *((kind, vars(kind)) for kind in kinds)):
        for name, value in list(space.items()):
            if is_by_thread(value):
                continue
            if isinstance(value, _lru_cache_wrapper):
                yield place, name, value.__wrapped__
            elif isinstance(value, (staticmethod, classmethod)) and isinstance(value.__func__, _lru_cache_wrapper):
                yield place, name, type(value)(value.__func__.__wrapped__)
