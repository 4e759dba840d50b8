"""Conditions of the user's code about empty tensors: `x.numel() == 0`, `len(x) > 0`, `if not n`, `torch.cond(n >= 1, ...)`.

Such a condition is found in two steps. The bytecode of the user's functions is read for comparisons of a size with 0 or 1: that
is quick, and most models have none. Then two calls are followed instruction by instruction, one of them at an empty size: the
condition is about emptiness if the calls part right after it.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

import torch

from anyshape.modules.line_trace import run_traced
from anyshape.modules.user_code import codes_of, user_functions

_READS_SIZE = frozenset(("numel", "nelement", "size", "shape", "len"))
_BOUNDARY = (0, 1)  # `> 0` and `>= 1`
_OPERAND = 8  # instructions before a comparison in which its operands are loaded
_BEFORE = 40  # instructions between a condition and the branch that it takes, arguments of torch.cond included
_MOST_STEPS = 200_000

Step = tuple[CodeType, int, bool]
"""A code, the position of an instruction in it, and whether a local variable that it loads is an integer."""


def codes_to_follow(module: torch.nn.Module) -> frozenset[CodeType]:
    """The codes of all of the user's functions; none if no function may have a condition about an empty tensor."""
    codes = [code for function in user_functions(module) for code in codes_of(function)]
    return frozenset(codes) if any(map(_may_test, codes)) else frozenset()


def follow(call: Callable[[], Any], codes: frozenset[CodeType]) -> list[Step]:
    """The instructions of these codes that a call executes, in order; those of a long call only in part."""
    steps: list[Step] = []

    def visit(frame: FrameType, event: str, arg: Any) -> Any:
        if event == "opcode":
            name = _loaded_locals(frame.f_code).get(frame.f_lasti)
            steps.append((frame.f_code, frame.f_lasti, name is not None and type(frame.f_locals.get(name)) is int))
        return visit if len(steps) < _MOST_STEPS else None

    def enter(frame: FrameType, event: str, arg: Any) -> Any:
        if event != "call" or frame.f_code not in codes or len(steps) >= _MOST_STEPS:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return visit

    run_traced(call, enter)
    return steps


def part_by_emptiness(one: list[Step], other: list[Step]) -> bool:
    """Whether two calls part right after a comparison of a size with 0 or 1, or after the truth of a size."""
    pairs = zip(one, other, strict=False)
    parted = next((index for index, (left, right) in enumerate(pairs) if left[:2] != right[:2]), None)
    return parted is not None and any(
        _is_test(one, index) for index in range(max(0, parted - _BEFORE), min(parted, len(one)))
    )


def _is_test(steps: list[Step], index: int) -> bool:
    """Whether this instruction compares a size with 0 or 1, or jumps by the truth of a size."""
    code, offset, _ = steps[index]
    at, instructions = _positions(code)[offset], _instructions(code)
    if not (_compares(instructions, at) or _jumps_by_truth(instructions, at)):
        return False
    first = max(0, at - _OPERAND)
    if any(each.argval in _READS_SIZE for each in instructions[first:at] if isinstance(each.argval, str)):
        return True
    return any(
        was_integer and step_code is code and first <= _positions(code)[step_offset] < at
        for step_code, step_offset, was_integer in steps[max(0, index - _OPERAND) : index]
    )


@lru_cache(maxsize=4096)
def _may_test(code: CodeType) -> bool:
    """Whether a code reads sizes, and compares with 0 or 1 or jumps by a truth."""
    if not _READS_SIZE.intersection(code.co_names):
        return False
    instructions = _instructions(code)
    return any(_compares(instructions, at) or _jumps_by_truth(instructions, at) for at in range(len(instructions)))


def _compares(instructions: tuple[dis.Instruction, ...], at: int) -> bool:
    """Whether this instruction compares with 0 or 1, on either side."""
    if instructions[at].opname != "COMPARE_OP":
        return False
    loads = instructions[max(0, at - _OPERAND) : at]
    constants = [each for each in (*loads[-1:], *loads[:-1]) if each.opname in ("LOAD_CONST", "LOAD_SMALL_INT")]
    return any(type(each.argval) is int and each.argval in _BOUNDARY for each in constants)


def _jumps_by_truth(instructions: tuple[dis.Instruction, ...], at: int) -> bool:
    """Whether this instruction jumps by the truth of a value that is no comparison."""
    name = instructions[at].opname
    before = [each.opname for each in instructions[max(0, at - 3) : at] if each.opname not in ("TO_BOOL", "UNARY_NOT")]
    is_jump = "JUMP" in name and ("IF_TRUE" in name or "IF_FALSE" in name)
    return is_jump and bool(before) and before[-1] in ("CALL", "BINARY_SUBSCR", "BINARY_OP", "LOAD_FAST")


@lru_cache(maxsize=4096)
def _instructions(code: CodeType) -> tuple[dis.Instruction, ...]:
    return tuple(dis.get_instructions(code))


@lru_cache(maxsize=4096)
def _positions(code: CodeType) -> dict[int, int]:
    return {each.offset: index for index, each in enumerate(_instructions(code))}


@lru_cache(maxsize=4096)
def _loaded_locals(code: CodeType) -> dict[int, str]:
    """The local variables that instructions load, by position."""
    return {each.offset: each.argval for each in _instructions(code) if each.opname == "LOAD_FAST"}
