"""The operation that raised, and a tensor of the module that does not fit there: a table of positions, a mask.

The module is called once more under a mode that sees each torch function. The innermost function that raises is the one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

_PRODUCTS = ("linear", "matmul", "mm", "einsum", "conv")
_NOT_BY_BROADCASTING = (*_PRODUCTS, "embedding", "norm", "pool", "cat", "stack", "attention")


@dataclass(frozen=True)
class HeldTensor:
    """A tensor that the module holds: `self.pos` of shape (16, 8).

    `is_factor`: the operation is a product with it, which takes no part of it in its place.
    """

    name: str
    shape: tuple[int, ...]
    is_factor: bool = False


def find_misfit(module: torch.nn.Module, call: Callable[[], object]) -> HeldTensor | None:
    """The module's own tensor that does not broadcast with the others of the operation that raised, or is a factor in it.

    None without one. A tensor of the same shape that is made of held ones alone, `self.mask == 0`, counts as held.
    """
    watch = _Watch(dict(_held(module)))
    try:
        with watch:
            call()
    except Exception:  # the refusal that is looked at
        pass
    if any(part in watch.name for part in _PRODUCTS):
        factors = [(watch.name_of(tensor), tuple(tensor.shape)) for tensor in watch.raised_on]
        return next((HeldTensor(name, shape, is_factor=True) for name, shape in factors if name is not None), None)
    if any(part in watch.name for part in _NOT_BY_BROADCASTING):
        return None
    for tensor in watch.raised_on:
        others = [other for other in watch.raised_on if other is not tensor]
        name = watch.name_of(tensor)
        if name is not None and not all(_broadcasts(tensor.shape, other.shape) for other in others):
            return HeldTensor(name, tuple(tensor.shape))
    return None


def _held(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for prefix, part in module.named_modules():
        for name, value in {**vars(part), **part._parameters, **part._buffers}.items():
            if isinstance(value, torch.Tensor):
                yield f"{prefix}.{name}" if prefix else name, value


def _broadcasts(one: torch.Size, other: torch.Size) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(one), reversed(other), strict=False))


class _Watch(TorchFunctionMode):  # type: ignore[misc]
    """Follows held tensors through the functions of a call, up to the one that raises."""

    def __init__(self, held: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.name = ""
        self.raised_on: list[torch.Tensor] = []
        self._held = {id(tensor): (name, tensor) for name, tensor in held.items()}  # the tensor too: ids are used again

    def name_of(self, tensor: torch.Tensor) -> str | None:
        return self._held[id(tensor)][0] if id(tensor) in self._held else None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        try:
            result = func(*args, **(kwargs or {}))
        except Exception:
            if not self.raised_on:  # the innermost comes first
                self.name, self.raised_on = getattr(func, "__name__", "").lower(), given
            raise
        names = [self.name_of(tensor) for tensor in given]
        is_alike = isinstance(result, torch.Tensor) and names and result.shape == given[0].shape
        if is_alike and None not in names:
            self._held.setdefault(id(result), (str(names[0]), result))
        return result
