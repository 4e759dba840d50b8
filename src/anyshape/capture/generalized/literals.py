"""Arguments that are floats of the sizes, in operators that take a Python number: the form that takes a tensor instead.

mul.Scalar(x, 1/sqrt(seq))  ->  mul.Tensor(x, tensor)
full(shape, 1/seq)          ->  tensor.expand(shape)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from anyshape.capture.generalized.scope import Scope

_aten = torch.ops.aten

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


class NoTensorForm(Exception):
    """The operator takes this argument as a Python number only."""


def takes_tensor(target: Any, position: int) -> bool:
    """Whether the argument at this position is a tensor in the schema, so that a tensor of no axes may stand for it."""
    arguments = target._schema.arguments
    return position < len(arguments) and "Tensor" in str(arguments[position].type)


def call_with_tensors(
    scope: Scope, target: Any, args: Sequence[Any], kwargs: dict[str, Any], shape: Sequence[Any], dtype: torch.dtype
) -> Any:
    """The call where some arguments are tensors that the operator wants as numbers. Raises NoTensorForm.

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
