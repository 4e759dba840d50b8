"""The numbers in the user's code: a trace does not show a line that did not run at its sizes, so they are where to look.

if int(x.shape[1]) == 97: ...     self.window = 512     steps = "650:0.5"     ->     97, 512, 650
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from types import CellType
from typing import Any

import torch

from anyshape.modules.plain_access import is_a, items_of, keys_of, length_of
from anyshape.modules.user_code import codes_of, user_functions, user_submodules

_SMALLEST = 6  # smaller sizes are tried anyway
_LARGEST = 1 << 16
_MOST_ITEMS = 64  # a longer list is data
_LONGEST_TEXT = 1000  # a longer text is data
_NUMBER = re.compile(r"(?<![\w.])\d{1,6}(?![\w.])")


def numbers_in_code(module: torch.nn.Module) -> tuple[int, ...]:
    """Numbers in the code of a module and its parts, in defaults of parameters, in what that names, and in their attributes.

    Those in texts come last.
    """
    values: list[Any] = []
    for function in user_functions(module):
        for code in codes_of(function):
            values += [value for value in code.co_consts if value != function.__doc__]
            values += [function.__globals__.get(name) for name in code.co_names]
        values += [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
        values += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for part in user_submodules(module):
        values += vars(part).values()
    for kind in dict.fromkeys(type(part) for part in user_submodules(module)):
        values += [value for name, value in vars(kind).items() if not name.startswith("__")]
    found = [*_whole(values), *_in_texts(values)]
    return tuple(number for number in dict.fromkeys(found) if _SMALLEST <= number <= _LARGEST)


def _in_texts(values: Iterable[Any]) -> Iterator[int]:
    """Numbers that are written in short texts, not those inside of a name."""
    for value in values:
        if type(value) is str and len(value) <= _LONGEST_TEXT:
            yield from map(int, _NUMBER.findall(value))
        elif (items := _items(value)) is not None:
            yield from _in_texts(items)


def _whole(values: Iterable[Any]) -> Iterator[int]:
    for value in values:
        if type(value) is int:
            yield abs(value)
        elif type(value) is float and value.is_integer() and abs(value) <= _LARGEST:
            yield int(abs(value))
        elif (items := _items(value)) is not None:
            yield from _whole(items)


def _items(value: Any) -> list[Any] | None:
    """What a short collection holds, the keys of a dict too; None for anything else."""
    if not is_a(value, (tuple, list, set, frozenset, dict)) or length_of(value) > _MOST_ITEMS:
        return None
    return [*keys_of(value), *items_of(value)] if is_a(value, dict) else items_of(value)


def _is_filled(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
