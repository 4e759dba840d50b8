"""Repeat calls of a module that wrote something or drew random numbers while it was tried and compared.

Such inputs may be large, and a call with them may take many seconds: the largest ones are called twice where that is enough.
Random numbers are withheld from their first call, which is also the first of the calls in a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import torch

from anyshape.explore.carried import call_again, is_constant_call, smallest_first
from anyshape.explore.repeats import CallPoint, Memory, observe_points
from anyshape.inputs import Declared, flatten_outputs
from anyshape.intercept.replay import Call, Replay, Reply
from anyshape.modules.slots import Slots, read_slots
from anyshape.records.explored import Repeated

NO_REPLIES: Mapping[int, Reply] = MappingProxyType({})


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
