"""Other forms of the user's module: on a flat list of tensors, with its state as an argument, with another line of code.

Capturing the flat form frees us from torch's registry of containers: no class has to be registered, so none has to be
unregistered.

    StatefulModule(m, {"ema": slot})(x, state={"ema": tensor})   ->   Carried(m's outputs, {"ema": the tensor afterwards})

The state lies in its place within one call only; afterwards the module is as before. To try an edit of a line, the file is
compiled with the new line, and the function that has the line is bound to the parts of a copy of the module, in copied
globals. The user's file, classes, functions and module stay as they are.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch

from anyshape.findings import Source
from anyshape.modules.slots import Slot, putting
from anyshape.modules.structural_copy import working_copy
from anyshape.modules.user_code import names_attribute, user_functions, user_submodules

Rebuild = Callable[[Sequence[Any]], Any]
Call = Callable[[torch.nn.Module, Any], Any]
Flatten = Callable[[Any], Sequence[tuple[str, Any]]]


class Seen:
    """The last call's inputs, and the paths of its outputs. No attributes of the module: torch.export puts those back."""

    leaves: tuple[Any, ...] = ()
    paths: tuple[str, ...] = ()


class FlatModule(torch.nn.Module):
    """`forward(*leaves)` rebuilds the user's inputs, calls the user's module, and flattens its outputs.

    `seen.paths` has, after a call, the path of each output. Outputs that are no tensors become 0-d tensors, except
    sizes, which the capture must see as sizes. A module that calls `set_` gets copies of its inputs: torch.export has no way
    to write down that an input becomes another tensor.
    """

    def __init__(self, module: torch.nn.Module, rebuild: Rebuild, call: Call, flatten: Flatten) -> None:
        super().__init__()
        self.module = module
        self._rebuild = rebuild
        self._call = call
        self._flatten = flatten
        self._copies = names_attribute(module, "set_")
        self.seen = Seen()

    def forward(self, *leaves: Any) -> tuple[Any, ...]:
        self.seen.leaves = leaves
        if self._copies:
            leaves = tuple(leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves)
        outputs = [
            (path, leaf)
            for path, leaf in self._flatten(self._call(self.module, self._rebuild(leaves)))
            if leaf is not None and not isinstance(leaf, str)
        ]
        self.seen.paths = tuple(path for path, _ in outputs)
        return tuple(_as_output(leaf) for _, leaf in outputs)


def _as_output(leaf: Any) -> Any:
    if isinstance(leaf, (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)):
        return leaf
    return torch.tensor(leaf)


@dataclass(frozen=True, eq=False)
class Carried:
    """The outputs of a call, and the state after it: tensors by path (`state.ema.next`)."""

    outputs: Any
    state: Mapping[str, Any]


class StatefulModule(torch.nn.Module):
    """Calls `module` with the values of `state` in its slots; `parameter` is the name of that argument."""

    def __init__(self, module: torch.nn.Module, slots: Mapping[str, Slot], parameter: str) -> None:
        super().__init__()
        self.module = module
        self._slots = dict(slots)
        self._parameter = parameter

    def forward(self, *args: Any, **kwargs: Any) -> Carried:
        given = kwargs.pop(self._parameter)
        values = [given[name].clone() for name in self._slots]
        with putting(list(self._slots.values()), values):
            outputs = self.module(*args, **kwargs)
            after = {name: _as_tensor(slot.get(), given[name]) for name, slot in self._slots.items()}
        return Carried(outputs, {f"{self._parameter}.{name}.next": value for name, value in after.items()})


def _as_tensor(value: Any, like: torch.Tensor) -> torch.Tensor:
    """The state as a tensor; a Python number becomes one of the dtype that it had before."""
    return value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=like.dtype)


def edited_copy(module: torch.nn.Module, edits: Sequence[tuple[Source, str]]) -> torch.nn.Module | None:
    """A copy that runs each text in place of its line; None where the module cannot be copied or a line not be found."""
    functions = [_function_at(module, source) for source, _ in edits]
    codes = {function: _edited_code(function, edits) for function in functions if function is not None}
    copied = working_copy(module)
    if None in functions or None in codes.values() or copied is module:
        return None
    spaces = {id(function.__globals__): _Space(function.__globals__, codes) for function in codes}
    for part in user_submodules(copied):
        for name, method in _methods(type(part)):
            space = spaces.get(id(method.__globals__))
            if space is not None and name not in vars(part):
                vars(part)[name] = MethodType(space.rebound(method), part)
    is_reached = all(spaces[id(function.__globals__)].has_made(function) for function in codes)
    return copied if is_reached else None


class _Space:
    """A copy of the globals of a module file, whose functions run in the copy, some of them with other code."""

    def __init__(self, home: dict[str, Any], codes: Mapping[FunctionType, CodeType | None]) -> None:
        self._codes = codes
        self._copy = dict(home)
        self._made: set[FunctionType] = set()
        for name, value in home.items():
            if isinstance(value, FunctionType) and value.__globals__ is home:
                self._copy[name] = self.rebound(value)

    def rebound(self, function: FunctionType) -> FunctionType:
        """The same function in the copied globals, with its other code if it has one."""
        self._made.add(function)
        code = self._codes.get(function) or function.__code__
        made = FunctionType(code, self._copy, function.__name__, function.__defaults__, function.__closure__)
        made.__kwdefaults__ = function.__kwdefaults__
        made.__qualname__, made.__doc__ = function.__qualname__, function.__doc__
        vars(made).update(vars(function))
        return made

    def has_made(self, function: FunctionType) -> bool:
        """Whether the function is one of the copy's; one behind a decorator is not."""
        return function in self._made


def _methods(kind: type) -> Iterator[tuple[str, FunctionType]]:
    """The plain methods of a class and of those above it, each by the name under which an instance has it."""
    names = dict.fromkeys(name for above in kind.__mro__ for name in vars(above))
    for name in names:
        value = next(vars(above)[name] for above in kind.__mro__ if name in vars(above))
        if isinstance(value, FunctionType) and not (name.startswith("__") and name.endswith("__")):
            yield name, value


def _function_at(module: torch.nn.Module, source: Source) -> FunctionType | None:
    """The user's function that has this line, with this text; None where there is none or more than one."""
    found = [function for function in user_functions(module) if _has_line(function.__code__, source)]
    return found[0] if len(found) == 1 else None


def _has_line(code: CodeType, source: Source) -> bool:
    inside = any(line == source.line for _, _, line in code.co_lines())
    inside = inside or any(_has_line(inner, source) for inner in code.co_consts if isinstance(inner, CodeType))
    return inside and linecache.getline(code.co_filename, source.line).strip() == source.text


def _edited_code(function: FunctionType, edits: Sequence[tuple[Source, str]]) -> CodeType | None:
    """The function's code, compiled from its file with the new texts; None where that is not the same function."""
    file = function.__code__.co_filename
    lines = list(linecache.getlines(file))
    for source, text in edits:
        if source.line <= len(lines) and (old := lines[source.line - 1]).strip() == source.text:
            lines[source.line - 1] = old[: len(old) - len(old.lstrip())] + text + "\n"
    try:
        whole = compile("".join(lines), file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    same = [
        code
        for code in _codes_in(whole)
        if (code.co_qualname, code.co_firstlineno) == (function.__code__.co_qualname, function.__code__.co_firstlineno)
    ]
    if len(same) != 1 or same[0].co_freevars != function.__code__.co_freevars:
        return None
    return same[0]


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _codes_in(inner)
