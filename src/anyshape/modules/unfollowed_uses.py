"""Uses of plain values in the user's code that no arithmetic on sizes follows: `f"{n:04d}".startswith("03")`, `n in table`.

Python traces the call line by line. What each such use works with is evaluated before its line runs, as far as that has no
effect. Calls at other sizes show whether it depends on a size. Texts that are only printed or raised are left out.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import getattr_static
from itertools import permutations
from types import FrameType, MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch

from anyshape.modules.line_trace import look_at_lines
from anyshape.modules.look_ups import LookUp, Numbers, numbers_in, numbers_of_keys, parts_of_value, read_look_up
from anyshape.modules.plain_access import kind_of_container
from anyshape.modules.user_code import is_users_function, runs_users_code
from anyshape.modules.uses_in_code import Use, Watching, lines_that_pass_on, uses_in

_MOST_ITEMS = 64
_MOST_NAMED = 3  # numbers of a key that are tried in all orders
_RETURNED = -1  # in place of a column: a text that a function returned to this line
_EVEN_BUILTINS = (
    *(abs, all, any, bool, enumerate, float, getattr, hasattr, int, isinstance, iter, len, list, max, min, next, pow),
    *(range, reversed, slice, sum, super, tuple, type, zip, map, print, setattr, object.__setattr__),
)
_TEXTS = (str, repr, format)  # a text is a use only where something is done with it
_TOLD_BY_TORCH = (torch._assert, torch.profiler.record_function, torch.cuda.nvtx.range_push, torch.cuda.nvtx.mark)
_EVEN_MATH = ("ceil", "exp", "fabs", "floor", "isqrt", "log", "log10", "log2", "pow", "prod", "sqrt", "trunc")
_EVEN_NUMPY = (
    *("abs", "array", "asarray", "ceil", "exp", "floor", "int32", "int64", "float32", "float64", "log", "log2"),
    *("maximum", "minimum", "prod", "sqrt", "sum"),
)
_EVEN = frozenset(
    (*_EVEN_BUILTINS, *_TEXTS, *(getattr(math, name) for name in _EVEN_MATH), *(getattr(np, n) for n in _EVEN_NUMPY))
)


class Seen(NamedTuple):
    """What a use worked with, as a text; and what it looked up, by the place of the container among what it worked with."""

    text: str
    look_ups: Mapping[int, LookUp] = MappingProxyType({})


@dataclass(frozen=True)
class Watched:
    """What each use of a call worked with, and the files and lines that ran; None where the call was too long to watch."""

    uses: Mapping[Use, Seen] = field(default_factory=dict)
    lines: frozenset[tuple[str, int]] | None = None


@dataclass
class _Reached:
    """A use that was reached: what it worked with the first time.

    By place, the numbers of what it looked for there, and each container (or other side of an equality) that it looked in.
    """

    text: str
    items: dict[int, Numbers]
    containers: dict[int, list[Any]]
    node: ast.AST | None = None

    def add(self, other: _Reached) -> None:
        """Take over the containers in which the same item was looked for."""
        for place, containers in other.containers.items():
            known = self.containers.get(place, [])
            if other.items[place] == self.items.get(place) and len(known) < _MOST_ITEMS:
                known += [each for each in containers if all(each is not one for one in known)]


def watch_uses(call: Callable[[], Any]) -> Watched:
    """What each use worked with when it was first reached in this call. What the call raises is dropped.

    A use in a loop looks in every container that it comes to.
    """
    found: dict[Use, _Reached] = {}

    def look(use: Watching, frame: FrameType) -> bool:
        at = use.at._replace(function=frame.f_code.co_qualname)
        try:
            reached = _look(use, frame)
        except Exception:  # a name has no value at this moment
            return at in found
        if reached is not None:
            found.setdefault(at, reached).add(reached)
        return True

    def note_returned(frame: FrameType, value: Any) -> None:
        text = _plain_text(value) if _has_text(value) else None
        caller = frame.f_back
        if text is None or caller is None or not runs_users_code(caller) or _is_followed_on(value, caller):
            return
        at = Use(caller.f_code.co_filename, caller.f_lineno, _RETURNED, caller.f_code.co_qualname)
        found.setdefault(at, _Reached(text, {}, {}))

    lines = look_at_lines(call, uses_in, look, note_returned)
    read: dict[int, list[Numbers]] = {}
    uses = {at: Seen(reached.text, dict(_look_ups(reached, read))) for at, reached in found.items()}
    return Watched(uses, lines)


def _has_text(value: Any) -> bool:
    return isinstance(value, (str, bytes)) or (isinstance(value, (tuple, list)) and any(map(_has_text, value)))


def _is_followed_on(text: Any, caller: FrameType) -> bool:
    """Whether a text that a function returned is only given a name there, returned once more, or a cache's only key."""
    code, line = caller.f_code, caller.f_lineno
    if line in lines_that_pass_on(code):
        return True
    for use in uses_in(code).get(line, ()):
        place = -1 if isinstance(use.node, ast.Compare) else 0
        with suppress(Exception):
            if _holds_no_other(eval(use.operands[place], caller.f_globals, caller.f_locals), text):
                return True
    return False


def _look_ups(reached: _Reached, read: dict[int, list[Numbers]]) -> Iterator[tuple[int, LookUp]]:
    """The look-ups of a use. The keys of each container are read once."""
    for place, containers in reached.containers.items():
        keys = [key for each in containers for key in read.get(id(each)) or _read(each, read)]
        look_up = read_look_up(reached.items[place], _with_others(keys, reached.node))
        if look_up is not None:
            yield place, look_up


def _with_others(keys: Iterable[Numbers], node: ast.AST | None) -> Iterator[Numbers]:
    """The keys, and others at which the use may decide: beside them where it orders (`(h, w) > (40, 56)`), and with their
    numbers in other places where names give these (`Size(width=w, height=h) in table`).
    """
    is_order = isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
    inside = ast.walk(node) if node is not None else ()
    is_named = any(isinstance(each, ast.Call) and len(each.keywords) > 1 for each in inside)
    for key in keys:
        yield key
        if is_order and key:
            last = key[-1]  # beyond the next sizes as well: these alone look like an equality
            yield from ((*key[:-1], other) for other in (last - 1, last + 1, last // 2, 2 * last + 1))
        if is_named and len(key) <= _MOST_NAMED:
            yield from permutations(key)


def _read(container: Any, read: dict[int, list[Numbers]]) -> list[Numbers]:
    read[id(container)] = numbers_of_keys(container)
    return read[id(container)]


def _look(use: Watching, frame: FrameType) -> _Reached | None:
    """What a use works with; None where it is followed elsewhere."""
    values = [eval(each, frame.f_globals, frame.f_locals) for each in use.operands]
    if _is_followed(use, values, frame):
        return None
    is_even = isinstance(use.node, ast.Call) and _is_even_call(use, frame)
    told = [value if _has_text(value) else None for value in values] if is_even else values  # its numbers are followed
    texts = [_plain_text(value) for value in told]
    text = " | ".join(text for text in texts if text is not None)
    if not text:
        return None
    # A container may stand at any place: `item in t`, `t.get(item)`, `dict.get(t, item)`, `text == other`.
    items = {place: numbers_in([*told[:place], *told[place + 1 :]]) for place in range(len(values))}
    is_equality = isinstance(use.node, ast.Compare) and not isinstance(use.node.ops[0], (ast.In, ast.NotIn))
    is_one = [is_equality and not isinstance(value, np.ndarray) for value in values]  # each row of an array is compared
    containers = {
        place: [(values[place],) if is_one[place] else values[place]] for place, item in items.items() if item
    }
    return _Reached(text, items, containers, use.node)


def _is_followed(use: Watching, values: Sequence[Any], frame: FrameType) -> bool:
    """Whether the conditions of a capture, or watched comparisons, show what this use does with these values."""
    node = use.node
    if isinstance(node, ast.Call):
        return _is_even_call(use, frame) and (not any(map(_has_text, values)) or _passes_texts(use, frame))
    if any(map(_is_of_tensor, values)):
        return True
    if isinstance(node, ast.Subscript):
        return _is_plain_item(node, values)
    if isinstance(node, ast.Compare):
        if isinstance(node.ops[0], (ast.In, ast.NotIn)):
            return len(values) > 1 and _holds_no_other(values[1], values[0])
        sides = (node.left, *node.comparators)
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)) and any(
            isinstance(each, ast.Constant) and each.value is None for each in sides
        ):
            return True  # `shape is None`: what gave the shape is a use of its own
        if any(map(_compares_in_users_code, values)):
            return True
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)) and all(map(_is_number, values)):
            # Python keeps one object of each small int: whether two sizes are one is no comparison of numbers.
            return all(isinstance(value, bool) for value in values)
        # With None, `==` and `is` give the same at every size, and `<` does not come to run: `limit is not None and n < limit`.
        return all(value is None or _is_number(value) for value in values)
    return isinstance(node, (ast.If, ast.While, ast.IfExp)) and all(isinstance(each, bool) for each in values)


def _is_of_tensor(value: Any) -> bool:
    """A tensor, or one of its methods: what it gives is followed as a tensor is, or asked of its values."""
    return isinstance(value, torch.Tensor) or isinstance(getattr(value, "__self__", None), torch.Tensor)


def _is_plain_item(node: ast.Subscript, values: Sequence[Any]) -> bool:
    """Whether an item of a tensor is taken, one at a fixed place of a list, or the only one of a dict: its own key."""
    if not values:
        return True
    is_fixed = not any(isinstance(inner, (ast.Name, ast.Attribute, ast.Call)) for inner in ast.walk(node.slice))
    if is_fixed:
        return not isinstance(values[0], (str, bytes))
    return isinstance(values[0], dict) and len(values) > 1 and _holds_no_other(values[0], values[1])


def _holds_no_other(container: Any, item: Any) -> bool:
    """Whether a container is empty, or holds this item alone: a cache that this call has filled."""
    with suppress(Exception):
        return isinstance(container, (dict, set, frozenset, list, tuple)) and all(
            bool(each == item) for each in container
        )
    return False


def _is_even_call(use: Watching, frame: FrameType) -> bool:
    """Whether a call computes with sizes as arithmetic does, is one of torch's, or runs code of the user that is watched."""
    function = _called(use, frame)
    if function is None:  # the method of something that is computed first
        assert isinstance(use.node, ast.Call)
        return isinstance(use.node.func, ast.Attribute) and hasattr(torch.Tensor, use.node.func.attr)
    function = getattr(function, "__wrapped__", function)
    if _is_users(function) or isinstance(function, torch.nn.Module) or _is_torchs(function):
        return True
    if isinstance(function, type):
        is_own = function.__module__ not in ("builtins", "decimal", "fractions")
        return function in _EVEN or (is_own and not issubclass(function, (str, int, float, np.generic)))
    with suppress(TypeError):
        return function in _EVEN
    return False


def _is_torchs(function: Any) -> bool:
    """Whether a function or method is one of torch, or one that only writes messages."""
    return "torch" in _packages_of(function) or _only_tells(function)


def _only_tells(function: Any) -> bool:
    """Whether a function or method only writes messages: of `logging` or `warnings`, or one for messages of torch."""
    is_torchs = any(function is each for each in _TOLD_BY_TORCH)
    return is_torchs or not _packages_of(function).isdisjoint(("logging", "warnings"))


def _packages_of(function: Any) -> set[str]:
    """The packages of a function, of the object whose method it is, and of that object's class."""
    owner = getattr(function, "__self__", None)
    places = (getattr(function, "__module__", None), getattr(owner, "__module__", None), type(owner).__module__)
    return {str(place).partition(".")[0] for place in places}


def _passes_texts(use: Watching, frame: FrameType) -> bool:
    """Whether what becomes of a text in such a call is seen elsewhere, or decides nothing.

    It makes a text or a container of it, runs code of the user that is watched, or only writes it. Torch looks it up:
    `self.get_buffer(f"window_{n}")`.
    """
    function = _called(use, frame)
    function = getattr(function, "__wrapped__", function)
    if any(function is each for each in _TEXTS) or _only_tells(function) or isinstance(function, torch.nn.Module):
        return True
    if isinstance(function, type):
        is_plain = type(function).__call__ is type.__call__  # an Enum looks its members up
        return is_plain and (
            kind_of_container(function) is not None or _is_users(getattr_static(function, "__init__", None))
        )
    return _is_users(function)


def _is_users(function: Any) -> bool:
    """Whether a function or method is the user's: what it does is watched."""
    return is_users_function(getattr(function, "__func__", function))


def _compares_in_users_code(value: Any) -> bool:
    """Whether the class of an object compares in code of the user's, which is watched."""
    return _is_users(getattr_static(type(value), "__eq__", None))


def _called(use: Watching, frame: FrameType) -> Any:
    if use.function is None:
        return None
    with suppress(Exception):
        return eval(use.function, frame.f_globals, frame.f_locals)
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number))


def _plain_text(value: Any, depth: int = 2) -> str | None:
    """A text of plain data; None for tensors, modules and other objects."""
    if value is None or isinstance(value, (str, bytes, int, float, complex, np.generic)):
        return repr(value)
    if isinstance(value, dict):
        value = list(value.items())
    if isinstance(value, (tuple, list, set, frozenset)) and len(value) <= _MOST_ITEMS and depth:
        return f"[{', '.join(str(_plain_text(each, depth - 1)) for each in value)}]"
    parts = parts_of_value(value) if depth else ()
    if parts and len(parts) <= _MOST_ITEMS:
        return f"{type(value).__name__}{_plain_text(parts, depth)}"
    return repr(value.tolist()) if isinstance(value, np.ndarray) and value.size <= _MOST_ITEMS else None
