"""Other runs of the module that are as legal: where torch leaves the order of equal values open, another order.

`topk`, `sort` without `stable`, `kthvalue`, `median`, `mode` and torchvision's `nms` choose among equal values as their kernel
happens to. The module runs again with the first, and with the last, of the equal ones; a file that agrees with one of these
runs is right. `argmax` and `max` along an axis are not among them: torch documents that they take the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from anyshape.verify.reference import Answer, CallInputs, Reference

_ONE_OF_EQUALS = {"kthvalue", "median", "nanmedian", "mode"}


def other_orders(reference: Reference, inputs: CallInputs) -> Iterator[Answer]:
    """The module's answers with the first, then with the last of equal values; none where it chooses nothing."""
    for takes_last in (False, True):
        order = _Order(takes_last)
        with order:
            answer = reference.run(inputs)
        if not order.is_used:
            return
        if isinstance(answer, Answer):
            yield answer


class _Order(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self, takes_last: bool) -> None:
        super().__init__()
        self._takes_last = takes_last
        self.is_used = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        result = func(*args, **given)
        name = func.name().rpartition("::")[2].partition(".")[0]
        named = {each.name: value for each, value in zip(func._schema.arguments, args, strict=False)} | given
        if name == "topk":
            return self._top(named)
        if name == "sort" and not named.get("stable"):
            return self._sorted(named["self"], named.get("dim", -1), bool(named.get("descending", False)))
        if name in _ONE_OF_EQUALS and isinstance(result, tuple):
            return self._one_of_equals(named["self"], named.get("dim", -1), bool(named.get("keepdim", False)), result)
        if func.name() == "torchvision::nms":
            return self._suppressed(func, *args)
        return result

    def _sorted(self, x: torch.Tensor, dim: int, descending: bool) -> tuple[torch.Tensor, torch.Tensor]:
        self.is_used = True
        if not self._takes_last or x.dim() == 0:
            values, indices = torch.sort(x, dim=dim, descending=descending, stable=True)
            return values, indices
        values, indices = torch.sort(x.flip(dim), dim=dim, descending=descending, stable=True)
        return values, x.shape[dim] - 1 - indices

    def _top(self, named: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        x, dim = named["self"], named.get("dim", -1)
        values, indices = self._sorted(x, dim, bool(named.get("largest", True)))
        if x.dim() == 0:
            return values, indices
        return values.narrow(dim, 0, named["k"]), indices.narrow(dim, 0, named["k"])

    def _one_of_equals(
        self, x: torch.Tensor, dim: int, keepdim: bool, result: tuple[torch.Tensor, ...]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        self.is_used = True
        values, indices = result[0], result[1]
        if x.dim() == 0:
            return values, indices
        wide = values if keepdim else values.unsqueeze(dim)
        equal = ((x == wide) | (x.isnan() & wide.isnan())).to(torch.int8)
        first = equal.argmax(dim, keepdim=keepdim)
        return values, x.shape[dim] - 1 - equal.flip(dim).argmax(dim, keepdim=keepdim) if self._takes_last else first

    def _suppressed(self, func: Any, boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> Any:
        self.is_used = True
        if not self._takes_last:
            return func(boxes, scores, threshold)
        return boxes.shape[0] - 1 - func(boxes.flip(0), scores.flip(0), threshold)
