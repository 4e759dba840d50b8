"""Is what `anyshape.axes` finds for a case of the corpus true?  Judged by calls of a fresh model in eager mode.

The axes have to be those of `case.dynamic`. At each point, the sizes of the case and ten others, the found domain has to
contain the point if and only if a fresh model answers there, and each found expression has to give the size of its axis.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from anyshape.domain import Ref, declare_domain, dims_of, evaluate
from anyshape.report.axes_found import AxesFound, AxesOfInput

OTHERS = 10
Place = tuple[str, int]


@dataclass(frozen=True)
class Judged:
    """`missing` and `further` are axes beside those of `case.dynamic`; `wrong` says at which points the rules are wrong."""

    missing: tuple[Place, ...]
    further: tuple[Place, ...]
    wrong: tuple[str, ...]
    points: int
    answered: int

    @property
    def is_exact(self) -> bool:
        return not self.missing and not self.further and not self.wrong


def judge(case: Any, found: AxesFound) -> Judged:
    """What is wrong with the found axes and rules on the sizes of the case and ten others."""
    wanted = {(leaf, axis) for leaf, axes in case.dynamic.items() for axis in axes if axis != "value"}
    opened = {(each.path, axis) for each in found.inputs for axis, expr in enumerate(each.axes) if dims_of(expr)}
    wrong, answered, points = [], 0, [*_rows(case), *_others(case)]
    for row in points:
        args, kwargs = make(case, row)
        answers = answers_at(case, args, kwargs)
        answered += answers
        shapes = {path: tuple(value.shape) for path, value in case.leaves(args, kwargs) if hasattr(value, "shape")}
        if not found.is_declared and 0 in itertools.chain.from_iterable(shapes.values()):
            continue  # sizes are 1 and more where nothing declares a 0
        if is_inside(found, shapes) != answers:
            wrong.append(f"{row}: {'answers' if answers else 'raises'}, but the rules say otherwise")
    wrong += [f"further axes: {text}" for text in _wrong_further(case, found)] if opened - wanted else []
    return Judged(
        missing=tuple(sorted(wanted - opened)),
        further=tuple(sorted(opened - wanted)),
        wrong=tuple(wrong),
        points=len(points),
        answered=answered,
    )


def is_inside(found: AxesFound, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether inputs of these shapes are inside of what was found: each axis as its expression says, and every rule kept."""
    sizes: dict[str, int] = {}
    for each in found.inputs:
        for axis, expr in enumerate(each.axes):
            if isinstance(expr, Ref):
                sizes.setdefault(expr.name, shapes[each.path][axis])
    fits = all(evaluate(expr, sizes) == shapes[each.path][axis] for each, axis, expr in _axes(found))
    return fits and found.domain.contains(sizes)


def _axes(found: AxesFound) -> Iterator[tuple[AxesOfInput, int, Any]]:
    return ((each, axis, expr) for each in found.inputs for axis, expr in enumerate(each.axes))


def answers_at(case: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a fresh model answers."""
    try:
        with torch.no_grad():
            case.make()(*args, **kwargs)
    except Exception:
        return False
    return True


def make(case: Any, row: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The case's own inputs at these sizes, as (args, kwargs)."""
    torch.manual_seed(0)
    made = case.inputs(*row)
    if isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], tuple) and isinstance(made[1], dict):
        return made
    return (made if isinstance(made, tuple) else (made,)), {}


def _rows(case: Any) -> list[tuple[Any, ...]]:
    return [row if isinstance(row, tuple) else (row,) for row in case.sizes]


def _others(case: Any) -> list[tuple[Any, ...]]:
    """Ten other sizes that the declaration of the case allows: half of them mix those of its rows, half are random."""
    import inspect

    names = list(inspect.signature(case.inputs).parameters)
    dims = {name for axes in case.dynamic.values() for text in axes.values() for name in names if name in str(text)}
    domain = declare_domain([name for name in names if name in dims], case.where)
    rows, chooser, found = _rows(case), random.Random(case.name), []
    for attempt in range(2000):
        mixed = len(found) < OTHERS // 2 and attempt < 200
        row = tuple(_drawn(chooser, [r[place] for r in rows], mixed, name in dims) for place, name in enumerate(names))
        sizes = {name: size for name, size in zip(names, row, strict=True) if name in dims}
        if row in rows or row in found or not domain.contains(sizes) or not _can_be_made(case, row):
            continue
        found.append(row)
        if len(found) == OTHERS:
            break
    return found


def _drawn(chooser: random.Random, seen: list[Any], mixed: bool, is_dim: bool) -> Any:
    if mixed or not is_dim:
        return chooser.choice(seen)
    return chooser.randint(min(seen), 2 * max(seen))


def _can_be_made(case: Any, row: tuple[Any, ...]) -> bool:
    """Whether the case's own function has inputs at these sizes: `32 - T` has none at 40."""
    try:
        make(case, row)
    except Exception:
        return False
    return True


def _wrong_further(case: Any, found: AxesFound) -> list[str]:
    """Points of the found domain at which all dims move, those of further axes included, and eager says otherwise."""
    args, kwargs = case.examples[0]
    example = dict(case.leaves(args, kwargs))
    chooser, wrong, inside = random.Random(f"{case.name} further"), [], 0
    for _ in range(400):
        sizes = {dim.name: chooser.randint(max(1, dim.min), dim.max or 12) for dim in found.domain.dims}
        shapes = {each.path: tuple(evaluate(axis, sizes) for axis in each.axes) for each in found.inputs}
        if any(size < 1 for shape in shapes.values() for size in shape) or not found.domain.contains(sizes):
            continue
        draws = [
            {path: resized(example[path], shape, whole) for path, shape in shapes.items()} for whole in (None, 0, 1)
        ]  # an index of the example may be too large for a smaller axis: then 0 or 1 has to do
        if not any(answers_at(case, *_rebuilt(case, args, kwargs, leaves)) for leaves in draws):
            wrong.append(str(sizes))
        inside += 1
        if inside == OTHERS:
            break
    return wrong


def resized(value: torch.Tensor, shape: tuple[int, ...], whole: int | None) -> torch.Tensor:
    """Random floats of another shape; whole numbers are all `whole`, or repeated from the example, as flags are."""
    if value.is_floating_point():
        return torch.randn(shape).to(value.dtype)
    if whole is not None and value.dtype != torch.bool:
        return torch.full(shape, whole, dtype=value.dtype)
    for axis, size in enumerate(shape):
        value = value.index_select(axis, torch.arange(size) % value.shape[axis])
    return value


def _rebuilt(
    case: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], leaves: Mapping[str, torch.Tensor]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The call with other tensors in the places that the leaves name."""

    def rebuild(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: rebuild(f"{name}.{key}", each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(rebuild(f"{name}.{place}", each) for place, each in enumerate(value))
        return leaves.get(name, value)

    names = list(case.bound(args, kwargs))
    positional = tuple(rebuild(name, value) for name, value in zip(names, args, strict=False))
    inside = {"." + key: f"{names[-1]}.{key}" for key in kwargs}
    return positional, {
        key: rebuild(key if key in names else inside["." + key], value) for key, value in kwargs.items()
    }
