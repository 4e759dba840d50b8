"""The user's own code behind a module: its functions, the numbers in them, and which line of it is running or raised.

Found by reading, not by running: a line that did not run at the example's sizes is code all the same. A trace at other sizes
does not show such a line, so the numbers themselves are where to look:

    if int(x.shape[1]) == 97: ...     self.window = 512     steps = "650:0.5"     ->     97, 512, 650

A frame is the user's unless it lies in torch, in anyshape or in the standard library; a model library such as
transformers is the user's code in this sense, since its lines are what stands in the way.

Two marks in a module of anyshape, which move with it to another file:
    __is_entrance__ = True        a conversion begins here: the callers of its functions are not the model
    __only_passes_on__ = True     its functions hand on to torch what their caller does: a question of theirs is the caller's
"""

from __future__ import annotations

import dis
import inspect
import linecache
import re
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import _lru_cache_wrapper, lru_cache, partial
from pathlib import Path
from types import CellType, CodeType, FrameType, FunctionType, MethodType
from typing import Any

import torch

from anyshape.findings import Source
from anyshape.findings.finding import PACKAGE_FOLDER, shorten
from anyshape.modules import globals_of, kept_search

_SMALLEST = 6  # smaller sizes are tried anyway
_LARGEST = 1 << 16
_MOST_ITEMS = 64  # a longer list is data
_LONGEST_TEXT = 1000  # a longer text is data
_NUMBER = re.compile(r"(?<![\w.])\d{1,6}(?![\w.])")
_TOOLS = ("einops", "numpy", "scipy")  # what a model computes with: the line that calls them is the user's
_STACK_LINE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')


def user_submodules(module: torch.nn.Module) -> list[torch.nn.Module]:
    """The module and its submodules, as far as their forward is the user's."""
    forwards = ((part, inspect.getattr_static(type(part), "forward", None)) for part in module.modules())
    return [part for part, forward in forwards if _is_users(_unwrapped(forward))]


@kept_search(spaces_of=globals_of)
def user_functions(module: torch.nn.Module) -> list[FunctionType]:
    """Every function of the user's that a call may reach, each once, as far as names show."""
    return functions_of_classes(tuple(type(part) for part in user_submodules(module)))


def functions_of_classes(kinds: Sequence[type[torch.nn.Module]]) -> list[FunctionType]:
    """The user's functions in the classes of a module's parts."""
    reader = _Reader()
    for kind in dict.fromkeys(kinds):
        for above in (each for each in kind.__mro__ if each is not torch.nn.Module):  # libraries add methods to it
            for member in vars(above).values():
                reader.read(member)
    return reader.found


@kept_search(spaces_of=globals_of)
def functions_beside(module: torch.nn.Module) -> list[FunctionType]:
    """The functions of `user_functions`, and all others of the same files: of helper classes, inside decorators, hooks."""
    named = user_functions(module)
    spaces = {id(function.__globals__): function.__globals__ for function in named}
    found: dict[int, FunctionType] = {}
    for function in named:
        _unwrap(function, found)
    for space in spaces.values():
        for value in list(space.values()):
            is_class = isinstance(value, type) and value.__module__ == space.get("__name__")
            for member in list(vars(value).values()) if is_class else [value]:
                _unwrap(member, found)
    for part in module.modules():
        for value in list(vars(part).values()):
            for held in list(value.values()) if isinstance(value, dict) else [value]:
                _unwrap(held, found)
    return [function for function in found.values() if id(function.__globals__) in spaces]


def _unwrap(member: Any, found: dict[int, FunctionType]) -> None:
    """Add the functions behind a method, a property, a decorator or a cache, each once."""
    if isinstance(member, property):
        for accessor in (member.fget, member.fset):
            _unwrap(accessor, found)
    elif isinstance(member, (MethodType, staticmethod, classmethod)):
        _unwrap(member.__func__, found)
    elif isinstance(member, _lru_cache_wrapper):
        _unwrap(member.__wrapped__, found)
    elif isinstance(member, FunctionType) and id(member) not in found:
        found[id(member)] = member
        for cell in member.__closure__ or ():
            try:
                _unwrap(cell.cell_contents, found)
            except ValueError:  # a cell that nothing was put into yet
                continue


def codes_of(function: FunctionType) -> list[CodeType]:
    """A function's code, and that of the functions and comprehensions inside it."""
    found = [function.__code__]
    for code in found:
        found += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return found


def names_attribute(module: torch.nn.Module, name: str) -> bool:
    """Whether the user's code behind a module has this name, as an attribute or a global one."""
    return any(name in code.co_names for function in user_functions(module) for code in codes_of(function))


def find_line_of(module: torch.nn.Module, names: Collection[str]) -> tuple[str, Source] | None:
    """The first of these attributes or functions that the user's code has, with its line."""
    for function in functions_beside(module):
        for code in codes_of(function):
            for instruction in dis.get_instructions(code) if set(names).intersection(code.co_names) else ():
                if instruction.argval in names and instruction.positions is not None:
                    line = instruction.positions.lineno or code.co_firstlineno
                    return instruction.argval, make_source(code.co_filename, line, code.co_qualname)
    return None


class _Reader:
    """Functions, each read once."""

    def __init__(self) -> None:
        self.found: list[FunctionType] = []
        self._seen: set[CodeType] = set()

    def read(self, member: Any) -> None:
        """A function, whatever it is wrapped in, and those that it names."""
        function = _unwrapped(member)
        if not _is_users(function) or function.__code__ in self._seen:
            return
        self._seen.add(function.__code__)
        self.found.append(function)
        for code in codes_of(function):
            for name in code.co_names:
                self.read(function.__globals__.get(name))


def _unwrapped(member: Any) -> Any:
    """The function inside a static, class or bound method, a property, a partial or a decorator."""
    while isinstance(member, (staticmethod, classmethod, MethodType, partial)):
        member = member.func if isinstance(member, partial) else member.__func__
    member = member.fget if isinstance(member, property) else member
    return getattr(member, "__wrapped__", member)


def _is_users(function: Any) -> bool:
    return isinstance(function, FunctionType) and is_users(function.__code__.co_filename)


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
    if not isinstance(value, (tuple, list, set, frozenset, dict)) or len(value) > _MOST_ITEMS:
        return None
    return [*value, *value.values()] if isinstance(value, dict) else list(value)


def _is_filled(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _foreign_folders() -> tuple[str, ...]:
    import torch

    standard = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    return (str(Path(torch.__file__).parent), str(PACKAGE_FOLDER), *(str(Path(folder)) for folder in standard))


@lru_cache(maxsize=4096)
def is_users(file: str) -> bool:
    """Whether a file holds the user's own code, rather than torch's, ours or Python's."""
    if file.startswith(("<", "torch/")):
        return False
    site_packages = sysconfig.get_path("purelib")
    if file.startswith(site_packages):  # lies inside the standard library's folder on some systems
        torch_folder, our_folder = _foreign_folders()[:2]
        tools = [str(Path(site_packages) / name) for name in _TOOLS]
        return not file.startswith((torch_folder, our_folder, *tools))
    return not file.startswith(_foreign_folders())


def make_source(file: str, line: int, function: str = "") -> Source:
    """A source line with its text, its file as short as possible from the current folder."""
    text = linecache.getline(file, line).strip()
    return Source(file=shorten(file), line=line, function=function, text=text)


def source_of_error(error: BaseException) -> Source | None:
    """The deepest line of the user's code in an error's traceback; None when there is none."""
    found: Source | None = None
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if _is_entrance(traceback.tb_frame):
            found = None
        elif is_users(code.co_filename):
            found = make_source(code.co_filename, traceback.tb_lineno, code.co_qualname)
        traceback = traceback.tb_next
    return found


def source_of_running_code(depth: int = 1) -> Source | None:
    """The innermost line of the user's model on the running stack; None when there is none.

    Whoever called us is further out than our own stages, and no part of the model.
    """
    for frame in _frames_outwards(sys._getframe(depth)):
        code = frame.f_code
        if _is_entrance(frame):
            return None
        if is_users(code.co_filename):
            return make_source(code.co_filename, frame.f_lineno, code.co_qualname)
    return None


def source_of_stack_text(text: str | None) -> Source | None:
    """The innermost line of the user's code in a formatted stack, as torch keeps it on graph nodes."""
    for match in reversed(list(_STACK_LINE.finditer(text or ""))):
        if is_users(match["file"]):
            return make_source(match["file"], int(match["line"]), match["function"])
    return None


def is_ours(frame: FrameType) -> bool:
    """Whether a frame runs code of anyshape."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] == __name__.partition(".")[0]


def only_passes_on(frame: FrameType) -> bool:
    """Whether a frame runs code of anyshape that hands on to torch what its caller does."""
    return is_ours(frame) and frame.f_globals.get("__only_passes_on__", False)


def _is_entrance(frame: FrameType) -> bool:
    return is_ours(frame) and frame.f_globals.get("__is_entrance__", False)


def _frames_outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
