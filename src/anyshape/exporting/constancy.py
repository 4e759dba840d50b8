"""Models whose outputs change from call to call: refused, or made constant, before capture.

state      ->  an error, or inputs and outputs of the file (`state="outputs"`), compared over calls in a row after capture
randomness ->  an error, or random operators of the file (`random="runtime"`), compared as samples

Calls that wrote something or drew random numbers while the module was tried and compared are repeated at the end. Such inputs
may be large, and a call with them may take many seconds: the largest ones are called twice where that is enough. Random numbers
are withheld from their first call, which is also the first of the calls in a row.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from anyshape.contract.build import state_promises
from anyshape.diagnose.state_and_randomness import (
    diagnose_randomness,
    diagnose_row,
    diagnose_state,
    diagnose_state_at_nan,
    state_not_carried,
)
from anyshape.explore import (
    Costing,
    NotCarriedError,
    are_repeats_dear,
    costing,
    observe_repeats,
    plan_state,
    sizes_to_repeat,
)
from anyshape.explore.carried import call_again, is_constant_call, smallest_first
from anyshape.explore.random_draws import CallPoint
from anyshape.explore.repeats import Memory, observe_points
from anyshape.exporting.context import Options
from anyshape.findings import Finding, PromiseBroken, Severity
from anyshape.inputs import Declared, StateInput, flatten_outputs, state_parameter, with_state
from anyshape.intercept.replay import Call, Replay, Reply
from anyshape.modules.module_forms import StatefulModule
from anyshape.modules.numbers_in_code import numbers_in_code
from anyshape.modules.slots import Slots, read_slots
from anyshape.records.contract import Contract
from anyshape.records.explored import Repeated
from anyshape.records.export import Attempt
from anyshape.saving import save_model
from anyshape.verify import Reference, VerifyOptions
from anyshape.verify.changing_outputs import RowRequest, verify_in_a_row
from anyshape.verify.edge_values import LARGER, Legal, edges_of, positions_of, with_values
from anyshape.verify.reference import Answer, NotedCall
from anyshape.verify.tensors import has_nan, map_tensors

NO_REPLIES: Mapping[int, Reply] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Constant:
    """A model that answers alike each time, and what it was made from: `states` are now inputs of `module`."""

    module: torch.nn.Module
    declared: Declared
    options: Options
    findings: tuple[Finding, ...]
    repeated: Repeated
    original: tuple[torch.nn.Module, Declared]
    points: tuple[Mapping[str, int], ...]
    states: tuple[StateInput, ...] = field(default=())
    cost: Costing | None = None  # of the original module under the original declaration

    @property
    def is_dear(self) -> bool:
        """Whether many calls of the original module are out of proportion to the export."""
        return self.cost is not None and not self.options.thorough and are_repeats_dear(self.original[1], self.cost)

    def complete(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The sizes with those of the state's own dims, as they are before the first call, where they are not given."""
        first = {dim.name: dim.min for state in self.states for dim in state.own}
        return {**first, **sizes}


def ways_of(contract: Contract | None, verify: VerifyOptions) -> Options:
    """The options for state and randomness with which a file was made; one of another exporter has no state."""
    carries = contract is not None and bool(contract.state)
    is_random = contract is not None and contract.random
    return Options(state="outputs" if carries else "frozen", random="runtime" if is_random else None, verify=verify)


def check_noted(constant: Constant, noted: Sequence[NotedCall]) -> tuple[Finding, ...]:
    """Findings about state and random numbers that showed only later, for rare values or at far sizes."""
    before = constant.repeated
    if not noted or before.random or before.has_memory:
        return ()
    ordinary = [call for call in noted if not call.has_nan]
    repeated = _observe_noted(constant, ordinary) if ordinary else Repeated()
    choice = constant.options.state
    if len(ordinary) < len(noted) and not (repeated.has_memory or repeated.unsteady):
        repeated = _observe_noted(constant, noted)
        if repeated.has_memory and choice != "frozen" and _needs_nan(constant, noted):
            return (diagnose_state_at_nan(repeated), *diagnose_randomness(repeated, constant.options.random))
    if repeated.has_memory and choice == "outputs":  # the file was made without it
        path = repeated.state[0].path if repeated.state else "of the model"
        return (state_not_carried(path, "it changes only for some inputs, which came too late to carry it.", repeated),)
    return (*diagnose_state(repeated, choice), *diagnose_randomness(repeated, constant.options.random))


def _observe_noted(constant: Constant, noted: Sequence[NotedCall]) -> Repeated:
    drawing = [call.inputs for call in noted if call.has_drawn]
    writing = [call.inputs for call in noted if call.has_written]
    replies = {id(call.inputs): _reply_of(call.answer) for call in noted}
    known = {key: reply for key, reply in replies.items() if reply is not None}
    return observe_calls(constant.module, constant.declared, writing, drawing, constant.is_dear, known)


def _needs_nan(constant: Constant, noted: Sequence[NotedCall]) -> bool:
    """Whether these calls, whose inputs hold NaN, change no state with large numbers in its place."""
    example = constant.declared.example
    if has_nan((example.args, dict(example.kwargs))):
        return False
    large = [
        map_tensors(call.inputs, partial(_without_nan, sign)) for call in noted if call.has_nan for sign in (1.0, -1.0)
    ]
    found = observe_calls(constant.module, constant.declared, large, [], constant.is_dear)
    return not found.has_memory and not found.unsteady


def _without_nan(sign: float, tensor: torch.Tensor) -> torch.Tensor:
    """With a number in place of NaN whose square is far from the largest one of this kind."""
    is_float = tensor.is_floating_point() or tensor.is_complex()
    return torch.nan_to_num(tensor, sign * torch.finfo(tensor.dtype).max ** 0.4) if is_float else tensor


def _reply_of(answer: Answer | None) -> Reply | None:
    """The answer as tensors; None where there is none, or an array has a dtype that torch does not read."""
    if answer is None or any(answer.python_floats):
        return None
    try:
        tensors = [torch.from_numpy(array) for array in answer.arrays]
    except TypeError:
        return None
    return Reply(tuple(zip(answer.paths, tensors, strict=True)))


def make_constant(module: torch.nn.Module, declared: Declared, options: Options) -> Constant:
    """The model to capture. Raises PromiseBroken where its answers change, unless the options have a way for that."""
    cost = costing(module, declared, options.verify.budget_s, thorough=options.thorough)
    points = tuple(sizes_to_repeat(declared, cost, options.verify.seed))
    few = are_repeats_dear(declared, cost) and not options.thorough
    cheapest = sorted(points, key=cost.operations) if few else points
    repeated = observe_repeats(
        module, declared, cheapest, numbers_in_code(module), few, _rare_inputs(declared, options)
    )
    findings = (*diagnose_state(repeated, options.state), *diagnose_randomness(repeated, options.random))
    if errors := [finding for finding in findings if finding.severity is Severity.ERROR]:
        raise PromiseBroken(*errors)
    options = replace(options, verify=replace(options.verify, is_random=bool(repeated.random)))
    made = Constant(module, declared, options, findings, repeated, (module, declared), points, cost=cost)
    if not repeated.has_memory or options.state != "outputs":
        return made
    try:
        states = plan_state(module, declared, repeated, points)
    except NotCarriedError as error:
        raise PromiseBroken(state_not_carried(error.path, error.why, repeated)) from error
    slots = {state.name: state.slot for state in states}
    return replace(
        made,
        module=StatefulModule(module, slots, state_parameter(declared)),
        declared=with_state(declared, states),
        states=states,
    )


def _rare_inputs(declared: Declared, options: Options) -> list[Any]:
    """The example with edge values, as those that files are compared with, and larger ones."""
    if declared.only_given_values:
        return []
    try:
        inputs = declared.make(declared.example_sizes, options.verify.seed)
        legal = Legal(positions_of(inputs, declared.feeds), declared.value_ranges(declared.example_sizes))
        return [with_values(inputs, edge, legal) for edge in (*edges_of(inputs, legal), LARGER)]
    except Exception:  # code of the user makes them
        return []


def reuse_calls(constant: Constant, reference: Reference) -> list[Mapping[str, int]]:
    """Give the reference what earlier calls of a dear model answered; the sizes at which it need not be called again.

    The call at the example's sizes was made to count its operators: its values may differ by rounding, and are not used.
    """
    if not constant.is_dear or constant.states or constant.cost is None:
        return []
    for call in constant.repeated.first_calls:
        reference.remember(call.inputs, call.leaves, call.seconds)
    outputs = constant.cost.example_outputs
    if outputs is None:
        return []
    reference.expect_outputs(outputs)
    return [constant.declared.example_sizes]


def with_constancy(contract: Contract, constant: Constant) -> Contract:
    """The contract with what the caller carries from call to call, and whether the file is random."""
    _, declared = constant.original
    promises = state_promises(constant.states, state_parameter(declared)) if constant.states else ()
    return replace(contract, state=promises, random=bool(constant.repeated.random))


def check_row(constant: Constant, attempt: Attempt) -> tuple[Finding, ...]:
    """What calls in a row of the attempt's file show, where it carries state."""
    if not constant.states or attempt.exported is None or constant.repeated.random:
        return ()
    module, declared = constant.original
    with tempfile.TemporaryDirectory(prefix="anyshape-") as folder:
        path = Path(folder) / "model.onnx"
        save_model(attempt.exported.model, path)
        verdict = verify_in_a_row(
            RowRequest(path, module, declared, constant.states, constant.points, attempt.exported.output_names)
        )
    return diagnose_row(verdict.difference, constant.repeated)


def observe_calls(
    module: torch.nn.Module,
    declared: Declared,
    writing: Sequence[Any],
    drawing: Sequence[Any],
    few: bool = False,
    known: Mapping[int, Reply] = NO_REPLIES,
) -> Repeated:
    """What repeated calls with these inputs and the example show.

    `writing` are inputs of calls that wrote something, `drawing` of calls that drew random numbers; some may be in both.
    Calls that drew none are not made again without random numbers. With `few`, two or three of each come before, as in
    `observe_repeats`. `known` has replies that a fresh module gave before, by the id of the inputs.
    """
    with Replay(module, flatten_outputs) as replay:
        noted = smallest_first(declared, (*drawing, *writing))
        calls: dict[int, Call] = {id(each): partial(call_again, declared, each) for each in noted}
        drawn = [calls[id(each)] for each in drawing]
        observing = _Observing(
            replay, partial(call_again, declared, declared.example), tuple(calls.values()), drawn, bool(writing), few
        )
        last = next(reversed(noted), None)
        wrote, drew = (any(last is each for each in inputs) for inputs in (writing, drawing))
        usual = known.get(id(last)) if drew and (wrote or not few) else None
        found = observing.observe(usual)
        if usual is not None and (found.random or found.has_memory or found.unsteady):
            return observing.observe(None)  # the usual calls show what it is
        return found


@dataclass(frozen=True)
class _Observing:
    """The calls, the largest inputs last, and those of them that drew random numbers."""

    replay: Replay
    example: Call
    calls: Sequence[Call]
    drawing: Sequence[Call]
    writes: bool
    few: bool

    def observe(self, usual: Reply | None) -> Repeated:
        """`usual`: the known reply to the largest inputs. Their first call gets no random numbers, if it needs none."""
        replay, example = self.replay, self.example
        before = read_slots(replay.module)
        first: dict[Call, Reply] = {example: replay.fresh(example)} if self.writes or not self.few else {}
        is_constant, without_draws = self.few, None
        for call in self.calls:
            if usual is not None and call is self.calls[-1]:
                is_constant, without_draws = False, self._call_without_draws(call, usual, before)
            is_constant = is_constant and is_constant_call(replay, call, first) is not False
            if call not in first:
                first[call] = without_draws or replay.fresh(call)
        if is_constant:
            return Repeated()
        is_begun = example in first and len(first) > 1 and first[call].raised is None
        if example not in first:
            first = {example: replay.fresh(example), **first}
        answered = [CallPoint({}, call, reply) for call, reply in first.items() if reply.raised is None]
        may_draw = [example, *(each for each in self.drawing if without_draws is None or each is not call)]
        drew = [point for point in answered if point.call in may_draw]
        return observe_points(Memory(replay, answered, (), self.few), drew, before if is_begun else None)

    def _call_without_draws(self, call: Call, usual: Reply, before: Slots) -> Reply | None:
        """The reply of a fresh module, as usual, where it neither reads random numbers nor keeps them; else None."""
        reply = self.replay.fresh_without_draws(call)
        if reply is None or not reply.without_none().is_like(usual):
            return None
        try:
            read_slots(self.replay.module, before)
        except RuntimeError:  # what is withheld cannot be copied
            return None
        return reply
