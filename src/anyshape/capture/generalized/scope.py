"""A graph under construction: names -> sizes, expressions -> arithmetic on sizes, floats -> arithmetic on tensors.

torch.onnx divides integers towards zero where Python rounds down, so a numerator that may be negative is split into its
positive and its negative side. Floats are tensors of no axes, because torch.onnx has no roots and logarithms of sizes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Graph, Node

from anyshape.capture.generalized.fit_reals import Part, Real
from anyshape.domain import Domain, Expr, Number, Op, Ref, range_of

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


class Unreadable(Exception):
    """No axis of the inputs tells the size of a dim."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


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
