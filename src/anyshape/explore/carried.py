"""Repeat calls with equal inputs, and plan the state that they show as inputs of the file: dtype, axes, first value.

self.ema = 0.9 * self.ema + ...                   -> state.ema[8], first value as it is now
self.h = self.cell(x, self.h), None at first      -> state.h[batch, 8], zeros where zeros answer as None does
self.k = torch.cat([self.k, x], 1)                -> state.k[batch, k_1, 8], k_1 a dim of its own that begins at 0
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import torch

from anyshape.domain import Dim, Expr, Number, Ref, Sizes, choose_sizes
from anyshape.explore.cost_estimates import Costing
from anyshape.inputs import Declared, StateInput, flatten_outputs
from anyshape.intercept.replay import Call, Replay, Reply
from anyshape.modules.kept_tensors import copied
from anyshape.modules.reach import MISSING
from anyshape.modules.slots import changed_slots, putting, read_slots
from anyshape.records.explored import FirstCall, Kept, Repeated

_USUAL_CALLS = 20
_SHARE = 4  # one part in so many of what is in proportion to the export
_OTHER_SIZES = 3
_CHEAP = 200_000
_NUMBERS = {bool: torch.bool, int: torch.int64, float: torch.float64}


def sizes_to_repeat(declared: Declared, cost: Costing, seed: int) -> list[Sizes]:
    """The example's sizes, and a few others that cost little."""
    chosen = choose_sizes(
        declared.domain, example=declared.example_sizes, cost=cost, budget=_CHEAP, limit=_OTHER_SIZES + 1, seed=seed
    ).points
    others = [sizes for sizes in chosen if dict(sizes) != dict(declared.example_sizes)]
    return [declared.example_sizes, *others[:_OTHER_SIZES]]


def are_repeats_dear(declared: Declared, cost: Costing) -> bool:
    """Whether the usual repeated calls at the example's sizes are out of proportion to the export."""
    return _USUAL_CALLS * cost.operations(declared.example_sizes) > cost.in_proportion // _SHARE


def find_constant_call(replay: Replay, declared: Declared, points: Sequence[Sizes]) -> FirstCall | None:
    """The call at the first of these sizes that the module answers, if it has nothing random and leaves no trace."""
    for sizes in points:
        call = calling(declared, sizes, 0)
        began = perf_counter()
        first, is_unchanged = _call_first(replay, call)
        if first.raised is None:
            seconds = perf_counter() - began
            is_alike = is_unchanged and replay.stays_alike(call, first)
            return FirstCall(declared.make(sizes, 0), first.leaves, seconds) if is_alike else None
    return None


def is_constant_call(replay: Replay, call: Call, replies: dict[Call, Reply] | None = None) -> bool | None:
    """Whether two calls with the same inputs have nothing random and leave no trace; None where the module raises.

    The second call starts from the state that the first one left, under other random numbers: it must give the same reply.
    Where it reads them, a third call from which they are withheld must do so, too. `replies` gets the first reply.
    """
    first, is_unchanged = _call_first(replay, call)
    if replies is not None:
        replies[call] = first
    return None if first.raised is not None else is_unchanged and replay.stays_alike(call, first)


def _call_first(replay: Replay, call: Call) -> tuple[Reply, bool]:
    """The reply of a fresh module, and whether the call left its state as it was."""
    before = read_slots(replay.module)
    first = replay.fresh(call)
    return first, first.raised is None and not changed_slots(before, read_slots(replay.module, before))


def calling(declared: Declared, sizes: Sizes, seed: int) -> Call:
    """A call at these sizes. Its inputs are made here, outside of what is called and traced; each call gets copies of them."""
    try:
        inputs = declared.make(sizes, seed)
    except Exception as error:
        return partial(_raise, error)
    return partial(call_again, declared, inputs)


def _raise(error: Exception, module: torch.nn.Module) -> Any:
    raise error


def call_again(declared: Declared, inputs: Any, module: torch.nn.Module) -> Any:
    return declared.call(module, declared.rebuild([copied(value) for value in declared.open_values(inputs)]))


def smallest_first(declared: Declared, inputs: Sequence[Any]) -> list[Any]:
    """The inputs of calls, each once, in the order of their bytes."""

    def count_bytes(each: Any) -> int:
        return sum(getattr(value, "nbytes", 0) for value in declared.open_values(each))

    return sorted({id(each): each for each in inputs}.values(), key=count_bytes)


class NotCarriedError(Exception):
    """A state that cannot be an input of the file: its path, and why."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path = path
        self.why = why


@dataclass(frozen=True, eq=False)
class _Called:
    """Two calls in a row at some sizes: the first reply, and the value of each slot after each call."""

    sizes: Sizes
    reply: Reply
    after: tuple[Mapping[str, Any], Mapping[str, Any]]


def plan_state(
    module: torch.nn.Module, declared: Declared, repeated: Repeated, points: Sequence[Sizes]
) -> tuple[StateInput, ...]:
    """An input for each state. Raises NotCarriedError."""
    with Replay(module, flatten_outputs) as replay:
        calls = list(_call_twice(replay, declared, repeated.state, points))
        states = tuple(_state_input(kept, calls, declared) for kept in repeated.state)
        _check_first_values(replay, declared, states, calls)
    return states


def _call_twice(
    replay: Replay, declared: Declared, state: Sequence[Kept], points: Sequence[Sizes]
) -> Iterator[_Called]:
    for sizes in points:
        call = calling(declared, sizes, 0)
        reply = replay.fresh(call)
        first = {kept.path: _value(kept) for kept in state}
        second_reply = replay.onward(call)
        second = {kept.path: _value(kept) for kept in state}
        if reply.raised is None and second_reply.raised is None:
            yield _Called(sizes, reply, (first, second))
    replay.reset()


def _value(kept: Kept) -> Any:
    """A copy of the slot's value; numbers as tensors."""
    value = kept.slot.get()
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return torch.tensor(value, dtype=_NUMBERS[type(value)]) if type(value) in _NUMBERS else value


def _state_input(kept: Kept, calls: Sequence[_Called], declared: Declared) -> StateInput:
    seen = [value for called in calls for value in (each[kept.path] for each in called.after)]
    initial = _initial_tensor(kept)
    strange = [value for value in seen if not isinstance(value, torch.Tensor)]
    if not seen or (strange and strange[0] is MISSING):
        raise NotCarriedError(kept.name, "its number of values changes from call to call.")
    if strange:
        raise NotCarriedError(
            kept.path, f"after a call it is {_spoken(strange[0])}; a file carries tensors and numbers."
        )
    if len({(value.dtype, value.dim()) for value in (*seen, *([] if initial is None else [initial]))}) > 1:
        raise NotCarriedError(kept.path, "its dtype or its number of axes changes from call to call.")
    axes = [_axis(index, kept, initial, calls, declared) for index in range(seen[0].dim())]
    own = tuple(axis for axis in axes if isinstance(axis, Dim))
    exprs = tuple(Ref(axis.name) if isinstance(axis, Dim) else axis for axis in axes)
    if initial is None:
        shape = [axis.min if isinstance(axis, Dim) else axis.value if isinstance(axis, Number) else 1 for axis in axes]
        initial = torch.zeros(shape, dtype=seen[0].dtype)
    return StateInput(kept.path, kept.slot, exprs, initial, tuple(seen), own)


def _initial_tensor(kept: Kept) -> torch.Tensor | None:
    """The value before the first call; None where there is none yet."""
    value = kept.initial
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if type(value) in _NUMBERS:
        return torch.tensor(value, dtype=_NUMBERS[type(value)])
    if value is None or value is MISSING:
        return None
    raise NotCarriedError(kept.path, f"it is {_spoken(value)}; a file carries tensors and numbers.")


def _axis(
    index: int, kept: Kept, initial: torch.Tensor | None, calls: Sequence[_Called], declared: Declared
) -> Expr | Dim:
    """The size of one axis: the same always, a dim of the inputs, or a dim of its own."""
    sizes = [[value[kept.path].shape[index] for value in called.after] for called in calls]
    first = None if initial is None else initial.shape[index]
    if {size for pair in sizes for size in pair} | ({first} - {None}) == {sizes[0][0]}:
        return Number(sizes[0][0])
    for name in declared.domain.names:
        is_dim = all(pair == [called.sizes[name]] * 2 for pair, called in zip(sizes, calls, strict=True))
        if is_dim and first in (None, 1):
            return Ref(name)
    own = f"{re.sub(r'[^A-Za-z0-9]+', '_', kept.path)}_{index}"
    if own in declared.domain.names:
        raise NotCarriedError(kept.path, f"its axis {index} grows, and {own!r} is the name of a dim already.")
    return Dim(own, min=first or 0)


def _check_first_values(
    replay: Replay, declared: Declared, states: Sequence[StateInput], calls: Sequence[_Called]
) -> None:
    """Raise NotCarriedError unless the first values, as tensors in their slots, give the replies of a fresh model."""
    for called in calls:
        replay.reset()
        try:
            with putting([state.slot for state in states], [state.first(called.sizes) for state in states]):
                reply = replay.onward(calling(declared, called.sizes, 0))
        except LookupError:
            raise NotCarriedError(states[0].name, "the first call makes the container that holds it.") from None
        if not reply.is_like(called.reply):
            made = [state for state in states if state.slot.get() is None or state.slot.get() is MISSING]
            raise NotCarriedError(
                (made or list(states))[0].name, "the first call makes it, and zeros in its place answer otherwise."
            )
    replay.reset()


def _spoken(value: Any) -> str:
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
