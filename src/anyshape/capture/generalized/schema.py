"""Operators that take a size only as a fixed number of Python, rewritten so that it can be computed.

torch.export bakes a size in where an operator's schema says `int` and not `SymInt`; nothing says so afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch.fx import Node

from anyshape.capture.generalized.scope import Scope

_aten = torch.ops.aten


def bakes(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a computed size stands where the schema takes fixed integers only."""
    schema = target._schema
    given = {argument.name: value for argument, value in zip(schema.arguments, args, strict=False)} | dict(kwargs)
    fixed = _fixed_arguments(str(schema))
    return any(name in fixed and _is_computed(value) for name, value in given.items())


@lru_cache(maxsize=1024)
def _fixed_arguments(schema: str) -> frozenset[str]:
    """Names of arguments that are `int` and not `SymInt`: only the text of a schema tells them apart."""
    return frozenset(re.findall(r"\bint(?:\[\d*\])?\??\s+(\w+)", schema))


def _is_computed(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_is_computed(item) for item in value)
    return isinstance(value, Node)


def rewrite(scope: Scope, target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Node | None:
    """The same by operators that take computed sizes; None where there is no such form."""
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
