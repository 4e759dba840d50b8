"""Find conditions whose truth changes nothing, so that a capture need not depend on them.

    is_causal = q_length > 1 and attention_mask is None and is_causal     with a mask: False, whatever q_length is

Python evaluates the first operand before it looks at the second. Here the bytecode after a condition is followed for True
and for False, as long as it only reads local variables, constants and plain attributes. Where both ways reach one
instruction with the same values, the condition does not matter. Any other instruction ends the search: then the condition
counts as needed.
"""

from __future__ import annotations

import dis
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from anyshape.intercept.patching import patched
from anyshape.modules.user_code import runs_users_code

__only_passes_on__ = True

_LONGEST = 40  # instructions of one way
_PLAIN = (bool, int, str, type(None))
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
_JUMPS: dict[str, Callable[[Any], bool]] = {
    "IF_FALSE": operator.not_,
    "IF_TRUE": bool,
    "IF_NONE": lambda value: value is None,
    "IF_NOT_NONE": lambda value: value is not None,
}


class _NotFollowed(Exception):
    """The next instruction may do more than read."""


@contextmanager
def only_needed_conditions() -> Iterator[None]:
    """Within this, conditions on sizes in the user's code are not recorded where True and False have the same effect."""
    from torch import SymBool

    own = SymBool.__bool__

    def decided(condition: SymBool) -> bool:
        frame = sys._getframe(1)
        truth = find_needless_truth(frame) if runs_users_code(frame) else None
        return own(condition) if truth is None else truth

    with patched([(SymBool, "__bool__", decided)]):
        yield


def find_needless_truth(frame: FrameType) -> bool | None:
    """The truth with which the frame's condition goes on to the next instruction, if True and False have the same effect.

    The frame is running the instruction that converts a value to a bool. None where it matters or may matter.
    """
    instructions = _instructions(_Code(frame.f_code))
    place = instructions.places.get(frame.f_lasti)
    if place is None:
        return None
    try:
        for going_on in (True, False):
            if _starts(frame, instructions, place, going_on).at == place + 1:
                break
        else:
            return None
        known = list(_states(_starts(frame, instructions, place, going_on)))
        others = _states(_starts(frame, instructions, place, not going_on))
        return going_on if any(_is_among(state, known) for state in others) else None
    except _NotFollowed:
        return None


@dataclass(frozen=True)
class _Code:
    """A code object, compared by identity."""

    code: CodeType

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Code) and other.code is self.code

    def __hash__(self) -> int:
        return id(self.code)


@dataclass(frozen=True)
class _Instructions:
    """Bytecode in order, and the place of each offset in it."""

    listed: tuple[dis.Instruction, ...]
    places: dict[int, int]


@lru_cache(maxsize=512)
def _instructions(of: _Code) -> _Instructions:
    listed = tuple(dis.get_instructions(of.code))
    return _Instructions(listed, {each.offset: place for place, each in enumerate(listed)})


@dataclass
class _Way:
    """One way through the code: the next instruction, the values that were pushed and the variables that were set."""

    frame: FrameType
    code: _Instructions
    at: int
    stack: list[Any]
    stored: dict[str, Any] = field(default_factory=dict)

    def state(self) -> tuple[int, list[Any], dict[str, Any]]:
        return self.at, list(self.stack), dict(self.stored)

    def pop(self) -> Any:
        if not self.stack:
            raise _NotFollowed  # pushed before the condition
        return self.stack.pop()

    def variable(self, name: str) -> Any:
        if name in self.stored:
            return self.stored[name]
        if name not in self.frame.f_locals:
            raise _NotFollowed
        return self.frame.f_locals[name]

    def jump(self, offset: int) -> None:
        target = self.code.places[offset]
        if target < self.at:
            raise _NotFollowed
        self.at = target


def _starts(frame: FrameType, code: _Instructions, place: int, truth: bool) -> _Way:
    """The way with this truth, after the instruction that needs it."""
    test = code.listed[place]
    if test.opname == "COMPARE_OP" and test.argrepr.startswith("bool("):
        return _Way(frame, code, place + 1, [truth])
    is_copied = place > 0 and code.listed[place - 1].opname == "COPY" and code.listed[place - 1].arg == 1
    way = _Way(frame, code, place, [truth, truth] if is_copied else [truth])
    if test.opname not in ("TO_BOOL", "UNARY_NOT") and "IF_" not in test.opname:
        raise _NotFollowed
    _step(way)
    return way


def _states(way: _Way) -> Iterator[tuple[int, list[Any], dict[str, Any]]]:
    yield way.state()
    for _ in range(_LONGEST):
        try:
            _step(way)
        except (_NotFollowed, IndexError):
            return
        yield way.state()


def _is_among(state: tuple[int, list[Any], dict[str, Any]], known: list[tuple[int, list[Any], dict[str, Any]]]) -> bool:
    at, stack, stored = state
    return any(
        at == other_at
        and len(stack) == len(other_stack)
        and all(map(_are_same, stack, other_stack))
        and stored.keys() == other_stored.keys()
        and all(_are_same(stored[name], other_stored[name]) for name in stored)
        for other_at, other_stack, other_stored in known
    )


def _are_same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and type(one) in _PLAIN and one == other)


def _step(way: _Way) -> None:
    """Run one instruction. Raises _NotFollowed where it may do more than read."""
    instruction = way.code.listed[way.at]
    name = instruction.opname
    way.at += 1
    if "JUMP" in name:
        _jump(way, name, instruction.argval)
    elif name.startswith("LOAD_"):
        way.stack += _loaded(way, instruction)
    elif name == "STORE_FAST":
        way.stored[instruction.argval] = way.pop()
    elif name == "POP_TOP":
        way.pop()
    elif name == "COPY" and instruction.arg == 1:
        value = way.pop()
        way.stack += [value, value]
    elif name in ("UNARY_NOT", "TO_BOOL"):
        truth = _truth(way.pop())
        way.stack.append(truth if name == "TO_BOOL" else not truth)
    elif name in ("IS_OP", "COMPARE_OP"):
        right, left = way.pop(), way.pop()
        way.stack.append(_compared(instruction, left, right))
    elif name not in ("NOP", "NOT_TAKEN", "EXTENDED_ARG", "CACHE"):
        raise _NotFollowed


def _jump(way: _Way, name: str, target: int) -> None:
    if name == "JUMP_FORWARD":
        return way.jump(target)
    test = next((test for ending, test in _JUMPS.items() if name.removesuffix("_OR_POP").endswith(ending)), None)
    if test is None:
        raise _NotFollowed
    value = way.pop()
    decided = test(value) if name.endswith("NONE") else test(_truth(value))
    if decided and name.endswith("_OR_POP"):
        way.stack.append(value)
    if decided:
        way.jump(target)
    return None


def _truth(value: Any) -> bool:
    if type(value) not in _PLAIN:
        raise _NotFollowed
    return bool(value)


def _compared(instruction: dis.Instruction, left: Any, right: Any) -> bool:
    if instruction.opname == "IS_OP":
        return (left is right) != bool(instruction.arg)
    comparison = _COMPARISONS.get(str(instruction.argval))
    if comparison is None or type(left) not in _PLAIN or type(left) is not type(right) or left is None:
        raise _NotFollowed
    return comparison(left, right)


def _loaded(way: _Way, instruction: dis.Instruction) -> list[Any]:
    name, argument = instruction.opname, instruction.argval
    if name.startswith(("LOAD_CONST", "LOAD_SMALL_INT")):
        return [argument]
    if name.startswith("LOAD_FAST") and name != "LOAD_FAST_AND_CLEAR":
        return [way.variable(each) for each in (argument if isinstance(argument, tuple) else (argument,))]
    if name == "LOAD_ATTR":
        return [_attribute(way.pop(), argument)]
    raise _NotFollowed


def _attribute(value: Any, name: str) -> Any:
    """An attribute that reading cannot compute: it lies in the object's own dictionary, and its class has no say."""
    kind: Any = type(value)
    is_plain = kind.__getattribute__ is object.__getattribute__ and not any(name in vars(each) for each in kind.__mro__)
    if not is_plain or name not in getattr(value, "__dict__", {}):
        raise _NotFollowed
    return vars(value)[name]
