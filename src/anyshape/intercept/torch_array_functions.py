"""torch functions that take or return numpy arrays, made to work on open arrays (see `open_arrays`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import torch
from torch._subclasses.fake_tensor import is_fake
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from anyshape.intercept.open_arrays import OpenArray, as_tensors, open_array
from anyshape.intercept.patching import StandsFor

_MAKERS = {torch.tensor, torch.as_tensor, torch.asarray}
_CLASSES = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "LongTensor": torch.int64,
    "BoolTensor": torch.bool,
}


class ArraysAsTensors(TorchFunctionMode):
    """Open arrays in torch's functions are tensors, and an array that a tensor without values gives is an open one."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is torch.Tensor.numpy and is_fake(args[0]):
            return open_array(args[0])
        if any(isinstance(leaf, OpenArray) for leaf in tree_leaves((args, kwargs))):
            args, kwargs = as_tensors((args, dict(kwargs or {})))
            if func in _MAKERS and isinstance(args[0], torch.Tensor):
                return args[0].to((kwargs or {}).get("dtype") or args[0].dtype, copy=func is torch.tensor)
        return func(*args, **(kwargs or {}))


class OpenTorch:
    """The module torch, with functions that take open arrays as well."""

    def __getattr__(self, name: str) -> Any:
        return _array_takers().get(name) or getattr(torch, name)


def open_torch(value: Any) -> Any:
    """What replaces torch, or its `from_numpy`, in user code; None for anything else."""
    if value is torch:
        return OpenTorch()
    return _array_takers()["from_numpy"] if value is torch.from_numpy else None


@lru_cache(maxsize=1)
def _array_takers() -> dict[str, Any]:
    """Functions of torch on arrays that no function mode intercepts, in a form that takes open arrays too, by name."""
    from_numpy = torch.from_numpy

    def open_from_numpy(array: Any) -> torch.Tensor:
        return array.tensor if isinstance(array, OpenArray) else from_numpy(array)

    classes = {name: _open_class(getattr(torch, name), dtype) for name, dtype in _CLASSES.items()}
    return {"from_numpy": open_from_numpy, **classes}


def _open_class(own: type, dtype: torch.dtype) -> StandsFor:
    def make(cls: type, *args: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], OpenArray):
            return args[0].tensor.to(dtype, copy=True)
        return own(*args)

    return StandsFor(f"torch.{own.__name__}", (), {"__new__": make}, own=own)  # torch reads its dtype off the name
