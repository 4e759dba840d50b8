"""Models whose outputs change from call to call: random ones compared as samples, those with state by calls in a row.

Structure, shape and dtype of every draw are compared as always. Of the values, features of each draw are compared by their
means: level, spread, quantiles, how much draws differ from each other, and how much elements differ along each axis.
Six standard errors apart is a difference.

What a single call does is verified like any file. Here it is whether the state goes from call to call as in the module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch

from anyshape.domain import Sizes
from anyshape.inputs import Declared, Inputs, StateInput, flatten_outputs, state_parameter
from anyshape.inputs.calls import as_array
from anyshape.intercept.replay import Replay
from anyshape.records.verdict import (
    Difference,
    Failure,
    FailureKind,
    Mismatch,
    Refusal,
    RowDifference,
    Untried,
    Verdict,
)
from anyshape.runtime import ChildRunner
from anyshape.runtime.child_messages import Array, RunError
from anyshape.verify.plan import spread
from anyshape.verify.reference import Answer, Refused
from anyshape.verify.request import VerifyRequest
from anyshape.verify.tensors import to_array

FLOOR = "samples of both"
_DRAWS = 128
_FEW_DRAWS = 32
_MOST_SIZES = 8
_STANDARD_ERRORS = 6.0
_ROUNDING = 1e-4
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_FEW_ELEMENTS = 64
_SAME_SIZES = 4
_RELATIVE = 1e-3  # of the largest element: rounding adds up from call to call


def verify_samples(request: VerifyRequest, runner: ChildRunner) -> Verdict:
    """Compare samples at some of the sizes, and smaller ones at those that are compared once; the rest is untried."""
    started = monotonic()
    tried: list[Sizes] = []
    failures: list[Failure] = []
    refused: list[Refusal] = []
    chosen = [(sizes, _DRAWS) for sizes in spread(request.sizes, _MOST_SIZES)]
    chosen += [(sizes, _FEW_DRAWS) for sizes in request.once]
    for sizes, draws in chosen:
        outcome = _compare_at(request, runner, sizes, draws)
        if isinstance(outcome, Refused):
            refused.append(Refusal(dict(sizes), outcome.message, outcome.source))
            continue
        tried.append(dict(sizes))
        failures += [outcome] if outcome is not None else []
    others = [sizes for sizes in request.sizes if sizes not in [each for each, _ in chosen]]
    return Verdict(
        tried=tuple(tried),
        failures=tuple(failures),
        smallest_failure=min(failures, key=lambda failure: prod(failure.sizes.values()), default=None),
        refused=tuple(refused),
        untried=(*request.left_out, *(Untried(sizes, "samples are compared at a few sizes") for sizes in others)),
        trials=sum(draws for _, draws in chosen),
        floor=FLOOR,
        seconds=monotonic() - started,
    )


def _compare_at(request: VerifyRequest, runner: ChildRunner, sizes: Sizes, draws: int) -> Failure | Refused | None:
    inputs = request.make(sizes, request.options.seed)
    feeds = request.feeds(inputs)
    expected: list[tuple[Array, ...]] = []
    actual: list[Sequence[Array]] = []
    for draw in range(draws):
        answer = request.reference.run(inputs, draw)
        if not isinstance(answer, Answer):
            return answer
        expected.append(answer.arrays)
        try:
            actual.append(runner.run(feeds))
        except RunError as error:
            return Failure(sizes=dict(sizes), kind=FailureKind.RAISED, message=str(error), seed=request.options.seed)
    difference = compare_samples(request.output_names, expected, actual)
    if difference is None:
        return None
    return Failure(sizes=dict(sizes), kind=FailureKind.DIFFERS, difference=difference, seed=request.options.seed)


def compare_samples(
    names: Sequence[str], expected: Sequence[Sequence[Array]], actual: Sequence[Sequence[Array]]
) -> Difference | None:
    """Why two samples of answers do not look alike, or None."""
    for one, other in zip(expected, actual, strict=True):
        if len(one) != len(other):
            return Difference(Mismatch.STRUCTURE, "", len(one), len(other))
        for name, mine, theirs in zip(names, one, other, strict=True):
            if mine.shape != theirs.shape:
                return Difference(Mismatch.SHAPE, name, mine.shape, theirs.shape)
            if mine.dtype != theirs.dtype:
                return Difference(Mismatch.DTYPE, name, str(mine.dtype), str(theirs.dtype))
    for index, name in enumerate(names):
        shapes = {each[index].shape for each in expected}
        if len(shapes) == 1 and expected[0][index].size:
            mine, theirs = (np.stack([each[index] for each in side]).astype("float64") for side in (expected, actual))
            if found := _first_apart(mine, theirs):
                return Difference(Mismatch.DISTRIBUTION, name, *found)
    return None


def _first_apart(expected: Array, actual: Array) -> tuple[str, str] | None:
    scale = float(np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0)) or 1.0
    mine, theirs = _features(expected / scale), _features(actual / scale)
    for name, values in mine.items():
        one, other = values, theirs[name]
        allowed = _ROUNDING + _STANDARD_ERRORS * np.sqrt(one.var() / len(one) + other.var() / len(other))
        if not abs(one.mean() - other.mean()) <= allowed:
            return f"{name} about {_rounded(one, other, scale)}", f"about {_rounded(other, one, scale)}"
    return None


def _rounded(values: Array, others: Array, scale: float) -> str:
    """The mean in as few digits as distinguish it from the other one: the rest changes from draw to draw."""
    mean, other = values.mean() * scale, others.mean() * scale
    return next(
        (f"{mean:.{digits}g}" for digits in (1, 2, 3) if f"{mean:.{digits}g}" != f"{other:.{digits}g}"), f"{mean:.6g}"
    )


def _features(sample: Array) -> Mapping[str, Array]:
    """Features by name, one value for each draw (or for each pair of draws)."""
    flat = np.nan_to_num(sample.reshape(len(sample), -1), nan=3.0, posinf=5.0, neginf=-5.0)
    found = {"mean": flat.mean(1), "mean size": np.abs(flat).mean(1), "mean square": (flat**2).mean(1)}
    found |= {"mean fourth power": (flat**4).mean(1), "smallest": flat.min(1), "largest": flat.max(1)}
    found |= {f"quantile {each:g}": np.quantile(flat, each, axis=1) for each in _QUANTILES}
    pairs = flat[0::2] - flat[1::2]
    found["difference between draws"] = np.abs(pairs).mean(1)
    found |= dict(_along_axes(flat.reshape(sample.shape)))
    few = np.linspace(0, flat.shape[1] - 1, min(_FEW_ELEMENTS, flat.shape[1]), dtype=int)
    found |= {f"element {index}": flat[:, index] for index in few}
    return found


def _along_axes(sample: Array) -> Iterator[tuple[str, Array]]:
    """How much neighbours differ along each axis: noise that is shared along one differs from noise that is not."""
    for axis in range(1, sample.ndim):
        if sample.shape[axis] > 1:
            steps = np.abs(np.diff(sample, axis=axis)).reshape(len(sample), -1)
            yield f"step along axis {axis - 1}", steps.mean(1)


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
