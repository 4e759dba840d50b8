"""A graph under construction: names -> sizes, expressions -> arithmetic on sizes, floats -> arithmetic on tensors.

torch.onnx divides integers towards zero where Python rounds down, so a numerator that may be negative is split into its
positive and its negative side. Floats are tensors of no axes, because torch.onnx has no roots and logarithms of sizes.

Calls whose arguments follow the sizes are written in a form that takes them, since torch.export bakes a size in where an
operator's schema says `int` and not `SymInt`:

    mul.Scalar(x, 1/sqrt(seq))  ->  mul.Tensor(x, tensor)
    full(shape, 1/seq)          ->  tensor.expand(shape)
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch.fx import Graph, Node

from anyshape.capture.generalized.fit_reals import Part, Real
from anyshape.domain import ROOT, Domain, Expr, Number, Op, Ref, range_of

_aten = torch.ops.aten
Size = Node | int

_OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "min": torch.sym_min,
    "max": torch.sym_max,
}
FUNCTIONS = {
    "sqrt": _aten.sqrt.default,
    "log": _aten.log.default,
    "reciprocal": _aten.reciprocal.default,
    "rsqrt": _aten.rsqrt.default,
}
_WITH_TENSOR = {
    _aten.add.Scalar: _aten.add.Tensor,
    _aten.sub.Scalar: _aten.sub.Tensor,
    _aten.mul.Scalar: _aten.mul.Tensor,
    _aten.div.Scalar: _aten.div.Tensor,
    _aten.pow.Tensor_Scalar: _aten.pow.Tensor_Tensor,
    _aten.masked_fill.Scalar: _aten.masked_fill.Tensor,
    _aten.clamp.default: _aten.clamp.Tensor,
    _aten.clamp_min.default: _aten.clamp_min.Tensor,
    _aten.clamp_max.default: _aten.clamp_max.Tensor,
    _aten.eq.Scalar: _aten.eq.Tensor,
    _aten.ne.Scalar: _aten.ne.Tensor,
    _aten.lt.Scalar: _aten.lt.Tensor,
    _aten.le.Scalar: _aten.le.Tensor,
    _aten.gt.Scalar: _aten.gt.Tensor,
    _aten.ge.Scalar: _aten.ge.Tensor,
    _aten.fmod.Scalar: _aten.fmod.Tensor,
    _aten.remainder.Scalar: _aten.remainder.Tensor,
}
_FILLS = {_aten.full.default, _aten.full_like.default, _aten.new_full.default}


class Scope:
    """One graph, and where it gets the sizes of names from."""

    def __init__(self, domain: Domain, read: Callable[[Scope, str], Size]) -> None:
        self.graph = Graph()
        self.domain = domain
        self._read = read
        self._sizes: dict[Expr, Size] = {}
        self._reals: dict[tuple[Real, torch.dtype], Node] = {}
        self.stack = ""

    def call(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        """A new node, at the line of the user that is being built."""
        node = self.graph.call_function(target, args, kwargs)
        if self.stack:
            node.meta["stack_trace"] = self.stack
        return node

    def size(self, expr: Expr) -> Size:
        """The expression as a number of Python or as a node; the same one for the same expression."""
        if isinstance(expr, Number):
            return expr.value
        if expr not in self._sizes:
            self._sizes[expr] = self._read(self, expr.name) if isinstance(expr, Ref) else self._operation(expr)
        return self._sizes[expr]

    def _operation(self, expr: Expr) -> Size:
        assert isinstance(expr, Op)
        if expr.symbol == "//" and not self.is_positive(expr.args[0]):
            numerator, divisor = expr.args
            above = Op("max", (numerator, Number(0))) // divisor
            below = (Op("max", (Number(0) - numerator, Number(0))) + divisor - 1) // divisor
            return self.call(operator.sub, self._quotient(above), self._quotient(below))
        if expr.symbol == "//":
            return self._quotient(expr)
        parts = [self.size(part) for part in expr.args]
        if expr.symbol == ROOT:
            return self.call(torch.sym_int, self.call(torch._sym_sqrt, parts[0]))  # type: ignore[attr-defined]
        result = parts[0]
        for part in parts[1:]:
            result = self._apply(expr.symbol, result, part)
        return result

    def _quotient(self, expr: Expr) -> Size:
        assert isinstance(expr, Op)
        return self._apply("//", self.size(expr.args[0]), self.size(expr.args[1]))

    def _apply(self, symbol: str, left: Size, right: Size) -> Size:
        operation = _OPERATIONS[symbol]
        if isinstance(left, int) and isinstance(right, int):
            return int(operation(left, right))
        return self.call(operation, left, right)

    def is_positive(self, expr: Expr) -> bool:
        """Whether the expression is known not to be negative."""
        if isinstance(expr, Number):
            return expr.value >= 0
        if isinstance(expr, Ref):
            return True  # sizes and counters are
        assert isinstance(expr, Op)
        if expr.symbol in ("+", "*", "//", "%", "min") and all(self.is_positive(part) for part in expr.args):
            return True
        if expr.symbol == ROOT:
            return True
        if expr.symbol == "max" and any(self.is_positive(part) for part in expr.args):
            return True
        try:
            found = range_of(self.domain, expr)
        except Exception:  # a counter is no dim: not known to the domain, so not known to be positive
            return False
        return found is not None and isinstance(found.low, int) and found.low >= 0

    def real(self, real: Real, dtype: torch.dtype) -> Node:
        """A float as a tensor of no axes: in double precision, rounded to the dtype at the end."""
        key = (real, dtype)
        if key not in self._reals:
            product: Any = None
            for part in real.parts:
                factor = self._part(part)
                product = factor if product is None else self.call(_aten.mul.Tensor, product, factor)
            if real.factor != 1:
                product = self.call(_aten.mul.Tensor, product, real.factor)
            if real.shift:
                product = self.call(_aten.add.Tensor, product, real.shift)
            if real.least is not None or real.most is not None:
                product = self.call(_aten.clamp.default, product, real.least, real.most)
            if dtype != torch.float64:
                product = self.call(_aten.to.dtype, product, dtype)
            self._reals[key] = product
        return self._reals[key]

    def _part(self, part: Part) -> Node:
        number = self.call(_aten.scalar_tensor.default, self.size(part.of), dtype=torch.float64)
        return self.call(FUNCTIONS[part.function], number) if part.function else number


class NoTensorForm(Exception):
    """The operator takes this argument as a Python number only."""


def takes_tensor(target: Any, position: int) -> bool:
    """Whether the schema has a tensor at this position: a number can then be passed as a tensor without axes."""
    arguments = target._schema.arguments
    return position < len(arguments) and "Tensor" in str(arguments[position].type)


def call_with_tensors(
    scope: Scope, target: Any, args: Sequence[Any], kwargs: dict[str, Any], shape: Sequence[Any], dtype: torch.dtype
) -> Any:
    """Write a call in which tensors are given for arguments that the operator takes as numbers. Raises NoTensorForm.

    `shape` and `dtype` are those of the result.
    """
    if target in _WITH_TENSOR:
        return scope.call(_WITH_TENSOR[target], *args, **kwargs)
    if target in _FILLS:
        return scope.call(_aten.expand.default, scope.call(_aten.to.dtype, args[1], dtype), list(shape))
    if target is _aten.rsub.Scalar:
        return scope.call(_aten.sub.Tensor, args[1], args[0])
    if target is _aten.scaled_dot_product_attention.default and "scale" in kwargs:
        query = scope.call(_aten.mul.Tensor, args[0], kwargs.pop("scale"))
        return scope.call(target, query, *args[1:], **kwargs, scale=1.0)
    raise NoTensorForm


def bakes(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a computed size stands where the schema takes fixed integers only."""
    schema = target._schema
    given = {argument.name: value for argument, value in zip(schema.arguments, args, strict=False)} | dict(kwargs)
    fixed = _fixed_arguments(str(schema))
    return any(name in fixed and _is_computed(value) for name, value in given.items())


@lru_cache(maxsize=1024)
def _fixed_arguments(schema: str) -> frozenset[str]:
    """Names of arguments that are `int` and not `SymInt`: only the text of a schema distinguishes them."""
    return frozenset(re.findall(r"\bint(?:\[\d*\])?\??\s+(\w+)", schema))


def _is_computed(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_is_computed(item) for item in value)
    return isinstance(value, Node)


def rewrite(scope: Scope, target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Node | None:
    """The call written with operators that take computed sizes; None where there is no such form."""
    rule = _RULES.get(target)
    return rule(scope, *args, **kwargs) if rule is not None else None


def _linspace(scope: Scope, start: float, end: float, steps: Any, **options: Any) -> Node:
    """start + arange(steps) * ((end - start) / max(steps - 1, 1))"""
    import operator

    dtype = options.get("dtype") or torch.get_default_dtype()
    gaps = scope.call(torch.sym_max, scope.call(operator.sub, steps, 1), 1)
    step = scope.call(_aten.reciprocal.default, scope.call(_aten.scalar_tensor.default, gaps, dtype=torch.float64))
    numbers = scope.call(_aten.arange.default, steps, dtype=torch.float64)
    scaled = scope.call(_aten.mul.Tensor, scope.call(_aten.mul.Tensor, numbers, step), end - start)
    return scope.call(_aten.to.dtype, scope.call(_aten.add.Tensor, scaled, start), dtype)


def _band(keeps_lower: bool) -> Callable[..., Node]:
    def build(scope: Scope, matrix: Node, diagonal: Any = 0) -> Node:
        """tril(x, d)  ->  x where column - row <= d, else 0"""
        rows = scope.call(_aten.arange.default, scope.call(_aten.sym_size.int, matrix, -2))
        columns = scope.call(_aten.arange.default, scope.call(_aten.sym_size.int, matrix, -1))
        apart = scope.call(
            _aten.sub.Tensor,
            scope.call(_aten.unsqueeze.default, columns, 0),
            scope.call(_aten.unsqueeze.default, rows, 1),
        )
        limit = scope.call(_aten.scalar_tensor.default, diagonal, dtype=torch.int64)
        outside = scope.call(_aten.gt.Tensor if keeps_lower else _aten.lt.Tensor, apart, limit)
        return scope.call(_aten.masked_fill.Scalar, matrix, outside, 0)

    return build


_RULES: dict[Any, Callable[..., Node]] = {
    _aten.linspace.default: _linspace,
    _aten.tril.default: _band(True),
    _aten.triu.default: _band(False),
}
