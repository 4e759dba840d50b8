"""Calls in a row: the file with its own state fed back to it, beside the module, which keeps its state itself.

What a single call does is verified like any file. Here it is whether the state goes from call to call as in the module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyshape.domain import Sizes
from anyshape.inputs import Declared, Inputs, StateInput, flatten_outputs, state_parameter
from anyshape.inputs.calls import as_array
from anyshape.intercept.replay import Replay
from anyshape.records.verdict import RowDifference
from anyshape.runtime.child_messages import RunError
from anyshape.runtime.client import ChildRunner
from anyshape.runtime.dtypes import Array
from anyshape.verify.tensors import to_array

_SAME_SIZES = 4
_RELATIVE = 1e-3  # of the largest element: rounding adds up from call to call


@dataclass(frozen=True, eq=False)
class RowRequest:
    """The module without its wrapper and its declaration without state; `states` are what the wrapper carries."""

    path: Path
    module: torch.nn.Module
    declared: Declared
    states: Sequence[StateInput]
    points: Sequence[Sizes]
    output_names: Sequence[str]


@dataclass(frozen=True)
class RowVerdict:
    """How many calls were compared, and the first that differed."""

    calls: int
    difference: RowDifference | None = None


def verify_in_a_row(request: RowRequest) -> RowVerdict:
    """Compare rows of calls: several at each of the sizes, and one row through all of them."""
    calls = 0
    with Replay(request.module, flatten_outputs) as replay, ChildRunner(str(request.path)) as runner:
        for row in _rows(request.points):
            replay.reset()
            for compared in _compare_row(request, replay, runner, row):
                calls += 1
                if compared is not None:
                    return RowVerdict(calls, compared)
    return RowVerdict(calls)


def _rows(points: Sequence[Sizes]) -> Iterator[list[Sizes]]:
    yield from ([sizes] * _SAME_SIZES for sizes in points)
    yield [*points, *points]
    yield [*reversed(points), *points]


def _compare_row(
    request: RowRequest, replay: Replay, runner: ChildRunner, row: Sequence[Sizes]
) -> Iterator[RowDifference | None]:
    parameter = state_parameter(request.declared)
    state = {
        each.name: as_array(each.first(row[0]), str(each.initial.dtype).removeprefix("torch."))
        for each in request.states
    }
    for number, sizes in enumerate(row, 1):
        if not all(_fits(each, state[each.name], sizes) for each in request.states):
            continue  # a state of other sizes, which these inputs do not go with
        inputs = request.declared.make(sizes, number)
        reply = replay.onward(partial(_call, request.declared, inputs))
        if reply.raised is not None:
            return
        feeds = {**request.declared.feeds(inputs), **{f"{parameter}.{name}": value for name, value in state.items()}}
        try:
            given = runner.submit(feeds).result()
        except RunError as error:
            yield RowDifference(number, dict(sizes), "", str(error))
            return
        expected = [to_array(leaf) for _, leaf in reply.leaves if leaf is not None and not isinstance(leaf, str)]
        expected += [to_array(each.slot.get()) for each in request.states]
        yield _first_difference(request.output_names, expected, given, (number, dict(sizes)))
        state = dict(zip(state, given[len(given) - len(state) :], strict=True))


def _call(declared: Declared, inputs: Inputs, module: torch.nn.Module) -> Any:
    values = [value.clone() if isinstance(value, torch.Tensor) else value for value in declared.open_values(inputs)]
    return declared.call(module, declared.rebuild(values))


def _fits(state: StateInput, value: Array, sizes: Sizes) -> bool:
    """Whether the state has the sizes that it needs beside these inputs; its own dims have any."""
    return value.shape == tuple(
        size if own else wanted for size, (own, wanted) in zip(value.shape, state.sizes_needed(sizes), strict=True)
    )


def _first_difference(
    names: Sequence[str], expected: Sequence[Array], given: Sequence[Array], where: tuple[int, dict[str, int]]
) -> RowDifference | None:
    for name, one, other in zip(names, expected, given, strict=True):
        if one.shape != other.shape:
            return RowDifference(*where, name, f"expected shape {list(one.shape)}, actual {list(other.shape)}")
        if one.dtype.kind in "biu":
            is_equal = np.array_equal(one, other)
        else:
            largest = float(np.max(np.abs(one[np.isfinite(one)]), initial=0.0))
            is_equal = np.allclose(other, one, rtol=_RELATIVE, atol=_RELATIVE * largest, equal_nan=True)
        if not is_equal:
            worst = np.unravel_index(int(np.argmax(np.abs(one.astype("float64") - other))), one.shape)
            return RowDifference(*where, name, f"expected {one[worst]:.6g}, actual {other[worst]:.6g}")
    return None
