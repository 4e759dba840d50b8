"""Functions that look at values inside torch before they compute -> the same without the look.

`cov` and `corrcoef` ask whether there are enough observations, `one_hot` whether all classes are in range; a trace has no
values to answer with (seen to torch 2.13). Where eager would raise for what it sees, the file answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Function = Callable[..., Any]


def answers() -> dict[Any, Callable[..., Any]]:
    return {
        torch.cov: _cov,
        Tensor.cov: _cov,
        torch.corrcoef: _corrcoef,
        Tensor.corrcoef: _corrcoef,
        F.one_hot: _one_hot,
    }


def _cov(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    x = args[0] if args else kwargs["input"]
    is_weighed = kwargs.get("fweights") is not None or kwargs.get("aweights") is not None
    if is_weighed or not x.is_floating_point() or x.dim() > 2:
        return func(*args, **kwargs)
    return _covariance(x, kwargs.get("correction", 1))


def _covariance(x: Tensor, correction: int) -> Tensor:
    """Rows are variables, columns observations; one variable has a variance without axes."""
    rows = x if x.dim() == 2 else x.reshape(1, -1)
    apart = rows - rows.mean(1, keepdim=True)
    freedom = torch.sym_max(rows.shape[1] - correction, 0)
    # A tensor: Python would not divide by 0.
    products = (apart @ apart.mT) / (torch.zeros((), dtype=x.dtype, device=x.device) + freedom)
    return products.squeeze() if x.dim() == 2 else products.reshape(())


def _corrcoef(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    x = args[0] if args else kwargs["input"]
    if not x.is_floating_point() or x.dim() > 2:
        return func(*args, **kwargs)
    products = _covariance(x, 1)
    if products.dim() == 0:
        return products / products
    deviation = products.diagonal().sqrt()
    return (products / deviation[:, None] / deviation[None, :]).clamp(-1, 1)


def _one_hot(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
    if isinstance(classes, int) and classes < 1:
        return func(*args, **kwargs)  # as many as the greatest value says: no size of the inputs
    x = args[0] if args else kwargs.get("tensor", kwargs.get("input"))
    return (x.unsqueeze(-1) == torch.arange(classes, device=x.device)).to(torch.int64)
