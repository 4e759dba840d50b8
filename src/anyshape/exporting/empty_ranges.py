"""Open ranges that begin at 0 where the user's code shows that 0 is meant, if the file is right there; else they begin at 1.

if x.numel() == 0: return y         0 is a size that the author thought of
torch.full((x.shape[1], 1), 2)      of x only sizes are read: 0 is a number as any other

A condition about emptiness (`x.numel() == 0`, `len(x) > 0`, `if not n`, `torch.cond(n >= 1, ...)`) is found in two steps. The
bytecode of the user's functions is read for comparisons of a size with 0 or 1: that is quick, and most models have none. Then
two calls are followed instruction by instruction, one of them at an empty size: the condition is about emptiness if the calls
part right after it.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from types import CodeType, FrameType
from typing import Any

import torch

from anyshape.capture.rungs import METHODS
from anyshape.domain import Dim, dims_of
from anyshape.explore.carried import calling
from anyshape.explore.cost_estimates import Costing
from anyshape.exporting.constancy import Constant
from anyshape.findings import PromiseBroken
from anyshape.inputs import Declared, flatten_outputs
from anyshape.intercept.control_flow import control_flow_in_python
from anyshape.intercept.replay import Call, Replay
from anyshape.modules.call_limits import OutOfTime, TimeLimit
from anyshape.modules.line_trace import run_traced
from anyshape.modules.user_code import codes_of, user_functions
from anyshape.records.export import Export

_RUNG = METHODS[0].name
_HALF = 0.5

ExportConstant = Callable[[Constant], Export]
_READS_SIZE = frozenset(("numel", "nelement", "size", "shape", "len"))
_BOUNDARY = (0, 1)  # `> 0` and `>= 1`
_OPERAND = 8  # instructions before a comparison in which its operands are loaded
_BEFORE = 40  # instructions between a condition and the branch that it takes, arguments of torch.cond included
_MOST_STEPS = 200_000


def export_from_zero_or_one(constant: Constant, export: ExportConstant, limit: TimeLimit) -> Export:
    """The export with ranges from 0 where they are meant and right, else from 1. Raises PromiseBroken.

    Where the user's code has a condition about emptiness, ranges from 0 come first. Where only sizes are read, they come after
    an export by the rung that sees conditions on sizes: if that rung fails, it does so at 0, too.
    """
    wider = _find_wider(constant)
    if wider is None:
        return export(constant)
    opened = _try_from_zero(constant, wider, export, limit) if wider.has_condition else None
    if opened is not None and not _is_cut(opened, constant.declared):
        return opened
    try:
        result = export(constant)
    except PromiseBroken:
        if opened is None:
            raise
        return opened
    if not wider.has_condition and result.contract.strategy == _RUNG:
        opened = _try_from_zero(constant, wider, export, limit)
        return result if opened is None or _is_cut(opened, constant.declared) else opened
    return result if opened is None or not _is_cut(result, constant.declared) else opened


def _find_wider(constant: Constant) -> WithEmptySizes | None:
    """Nothing is opened without comparisons, nor where the state of the model became inputs."""
    options = constant.options
    if options.verify.is_skipped or constant.states or constant.cost is None or options.strategy not in (None, _RUNG):
        return None
    return with_empty_sizes(constant.module, constant.declared, constant.cost)


def _try_from_zero(
    constant: Constant, wider: WithEmptySizes, export: ExportConstant, limit: TimeLimit
) -> Export | None:
    """The export with ranges that begin at 0; None where no file is right there within half of the time.

    Only the rung that sees conditions on sizes is tried: one that learns from traces would look for a rule across them.
    """
    options = replace(constant.options, strategy=_RUNG)
    with suppress(PromiseBroken, OutOfTime), limit.part(_HALF):
        result = export(replace(constant, declared=wider.declared, options=options, cost=None))
        return result if _has_empty_sizes(result) else None
    return None


def _has_empty_sizes(result: Export) -> bool:
    """Whether a file is right, and promises a size of 0 that the user did not declare."""
    return result.verdict.passed and any(dim.min == 0 and not dim.declared for dim in result.contract.domain.dims)


def _is_cut(result: Export, declared: Declared) -> bool:
    """Whether a range of the contract has an end that the declaration does not have."""
    before = {dim.name: dim.max for dim in declared.domain.dims}
    return any(dim.max is not None and before.get(dim.name) is None for dim in result.contract.domain.dims)


@dataclass(frozen=True)
class WithEmptySizes:
    """A declaration with ranges that begin at 0. `has_condition`: the user's code has conditions about emptiness."""

    declared: Declared
    has_condition: bool


def with_empty_sizes(module: torch.nn.Module, declared: Declared, cost: Costing) -> WithEmptySizes | None:
    """The declaration with 0 in the ranges of such dims, as far as the module answers there; None if there are none."""
    open_dims = [dim for dim in declared.domain.dims if not dim.declared and dim.smallest == 1 and dim.multiple == 1]
    unread = _only_sizes_read(declared, cost)
    codes = codes_to_follow(module) if open_dims else frozenset[CodeType]()
    looked_at = [dim for dim in open_dims if codes or dim.name in unread]
    if not looked_at:
        return None
    with Replay(module, flatten_outputs) as replay, control_flow_in_python():
        trial = _Trial(declared, replay, codes)
        answered = [dim for dim in looked_at if trial.answers_at_0(dim.name)]
        tested = {dim.name for dim in answered if trial.tests(dim.name)}
    found = [dim for dim in answered if dim.name in unread | tested]
    return WithEmptySizes(_from_zero(declared, found), bool(tested)) if found else None


@dataclass(frozen=True)
class _Trial:
    """Calls of the module with one dim at 0 or 1, the others as in the example."""

    declared: Declared
    replay: Replay
    codes: frozenset[CodeType]

    def answers_at_0(self, name: str) -> bool:
        return self.replay.fresh(self._call(name, 0)).raised is None

    def tests(self, name: str) -> bool:
        """Whether a condition about emptiness separates a size of 0 from that of the example, and from 1."""
        if not self._usual_steps:
            return False
        at_0 = self._follow(self._call(name, 0))
        if not part_by_emptiness(self._usual_steps, at_0):
            return False
        at_1 = self._call(name, 1)
        return self.replay.fresh(at_1).raised is not None or part_by_emptiness(self._follow(at_1), at_0)

    @cached_property
    def _usual_steps(self) -> list[Step]:
        return self._follow(calling(self.declared, self.declared.example_sizes, 0)) if self.codes else []

    def _follow(self, call: Call) -> list[Step]:
        return follow(partial(self.replay.fresh, call), self.codes)

    def _call(self, name: str, size: int) -> Call:
        return calling(self.declared, {**self.declared.example_sizes, name: size}, 0)


def _only_sizes_read(declared: Declared, cost: Costing) -> set[str]:
    """The dims that occur only in inputs which no operator takes."""
    leaves = list(enumerate(declared.open_leaves))
    if not cost.unread_inputs:
        return set()
    shown = [{name for axis in leaf.axes for name in dims_of(axis)} for _, leaf in leaves]
    read = {name for place, _ in leaves if place not in cost.unread_inputs for name in shown[place]}
    return {name for place in cost.unread_inputs for name in shown[place]} - read


def _from_zero(declared: Declared, dims: Iterable[Dim]) -> Declared:
    domain = declared.domain
    for dim in dims:
        domain = domain.with_dim(replace(dim, min=0))
    return replace(declared, domain=domain)


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
