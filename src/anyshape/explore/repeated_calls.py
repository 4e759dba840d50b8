"""Calls that are made again with equal inputs, and the few that suffice where calls are dear."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from anyshape.domain import Sizes
from anyshape.explore.cost_estimates import Costing
from anyshape.inputs import Declared
from anyshape.intercept.replay import Call, Replay
from anyshape.modules.slots import changed_slots, read_slots

_USUAL_CALLS = 20
_SHARE = 4  # one part in so many of what is in proportion to the export


def are_repeats_dear(declared: Declared, cost: Costing) -> bool:
    """Whether the usual repeated calls at the example's sizes are out of proportion to the export."""
    return _USUAL_CALLS * cost.operations(declared.example_sizes) > cost.in_proportion // _SHARE


def is_constant(replay: Replay, declared: Declared, points: Sequence[Sizes]) -> bool:
    """Whether calls at the first of these sizes that the module answers have nothing random and leave no trace."""
    found = (is_constant_call(replay, calling(declared, sizes, 0)) for sizes in points)
    return next((is_alike for is_alike in found if is_alike is not None), False)


def is_constant_call(replay: Replay, call: Call) -> bool | None:
    """Whether two calls with the same inputs have nothing random and leave no trace; None where the module raises.

    The second call starts from the state that the first one left, under other random numbers: it must give the same reply.
    Where it reads them, a third call from which they are withheld must do so, too.
    """
    before = read_slots(replay.module)
    first = replay.fresh(call)
    if first.raised is not None:
        return None
    is_unchanged = not changed_slots(before, read_slots(replay.module, before))
    return is_unchanged and replay.stays_alike(call, first)


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
    return declared.call(module, declared.rebuild([own(value) for value in declared.open_values(inputs)]))


def own(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value
