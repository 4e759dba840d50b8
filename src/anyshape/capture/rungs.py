"""The ways to capture a model, in the order in which the ladder tries them; each takes a context and gives a capture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from anyshape.capture.generalized import capture_generalized
from anyshape.capture.generalized.record import Recorder, TraceKey
from anyshape.capture.generalized.trace import Trace
from anyshape.capture.generalized.traced_regions import Paths, capture_both, cuts
from anyshape.capture.regions import EndlessRegions, cover_domain
from anyshape.capture.rerolled import capture_rerolled, find_stride
from anyshape.capture.rerolled.growth import check_growth, find_growing, may_grow
from anyshape.capture.symbolic import Stopped, Traced, Traces, capture_symbolically, key_of_sizes
from anyshape.capture.torch_export import Decompose
from anyshape.capture.trace_sizes import (
    SparedCalls,
    choose_trace_sizes,
    copy_program,
    empty_sizes_open,
    without_accidents,
)
from anyshape.domain import Compare, Condition, Expr, Number, Op, Ref, dims_of, negate
from anyshape.inputs import Declared
from anyshape.records.captured import Captured, Guard

if TYPE_CHECKING:
    import torch

Answers = Callable[[Mapping[str, int]], bool]
Suspects = Callable[[], Sequence[Mapping[str, int]]]
FindPaths = Callable[[], Paths]
CaptureKey = tuple[bool, tuple[tuple[str, int], ...]]
_MOST_SIDES = 4


@dataclass(frozen=True)
class CaptureContext:
    """What a rung works with: the module, the declaration, where the module answers, and how programs are decomposed.

    `suspects` gives sizes at which the user's code may do something else, for rungs that see no conditions; `paths` gives,
    for each dim that the code uses as a text or a key (`str(n) in names`), which functions of torch it calls at each size. With
    `opens_empty_sizes`, a condition that a size is 0 is a guard.
    """

    module: torch.nn.Module
    declared: Declared
    answers: Answers
    decompose: Decompose
    suspects: Suspects = tuple
    paths: FindPaths = dict
    traces: dict[TraceKey, Trace] = field(default_factory=dict, hash=False)
    is_dear: Callable[[Mapping[str, int]], bool] = lambda sizes: False
    """Whether a call of the module takes long at given sizes."""
    opens_empty_sizes: bool = False
    programs: Traces = field(default_factory=dict, hash=False)
    """Programs that torch.export has made already. Those of other sizes are added."""
    captures: dict[CaptureKey, Captured | Stopped] = field(default_factory=dict, hash=False)
    """Symbolic captures by their sizes. A rung gives away copies: translation changes programs in place."""
    strides: dict[str, int] = field(default_factory=dict, hash=False)
    """By how much a dim grows for one more step of a loop over parts of it, as conditions on sizes have shown."""
    branches: list[Condition] = field(default_factory=list, hash=False)
    """Conditions of the user's code under which such a loop was captured."""
    sides: list[Condition] = field(default_factory=list, hash=False)
    """Conditions of the user's code beside a loop over all of a dim, without those on that dim."""

    def key_of(self, sizes: Mapping[str, int]) -> CaptureKey:
        """The key of a symbolic capture at these sizes."""
        return self.opens_empty_sizes, tuple(sorted(sizes.items()))

    def is_traced(self, sizes: Mapping[str, int]) -> bool:
        """Whether torch.export has made a program of the module at these sizes."""
        found = self.programs.get(key_of_sizes(sizes))
        return isinstance(found, Traced) and found.module is self.module

    def recorder(self) -> Recorder:
        """Traces the module; all rungs share what was traced."""
        return Recorder(self.module, self.declared, self.traces)


@dataclass(frozen=True)
class CaptureMethod:
    """A way to capture. `capture` also gets borders: guards at which to split into regions, if it `has_regions`."""

    name: str
    capture: Callable[[CaptureContext, tuple[Guard, ...]], Captured]
    has_regions: bool = False


def _symbolic(context: CaptureContext, borders: tuple[Guard, ...]) -> Captured:
    def capture(sizes: Mapping[str, int]) -> Captured | Stopped:
        key = context.key_of(sizes)
        if key not in context.captures:
            with empty_sizes_open() if context.opens_empty_sizes else nullcontext():
                traces = {} if context.opens_empty_sizes else context.programs
                context.captures[key] = capture_symbolically(
                    context.module, context.declared, sizes, context.decompose, traces
                )
        return context.captures[key]

    sizes = choose_trace_sizes(context.declared, context.answers) or context.declared.example_sizes
    first = capture(sizes)
    if isinstance(first, Stopped):
        raise first.error
    _stop_at_strided_loops(first, context)
    other = without_accidents(first, context.declared, capture, context.answers)
    if other is not first:
        _stop_at_strided_loops(other, context)
    first = other
    _stop_at_growing_traces(first, context, borders)
    spared = SparedCalls(context.is_dear, context.is_traced)
    captured = cover_domain(first, context.declared, capture, context.answers, borders, spared)
    regions = tuple(replace(region, program=copy_program(region.program)) for region in captured.regions)
    return replace(captured, regions=regions)


def _stop_at_growing_traces(first: Captured, context: CaptureContext, borders: tuple[Guard, ...]) -> None:
    """Raise EndlessRegions where traces grow with a dim of a condition, before regions are captured: it is that of a loop.

    Asked are the user's own conditions, those that pin a dim to one size, and those that verification has blamed.
    """
    guards = [guard for guard in first.guards if guard.status != "proved" and (guard.by_user or _is_pin(guard))]
    # The same condition may occur twice, once without a line of the user's: the guard with a line is preferred.
    ranked = sorted((*borders, *guards), key=lambda guard: guard.source is not None)
    by_dim = {name: guard for guard in ranked if guard.condition for name in dims_of(guard.condition)}
    unproved = [guard.condition for guard in (*borders, *first.guards) if guard.condition and guard.status != "proved"]
    traced_at = first.regions[0].traced_at
    by_dim = {
        name: guard
        for name, guard in by_dim.items()
        if may_grow(name, traced_at[name], unproved, context.declared.domain)
    }
    growing = find_growing(context.recorder(), context.declared, context.answers, by_dim) if by_dim else None
    if growing is not None:
        context.sides.extend(each for each in dict.fromkeys(_branches(first)) if growing not in dims_of(each))
        raise EndlessRegions(by_dim[growing])


def _stop_at_strided_loops(first: Captured, context: CaptureContext) -> None:
    """Raise EndlessRegions at a loop that takes several items of a dim per step: the capture pins its number of steps."""
    pins = {guard.condition: guard for guard in first.guards if guard.status != "proved" and _is_pin(guard)}
    conditions = [condition for condition in pins if condition is not None]
    found = find_stride(context.recorder(), context.declared, context.answers, conditions)
    if found is not None:
        dim, stride, condition = found
        context.strides[dim] = stride
        context.branches.extend(_branches(first))
        raise EndlessRegions(pins[condition])


def _branches(first: Captured) -> list[Condition]:
    own = [guard for guard in first.guards if guard.by_user and guard.status != "proved" and not _is_pin(guard)]
    return [guard.condition for guard in own if guard.condition is not None]


def _is_pin(guard: Guard) -> bool:
    return isinstance(guard.condition, Compare) and guard.condition.op == "=="


def _generalized(context: CaptureContext) -> Captured:
    check_growth(context.recorder(), context.declared, context.answers, context.strides)
    return _from_traces(partial(capture_generalized, find_paths=context.paths), context)


def _rerolled(context: CaptureContext) -> Captured:
    """Loops from traces. The other side of a branch beside a loop is captured symbolically, where it has no loop.

    A branch on another dim than that of the loop has the loop on both sides, and each is learned by itself.
    """
    for condition in context.branches:
        captured = _reroll_inside(context, condition) if cuts(context.declared, condition) else None
        if captured is not None:
            return captured
    sides = [condition for condition in context.sides if cuts(context.declared, condition)]
    if sides and len(context.sides) <= _MOST_SIDES:
        captured = _reroll_both(context, sides[0])
        if captured is not None:
            return captured
    return _from_traces(partial(capture_rerolled, strides=context.strides), context)


def _reroll_inside(context: CaptureContext, condition: Condition) -> Captured | None:
    """Loops where the condition holds, and one program elsewhere; None where there is none."""
    beside = _capture_beside(context, negate(condition))
    if beside is None:
        return None
    others = [other for other in context.branches if other != condition]

    def inside(declared: Declared) -> Captured:
        return _rerolled(replace(context, declared=declared, branches=others))

    return capture_both(context.declared, condition, inside, lambda _: beside)


def _reroll_both(context: CaptureContext, condition: Condition) -> Captured | None:
    """Loops on both sides of a condition; None where these have not as many outputs."""
    others = [other for other in context.sides if other != condition]
    strides = {**_moduli(condition), **context.strides}

    def side(declared: Declared) -> Captured:
        return _rerolled(replace(context, declared=declared, sides=others, strides=strides))

    return capture_both(context.declared, condition, side, side)


def _moduli(condition: Condition) -> dict[str, int]:
    """`seq % 4 == 0` -> seq: 4. On its sides sizes lie that far apart, and few small ones show no rule."""
    todo: list[Expr] = [condition.left, condition.right] if isinstance(condition, Compare) else []
    found: dict[str, int] = {}
    while todo:
        expr = todo.pop()
        if isinstance(expr, Op):
            todo.extend(expr.args)
            if expr.symbol == "%" and isinstance(expr.args[0], Ref) and isinstance(expr.args[1], Number):
                found[expr.args[0].name] = expr.args[1].value
    return found


def _capture_beside(context: CaptureContext, condition: Condition) -> Captured | None:
    """One program for the sizes at which a condition holds; None where there are several, or none can be captured."""
    declared = replace(context.declared, domain=context.declared.domain.narrowed(condition))
    sizes = choose_trace_sizes(declared, context.answers, condition)
    if sizes is None:
        return None
    captured = capture_symbolically(context.module, declared, sizes, context.decompose)
    if isinstance(captured, Stopped) or any(guard.by_user and guard.status != "proved" for guard in captured.guards):
        return None
    return captured


def _from_traces(capture: Callable[..., Captured], context: CaptureContext) -> Captured:
    return capture(
        context.module, context.declared, context.answers, context.decompose, context.suspects(), context.traces
    )


METHODS = (
    CaptureMethod("symbolic", _symbolic, has_regions=True),
    CaptureMethod("generalized", lambda context, _: _generalized(context)),
    CaptureMethod("rerolled", lambda context, _: _rerolled(context)),
)
