"""Join both sides of a branch on sizes that only compute numbers, pad, resize, slice or copy, so that it decides nothing.

    if width % 4 != 0:                                ->     x = pad(x, (0, <4 - width % 4, or 0 where width % 4 == 0>))
        x = pad(x, (0, 4 - width % 4))

A model with such a branch in each of five layers, on two sizes, has a thousand ways through its code. The functions get other
code objects, made of their source: both sides run, and each number that they set is chosen by `size_choices`. Where a number
cannot be chosen so, the branch is taken as it was written. To pad by 0, and to resize or slice to the sizes that a tensor has,
changes nothing: that replaces the other side. `if x.numel() > 2**31: x = x.contiguous()` copies on both sides. Sides that do
anything else are not joined.

`a is b` of two sizes is the condition that it is of two ints in eager mode: equal, and not larger than those of which Python
keeps one object each. Two open sizes are never one object. `torch.tensor([h for _ in range(n)])` is a tensor of n elements.

To pad by 0 or to copy gives a new tensor, where the user's code goes on with the same one, and a later write into one is seen
in both. `check_unwritten` finds such a write, and the module is captured without joined branches.
"""

from __future__ import annotations

import ast
import copy
import dis
import inspect
import linecache
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import count, pairwise
from types import CodeType, FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from torch import SymBool, SymFloat, SymInt

from anyshape.intercept.branch_syntax import (
    CHOICE,
    COPIED,
    EITHER,
    FLAG,
    IS_OPEN,
    IS_SAME,
    PADDED,
    REPEATED,
    RESIZED,
    SLICED,
    has_branch,
    has_called,
    join_branches,
    write_calls,
)
from anyshape.intercept.call_sites import SameCode, redirect
from anyshape.intercept.patching import is_capturing, patched
from anyshape.intercept.size_choices import NotJoined, choose, missing_to_multiple, reaches

__only_passes_on__ = True

_COMPARE = dis.opmap["COMPARE_OP"]
_BINARY = dis.opmap["BINARY_OP"]
_REMAINDERS = (6, 19)  # `%` and `%=` among Python's binary operators
_SLICING = [dis.opmap[name] for name in ("BUILD_SLICE", "BINARY_SLICE") if name in dis.opmap]
_COPYING = ("linear", "bilinear", "trilinear")
_IS = dis.opmap["IS_OP"]
_LARGEST_KEPT = next(n for n in count() if int(str(n + 1)) is not int(str(n + 1)))  # 256, in CPython to 3.14
_MAKERS = (torch.tensor, torch.as_tensor)
_JUMPS = {*dis.hasjrel, *dis.hasjabs}


_TENSORS: ContextVar[list[tuple[torch.Tensor, int]]] = ContextVar("tensors on both sides of joined branches")


class WrittenLaterError(Exception):
    """A tensor is written into that a joined branch has made of another one, or the other one is."""


@contextmanager
def joined_branches(functions: Iterable[FunctionType]) -> Iterator[None]:
    """Within this, these functions run both sides of each branch that can be joined. Afterwards their code is as before."""
    before: list[tuple[FunctionType, CodeType]] = []
    outer = _TENSORS.set([])
    try:
        for function in functions:
            code = _joined(SameCode(function.__code__))
            if code is not None:
                before.append((function, function.__code__))
                function.__code__ = code
        with patched([(SymInt, "__mod__", _remainder(SymInt.__mod__))]):
            yield
    finally:
        _TENSORS.reset(outer)
        for function, code in before:
            function.__code__ = code


def check_unwritten() -> None:
    """Raise WrittenLaterError where a tensor was written into after a joined branch had made another one of it."""
    if any(tensor._version != version for tensor, version in _TENSORS.get()):
        raise WrittenLaterError


def _noted(x: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
    _TENSORS.get().extend((each, each._version) for each in (x, made))
    return made


def _remainder(own: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def remainder(number: SymInt, divisor: Any) -> Any:
        missing = missing_to_multiple(number, divisor)
        return own(number, divisor) if missing is None else missing

    return remainder


@lru_cache(maxsize=4096)
def _joined(of: SameCode) -> CodeType | None:
    """The code with branches joined; None where it has no such branch, or was not made of the source that its file has."""
    try:
        tree = _parsed(of.code)
        if tree is None or not (has_branch(tree.body) or has_called(tree)):
            return None
        own, joined = (ast.increment_lineno(each, of.code.co_firstlineno - 1) for each in (tree, copy.deepcopy(tree)))
        is_joined = join_branches(joined)
        if not is_joined and not has_called(joined):
            return None
        write_calls(joined)
        unchanged, code = (_compiled(each, of.code) for each in (own, joined))
    except (OSError, SyntaxError, TypeError, ValueError):
        return None
    if unchanged is None or code is None or _listing(unchanged) != _listing(of.code):
        return None
    return redirect(code, _HELPERS)


def _listing(code: CodeType) -> list[tuple[str, str]]:
    """What a code does. How a function of an imported module is loaded depends on the rest of its file, and is left out."""
    found = []
    for each in dis.get_instructions(code):
        name = "LOAD_ATTR" if each.opname == "LOAD_METHOD" else each.opname
        shown = "" if each.opcode in _JUMPS or isinstance(each.argval, CodeType) else each.argrepr.rpartition(" + ")[2]
        found += [(name, shown)] if name not in ("PUSH_NULL", "NOP", "EXTENDED_ARG") else []
    return found


def _parsed(code: CodeType) -> ast.FunctionDef | None:
    """The syntax of a function, its lines from 1 on; None where its bytecode shows no branch that could be joined."""
    if code.co_name == "<lambda>" or not _may_have_branches(code):
        return None
    try:
        tree = ast.parse(textwrap.dedent("".join(_lines_of(code)))).body[0]
    except SyntaxError:  # its last lines leave nothing in the bytecode
        tree = ast.parse(textwrap.dedent("".join(inspect.getsourcelines(code)[0]))).body[0]
    return tree if isinstance(tree, ast.FunctionDef) else None


def _lines_of(code: CodeType) -> list[str]:
    """The lines of a function up to the last one of its bytecode; `inspect` splits the source into tokens for it."""
    last = max(_last_lines(code), default=code.co_firstlineno)
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 : last]
    if not lines:
        raise OSError(f"no source of {code.co_name}")
    return lines


def _last_lines(code: CodeType) -> Iterator[int]:
    yield from (end for _, end, _, _ in code.co_positions() if end is not None)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _last_lines(inner)


def _may_have_branches(code: CodeType) -> bool:
    """Whether it compares, and divides, pads, resizes, slices or copies; or compares by identity, in a function inside of it as
    well, or makes a tensor of a list: reading the source of each function takes long."""
    units = code.co_code
    if _asks_for_identity(code) or ("range" in code.co_names and not {"tensor", "as_tensor"}.isdisjoint(code.co_names)):
        return True
    if _COMPARE not in units[::2]:
        return False
    has_slices = any(each in units[::2] for each in _SLICING)
    pairs = zip(units[::2], units[1::2], strict=True)
    return (
        not {"pad", "interpolate", "contiguous"}.isdisjoint(code.co_names)
        or has_slices
        or any(each == _BINARY and of in _REMAINDERS for each, of in pairs)
    )


def _asks_for_identity(code: CodeType) -> bool:
    """Whether it has an `is` whose right side is no constant, such as None."""
    if _IS in code.co_code[::2]:
        listed = [each for each in dis.get_instructions(code) if each.opname != "EXTENDED_ARG"]
        if any(each.opcode == _IS and not before.opname.startswith("LOAD_CONST") for before, each in pairwise(listed)):
            return True
    return any(_asks_for_identity(inner) for inner in code.co_consts if isinstance(inner, CodeType))


def _compiled(tree: ast.FunctionDef, own: CodeType) -> CodeType | None:
    """The code of the function, which has the same free variables as its own code."""
    inner = ast.FunctionDef(tree.name, _without_defaults(tree.args), tree.body, [], None)
    free = ast.arguments([], [ast.arg(name) for name in own.co_freevars], None, [], [], None, [])
    outer = ast.FunctionDef("outer", free, [inner], [], None)
    for each in (inner, outer):
        each.type_params = []  # type: ignore[attr-defined]
        ast.copy_location(each, tree)
    whole = ast.fix_missing_locations(ast.Module([outer], []))
    made = compile(whole, own.co_filename, "exec", dont_inherit=True)
    outer_code = next(each for each in made.co_consts if isinstance(each, CodeType))
    code = next(
        (each for each in outer_code.co_consts if isinstance(each, CodeType) and each.co_name == tree.name), None
    )
    if code is None or code.co_freevars != own.co_freevars:
        return None
    return code.replace(co_firstlineno=own.co_firstlineno, co_qualname=own.co_qualname)


def _without_defaults(given: ast.arguments) -> ast.arguments:
    def bare(each: ast.arg | None) -> Any:
        return None if each is None else ast.arg(each.arg)

    lists = [[bare(each) for each in group] for group in (given.posonlyargs, given.args, given.kwonlyargs)]
    return ast.arguments(
        lists[0], lists[1], bare(given.vararg), lists[2], [None for _ in lists[2]], bare(given.kwarg), []
    )


def _is_open(condition: Any) -> bool:
    """Whether a condition is one on open sizes that is not known."""
    if not isinstance(condition, SymBool) or not is_capturing():
        return False
    return condition.node.shape_env is not None and condition.node.constant is None


def _is_same(one: Any, other: Any) -> bool:
    """`one is other`; of sizes, as it is of the ints that they are in eager mode."""
    of_sizes = all(isinstance(each, (SymInt, int)) for each in (one, other)) and SymInt in (type(one), type(other))
    if one is other or not of_sizes or not is_capturing():
        return one is other
    return bool(one == other) and bool(one <= _LARGEST_KEPT)


def _repeated(function: Any, element: Callable[[], Any], count: Any, **kwargs: Any) -> torch.Tensor:
    """`function([element() for _ in range(count)])`; of an open size, a tensor that is filled with the number."""
    is_open = (
        isinstance(count, SymInt) and is_capturing() and function in _MAKERS and not kwargs.keys() - {"dtype", "device"}
    )
    number: Any = element() if is_open else None
    if type(number) not in (int, float, SymInt, SymFloat):
        return function([element() for _ in range(count)], **kwargs)
    dtype = torch.int64 if isinstance(number, (int, SymInt)) else torch.get_default_dtype()
    return torch.full((torch.sym_max(count, 0),), number, **{"dtype": dtype, **kwargs})


def _known(value: Any) -> Any:
    """A condition that is true or false whatever the sizes are, as a bool."""
    if isinstance(value, SymBool) and not value.node.expr.free_symbols:
        return bool(value)
    return value


def _either(is_any: bool, *operands: Callable[[], Any]) -> Any:
    """`a or b`, and `a and b` where `is_any` is false: of open conditions one open condition."""
    value: Any = not is_any
    for at, operand in enumerate(operands):
        one = operand()
        if at and isinstance(value, SymBool) and isinstance(one, (SymBool, bool)):
            one = value | one if is_any else value & one
        value = _known(one)
        if not isinstance(value, SymBool) and bool(value) == is_any:
            return value
    return value


def _padded(condition: Any, function: Any, x: torch.Tensor, pad: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    """The padded tensor where the condition holds, the same tensor elsewhere."""
    if function is not F.pad or type(pad) not in (tuple, list):
        raise NotJoined
    amounts = [choose(condition, each, 0) for each in pad]
    return _noted(x, function(x, amounts, *args, **kwargs))


def _resized(condition: Any, function: Any, x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """The resized tensor where the condition holds, the same tensor elsewhere: at its own size, each of these modes copies."""
    if function is not F.interpolate:
        raise NotJoined
    given = inspect.signature(function).bind(x, *args, **kwargs).arguments
    size = given.pop("size", None)
    size = (size,) * (x.dim() - 2) if type(size) in (int, SymInt) else size
    if type(size) not in (tuple, list) or len(size) != x.dim() - 2 or given.get("mode") not in _COPYING:
        raise NotJoined
    if not x.is_floating_point() or given.keys() - {"input", "mode", "align_corners"}:
        raise NotJoined
    chosen = [choose(condition, each, own) for each, own in zip(size, x.shape[2:], strict=True)]
    return _noted(x, F.interpolate(size=chosen, **given))


def _flag(condition: Any, one: Any, other: Any) -> Any:
    """`one` where the condition holds, `other` elsewhere; of True and False it is the condition, or its opposite."""
    if type(one) is bool and type(other) is bool and one != other:
        return condition if one else ~condition
    return choose(condition, one, other)


def _sliced(condition: Any, x: torch.Tensor, *limits: tuple[Any, Any]) -> torch.Tensor:
    """The slice where the condition holds, the whole tensor elsewhere. `limits` has the two ends for each axis."""
    if not isinstance(x, torch.Tensor) or len(limits) > x.ndim:
        raise NotJoined
    for axis, (size, (start, stop)) in enumerate(zip(x.shape, limits, strict=False)):
        first = 0 if start is None else choose(condition, start, 0)
        last = size if stop is None else choose(condition, stop, size)
        if start is None and last is not size and reaches(size, last):
            x = x.narrow(axis, 0, last)  # of that length, and not of the smaller of two
        elif start is not None or stop is not None:
            x = x[(*[slice(None)] * axis, slice(first, last))]
    return x


def _copied(x: torch.Tensor) -> torch.Tensor:
    """x.contiguous(), without the question whether it is contiguous already."""
    return _noted(x, x.clone(memory_format=torch.contiguous_format))


_HELPERS: dict[str, Callable[..., Any]] = {
    CHOICE: choose,
    COPIED: _copied,
    EITHER: _either,
    FLAG: _flag,
    IS_OPEN: _is_open,
    IS_SAME: _is_same,
    PADDED: _padded,
    REPEATED: _repeated,
    RESIZED: _resized,
    SLICED: _sliced,
}
