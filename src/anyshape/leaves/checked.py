"""torch functions that check values before they compute -> the same functions without the check.

`cov` and `corrcoef` ask whether there are enough observations, `one_hot` whether all classes are in range,
`gaussian_nll_loss` whether a variance is negative; a trace has no values to check (seen to torch 2.13). Where eager
would raise for what it sees, the file answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import SymInt, Tensor

Function = Callable[..., Any]


def replacements() -> dict[Any, Callable[..., Any]]:
    return {
        torch.cov: _cov,
        Tensor.cov: _cov,
        torch.corrcoef: _corrcoef,
        Tensor.corrcoef: _corrcoef,
        F.one_hot: _one_hot,
        F.gaussian_nll_loss: _gaussian_nll_loss,
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


def _gaussian_nll_loss(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Without the question whether a variance is negative; such a one is clamped."""
    usual = {"full": False, "eps": 1e-6, "reduction": "mean"}
    given = {**usual, **kwargs, **dict(zip(("input", "target", "var", *usual), args, strict=False))}
    x, var, reduction = given["input"], given["var"], given["reduction"]
    if not isinstance(var, Tensor) or x.dim() - var.dim() not in (0, 1) or reduction not in ("none", "mean", "sum"):
        return func(*args, **kwargs)
    var = (var if var.dim() == x.dim() else var.unsqueeze(-1)).clamp(min=given["eps"])
    loss = 0.5 * (torch.log(var) + (x - given["target"]) ** 2 / var)
    loss = loss + 0.5 * math.log(2 * math.pi) if given["full"] else loss
    return {"none": loss.clone, "mean": loss.mean, "sum": loss.sum}[reduction]()


def _one_hot(func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
    x = args[0] if args else kwargs.get("tensor", kwargs.get("input"))
    if isinstance(classes, int) and classes < 1:  # as many as the greatest value says
        if classes != -1 or not isinstance(x.numel(), SymInt):
            return func(*args, **kwargs)
        classes = x.max().item() + 1
        torch._check(classes >= 0)
    return (x.unsqueeze(-1) == torch.arange(classes, device=x.device)).to(torch.int64)
