"""The user's own code behind a module: its functions, and which line of it is running or raised.

Found by reading, not by running: a line that did not run at the example's sizes is code all the same.

Code is the user's unless it is torch's, ours, the standard library's, numpy's or psutil's, whatever its file is called, and
wherever it is installed: a library of models or of functions for them is the user's code in this sense.

Two marks in a module of anyshape, which move with it to another file:
    __is_entrance__ = True        a conversion begins here: the callers of its functions are not the model
    __only_passes_on__ = True     its functions hand on to torch what their caller does: a question of theirs is the caller's
"""

from __future__ import annotations

import dis
import inspect
import linecache
import os
import re
import sys
import sysconfig
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import _lru_cache_wrapper, lru_cache, partial
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, NamedTuple

import torch

from anyshape.findings import Source
from anyshape.findings.finding import PACKAGE_FOLDER, shorten
from anyshape.modules import globals_of, kept_search
from anyshape.modules.plain_access import is_a, items_of

_MADE = ("<eval_with_key>", "<__array_function__")  # made by torch.fx and numpy
_FROZEN = "<frozen "  # a module inside the interpreter: Python's own, or one of a program that was frozen
# numpy's functions are replaced as a whole (intercept/open_arrays), and most of it has no source; psutil is what we call
_TOOLS = ("numpy", "psutil")
FOREIGN_MODULES = frozenset((*sys.stdlib_module_names, "anyshape", "torch", *_TOOLS)) - {"__main__"}
_NAME_IN_GUARDS = (
    "IsNonOverlappingAndDenseIndicator"  # torch gives the functions of its expressions to code that it writes
)
_NAMED_TUPLE = "namedtuple_"
_STACK_LINE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')


def user_submodules(module: torch.nn.Module) -> list[torch.nn.Module]:
    """The module and its submodules, as far as their forward is the user's."""
    forwards = ((part, inspect.getattr_static(type(part), "forward", None)) for part in module.modules())
    return [part for part, forward in forwards if is_users_function(unwrapped(forward))]


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
            is_class = is_a(value, type) and value.__module__ == space.get("__name__")
            for member in list(vars(value).values()) if is_class else [value]:
                _unwrap(member, found)
    for part in module.modules():
        for value in list(vars(part).values()):
            for held in items_of(value) if is_a(value, dict) else [value]:
                _unwrap(held, found)
    return [function for function in found.values() if id(function.__globals__) in spaces]


def _unwrap(member: Any, found: dict[int, FunctionType]) -> None:
    """Add the functions behind a method, a property, a decorator or a cache, each once."""
    if is_a(member, property):
        for accessor in (member.fget, member.fset):
            _unwrap(accessor, found)
    elif is_a(member, (MethodType, staticmethod, classmethod)):
        _unwrap(member.__func__, found)
    elif is_a(member, _lru_cache_wrapper):
        _unwrap(member.__wrapped__, found)
    elif is_a(member, FunctionType) and id(member) not in found:
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
        function = unwrapped(member)
        if not is_users_function(function) or function.__code__ in self._seen:
            return
        self._seen.add(function.__code__)
        self.found.append(function)
        for code in codes_of(function):
            for name in code.co_names:
                self.read(function.__globals__.get(name))


def unwrapped(member: Any) -> Any:
    """The function inside a static, class or bound method, a property, a partial or a decorator."""
    while is_a(member, (staticmethod, classmethod, MethodType, partial)):
        member = member.func if is_a(member, partial) else member.__func__
    member = member.fget if is_a(member, property) else member
    return inspect.getattr_static(member, "__wrapped__", member)


def is_users_function(function: Any) -> bool:
    """Whether a value is a function of the user's."""
    return is_a(function, FunctionType) and _is_users_code(function.__code__, function.__globals__)


def _foreign_folders() -> tuple[str, ...]:
    import torch

    standard = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    return _beginnings(Path(torch.__file__).parent, PACKAGE_FOLDER, *standard)


def _installed_folders() -> tuple[str, ...]:
    return _beginnings(sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))


def _tool_folders() -> tuple[str, ...]:
    """Those that are imported, wherever they are installed."""
    return _beginnings(*(Path(str(import_module(name).__file__)).parent for name in _TOOLS))


def _beginnings(*folders: str | Path) -> tuple[str, ...]:
    """How the paths of files in these folders begin: `torch/`, which `torchaudio/` does not begin with."""
    return tuple(f"{Path(folder)}{os.sep}" for folder in folders)


@lru_cache(maxsize=4096)
def is_users(file: str) -> bool:
    """Whether a file holds the user's own code, rather than torch's, ours or Python's.

    Code without a file (`python -c`, a pipe, a prompt, `exec`) is the user's; see `runs_users_code` for that of others.
    """
    if file.startswith(("torch/", *_MADE)):
        return False
    if file.startswith(_FROZEN):
        return file.removeprefix(_FROZEN).rstrip(">").partition(".")[0] not in (*FOREIGN_MODULES, "getpath")
    if file.startswith(_installed_folders()):  # lies inside the standard library's folder on some systems
        return not file.startswith((*_foreign_folders()[:2], *_tool_folders()))
    return not file.startswith((*_foreign_folders(), *_tool_folders()))


def runs_users_code(frame: FrameType) -> bool:
    """Whether a frame runs the user's own code."""
    return _is_users_code(frame.f_code, frame.f_globals)


def acts_for_caller(frame: FrameType) -> bool:
    """Whether a frame runs code of the standard library, or of a tool: what that compares, its caller asks for."""
    file = frame.f_code.co_filename
    is_torchs = file.startswith(("torch/", "<eval_with_key>", _foreign_folders()[0]))
    return not (is_torchs or is_ours(frame) or runs_users_code(frame))


def _is_users_code(code: CodeType, space: Mapping[str, Any]) -> bool:
    """Code that was made from a text, such as the `__init__` of a dataclass, belongs to the module in whose globals it runs.

    That of a named tuple runs in globals of its own, and is Python's; and so is torch's, the conditions of a captured program.
    """
    if not is_users(code.co_filename):
        return False
    root = str(space.get("__name__", "")).partition(".")[0]
    is_others = root in FOREIGN_MODULES or root.startswith(_NAMED_TUPLE) or _NAME_IN_GUARDS in space
    return not (code.co_filename.startswith("<") and is_others)


def make_source(file: str, line: int, function: str = "") -> Source:
    """A source line with its text, its file as short as possible from the current folder."""
    text = linecache.getline(file, line).strip()
    return Source(file=shorten(file), line=line, function=function, text=text)


class _Place(NamedTuple):
    """A line of the user's code on a stack."""

    file: str
    line: int
    function: str

    @property
    def package(self) -> str:
        """The folder of an installed package; the same for all code that is not installed."""
        folder = next((each for each in _installed_folders() if self.file.startswith(each)), None)
        return (
            "" if folder is None else self.file.removeprefix(folder).lstrip("/\\").partition("/")[0].partition("\\")[0]
        )


def _source_in_model(places: Sequence[_Place]) -> Source | None:
    """The line of a stack, outermost first, that an error or a condition belongs to: the innermost one of the model.

    The package of the innermost `forward` is the model's; what that calls in another package, such as a function that
    rearranges axes, is told by the line that calls it. So is code without a text, such as the `__eq__` of a dataclass.
    """
    forward = next((place for place in reversed(places) if place.function.rpartition(".")[2] == "forward"), None)
    own = [place for place in places if forward is None or place.package == forward.package]
    with_text = (place for place in reversed(own) if make_source(*place).text)
    place = next(with_text, own[-1] if own else None)
    return None if place is None else make_source(*place)


def source_of_error(error: BaseException) -> Source | None:
    """The line of the user's model in an error's traceback; None when there is none."""
    places: list[_Place] = []
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if _is_entrance(frame):
            places.clear()
        elif runs_users_code(frame):
            places.append(_Place(frame.f_code.co_filename, traceback.tb_lineno, frame.f_code.co_qualname))
        traceback = traceback.tb_next
    return _source_in_model(places)


def source_of_running_code(depth: int = 1) -> Source | None:
    """The innermost line of the user's model on the running stack; None when there is none.

    Whoever called us is further out than our own stages, and no part of the model.
    """
    places: list[_Place] = []
    for frame in _frames_outwards(sys._getframe(depth)):
        if _is_entrance(frame):
            break
        if runs_users_code(frame):
            places.append(_Place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname))
    return _source_in_model(places[::-1])


def source_of_stack_text(text: str | None) -> Source | None:
    """The innermost line of the user's code in a formatted stack, as torch keeps it on graph nodes."""
    found = [_Place(each["file"], int(each["line"]), each["function"]) for each in _STACK_LINE.finditer(text or "")]
    return _source_in_model([place for place in found if is_users(place.file)])


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
