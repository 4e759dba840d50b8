"""Tensors that the module makes from Python values, where they follow a rule of positions and sizes.

Every element is a number seen at a point that has the sizes and the element's position in it: `arange`, `full`, tables of
positions are then fits like any other. A tensor of two values is a condition on positions: triangles, bands, diagonals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.fx import Node

from anyshape.capture.generalized.fit_reals import Part, Real
from anyshape.capture.generalized.not_learned import constant_without_rule
from anyshape.capture.generalized.scope import Scope
from anyshape.capture.generalized.template import ConstantOperand
from anyshape.domain import ROOT, Expr, Number, Op, Ref, is_about, range_of, simplify

if TYPE_CHECKING:
    from anyshape.capture.generalized.graph_frames import Frame

_aten = torch.ops.aten
_MOST_ELEMENTS = 60

Sample = tuple[Mapping[str, int], Any]


def build_constant(frame: Frame, made: ConstantOperand) -> Node:
    """The node of a constant. Raises NotCaptured where it changes by no known rule."""
    tensors = [constant.tensor for _, constant in made.sightings]
    if all(_equal(tensors[0], tensor) for tensor in tensors[1:]):
        return frame.constant(f"constant_{made.key}", tensors[0])
    axes = tuple(f"_axis{axis}" for axis in range(tensors[0].ndim))
    shape = _shape(frame, made)
    samples = [
        sample for seen, constant in made.sightings for sample in _samples(dict(seen.point), constant.tensor, axes)
    ]
    dtype = tensors[0].dtype
    positions = _Positions(frame.scope, shape, axes)
    found = _choice(samples, axes)
    if found is not None:
        condition, if_true, if_false = found
        mask = frame.scope.call(_aten.ge.Scalar, positions.build(condition), 0)
        if dtype == torch.bool:
            return mask if if_true else frame.scope.call(_aten.logical_not.default, mask)
        options = {"dtype": dtype}
        chosen = [frame.scope.call(_aten.scalar_tensor.default, value, **options) for value in (if_true, if_false)]
        return frame.scope.call(_aten.where.self, mask, *chosen)
    rule = _rule(frame, samples)
    if rule is None:
        table = _cut_from_table(frame, made, shape)
        if table is None:
            raise constant_without_rule(_maker(frame, made))
        return table
    return frame.scope.call(_aten.to.dtype, positions.build(rule), dtype)


def _cut_from_table(frame: Frame, made: ConstantOperand, shape: Sequence[Expr]) -> Node | None:
    """The beginning of one table, where no size of the domain needs more of it than was seen."""
    tensors = [constant.tensor for _, constant in made.sightings]
    longest = max(tensors, key=torch.Tensor.numel)
    axes = [axis for axis in range(longest.ndim) if len({tensor.shape[axis] for tensor in tensors}) > 1]
    if len(axes) != 1:
        return None
    (axis,) = axes
    domain = frame.scope.domain
    if not is_about(shape[axis], domain.names):  # nobody knows how far a counter goes
        return None
    most = range_of(domain, shape[axis])
    if most is None or most.high != longest.shape[axis]:
        return None
    if not all(_equal(tensor, longest.narrow(axis, 0, tensor.shape[axis])) for tensor in tensors):
        return None
    table = frame.constant(f"constant_{made.key}", longest)
    return frame.scope.call(_aten.slice.Tensor, table, axis, 0, frame.scope.size(shape[axis]))


def _equal(first: torch.Tensor, second: torch.Tensor) -> bool:
    return first.shape == second.shape and bool(torch.equal(first, second) or _same_with_nan(first, second))


def _same_with_nan(first: torch.Tensor, second: torch.Tensor) -> bool:
    return first.is_floating_point() and bool(torch.allclose(first, second, rtol=0, atol=0, equal_nan=True))


def _shape(frame: Frame, made: ConstantOperand) -> list[Expr]:
    sizes = []
    for axis in range(made.sightings[0][1].tensor.ndim):
        expr = frame.explained.fits.integers(
            [(seen.point, constant.tensor.shape[axis]) for seen, constant in made.sightings]
        )
        if expr is None:
            raise constant_without_rule(_maker(frame, made))
        sizes.append(expr)
    return sizes


def _maker(frame: Frame, made: ConstantOperand) -> Any:
    """A step that uses the constant: its line is the closest in the trace."""
    return next((place.step for place, arguments in frame.explained.arguments.items() if made in arguments), None)


def _samples(point: dict[str, int], tensor: torch.Tensor, axes: Sequence[str]) -> Iterator[Sample]:
    values = tensor.detach().cpu().reshape(-1).tolist()
    if not values:
        return
    ends = {0, len(values) - 1}
    chosen = np.linspace(0, len(values) - 1, min(len(values), _MOST_ELEMENTS)).astype(int)
    for index in sorted({*chosen.tolist(), *ends}):
        position = np.unravel_index(index, tuple(tensor.shape)) if tensor.ndim else ()
        yield {**point, **dict(zip(axes, map(int, position), strict=True))}, values[index]


def _choice(samples: Sequence[Sample], axes: Sequence[str]) -> tuple[Expr, Any, Any] | None:
    """Two values, distinguished by `e >= 0` for an affine e of positions and sizes."""
    values = {value for _, value in samples}
    if len(values) != 2 or any(value != value for value in values):
        return None
    one, other = sorted(values, key=float)
    for if_true, if_false in ((other, one), (one, other)):
        for base in _bases(samples[0][0], axes):
            numbers = [(_value(base, point), value) for point, value in samples]
            lowest = min(number for number, value in numbers if value == if_true)
            if all(number < lowest for number, value in numbers if value == if_false):
                return simplify(base - lowest), if_true, if_false
    return None


def _bases(point: Mapping[str, int], axes: Sequence[str]) -> Iterator[Expr]:
    names = [Ref(name) for name in point]
    positions = [name for name in names if name.name in axes]
    for first in positions:
        yield first
        yield Number(0) - first
        for second in names:
            if second != first:
                yield first - second
                yield second - first
                yield Number(0) - Op("max", (first - second, second - first))  # |first - second|: diagonals and bands
                yield first + second
                for third in names:
                    if third not in (first, second):
                        yield first + second - third
                        yield third - first - second


def _value(expr: Expr, point: Mapping[str, int]) -> int:
    from anyshape.domain import evaluate

    return evaluate(expr, point)


def _rule(frame: Frame, samples: Sequence[Sample]) -> Expr | Real | None:
    numbers = [value for _, value in samples]
    if all(isinstance(value, (bool, int)) or float(value).is_integer() for value in numbers):
        found = frame.explained.fits.integers([(point, int(value)) for point, value in samples])
        if found is not None:
            return found
    real = frame.explained.fits.reals([(point, float(value)) for point, value in samples])
    return Real(real, ()) if isinstance(real, float) else real


class _Positions:
    """Expressions of positions as tensors: each axis an arange, shaped to broadcast."""

    def __init__(self, scope: Scope, shape: Sequence[Expr], axes: Sequence[str]) -> None:
        self._scope = scope
        self._shape = shape
        self._axes = axes

    def build(self, rule: Expr | Real) -> Node:
        """The rule over all positions, in the constant's full shape."""
        node = self._real(rule) if isinstance(rule, Real) else self._tensor(rule)
        return self._scope.call(_aten.expand.default, node, [self._scope.size(size) for size in self._shape])

    def _tensor(self, expr: Expr) -> Node:
        scope = self._scope
        if isinstance(expr, Ref) and expr.name in self._axes:
            axis = self._axes.index(expr.name)
            numbers = scope.call(_aten.arange.default, scope.size(self._shape[axis]))
            around = [1] * axis + [-1] + [1] * (len(self._axes) - axis - 1)
            return scope.call(_aten.view.default, numbers, around)
        if not isinstance(expr, Op):
            return scope.call(_aten.scalar_tensor.default, scope.size(expr), dtype=torch.int64)
        parts = [self._tensor(part) for part in expr.args]
        if expr.symbol == ROOT:
            root = scope.call(_aten.sqrt.default, scope.call(_aten.to.dtype, parts[0], torch.float64))
            return scope.call(_aten.to.dtype, root, torch.int64)
        result = parts[0]
        for part in parts[1:]:
            result = self._apply(expr.symbol, result, part)
        return result

    def _apply(self, symbol: str, left: Node, right: Node) -> Node:
        if symbol == "//":
            return self._scope.call(_aten.div.Tensor_mode, left, right, rounding_mode="floor")
        operations = {
            "+": _aten.add.Tensor,
            "-": _aten.sub.Tensor,
            "*": _aten.mul.Tensor,
            "%": _aten.remainder.Tensor,
            "min": _aten.minimum.default,
            "max": _aten.maximum.default,
        }
        return self._scope.call(operations[symbol], left, right)

    def _real(self, real: Real) -> Node:
        result: Any = None
        for part in real.parts:
            factor = self._part(part)
            result = factor if result is None else self._scope.call(_aten.mul.Tensor, result, factor)
        if result is None:
            return self._scope.call(_aten.scalar_tensor.default, real.factor, dtype=torch.float64)
        result = self._scope.call(_aten.mul.Tensor, result, real.factor)
        result = self._scope.call(_aten.add.Tensor, result, real.shift) if real.shift else result
        is_cut = real.least is not None or real.most is not None
        return self._scope.call(_aten.clamp.default, result, real.least, real.most) if is_cut else result

    def _part(self, part: Part) -> Node:
        from anyshape.capture.generalized.scope import FUNCTIONS

        numbers = self._scope.call(_aten.to.dtype, self._tensor(part.of), torch.float64)
        return self._scope.call(FUNCTIONS[part.function], numbers) if part.function else numbers
