"""numpy's arrays and functions on sizes that are open: what numpy would compute, recorded as torch's operators.

    np.sin(np.arange(T) / 3)     numpy: wants a real number for T     ->     here: arange, div and sin of torch, T still a size

`torch._numpy` is numpy written in torch's operators. An OpenArray implements numpy's own protocols with it, so that arrays
and open arrays meet in any function; functions that make arrays out of sizes are reached through OpenNumpy, a name for numpy.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from functools import reduce
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves, tree_map

from anyshape.intercept.array_functions import FUNCTIONS, SIZES, number_as_array, torch_numpy
from anyshape.intercept.real_numbers import OPEN_EXP, OPEN_LOG, OPEN_LOG2, OPEN_LOG10

_METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")  # of a ufunc


class OpenArray(np.lib.mixins.NDArrayOperatorsMixin):
    """A tensor with the interface of a numpy array."""

    def __init__(self, array: Any) -> None:
        self._array = array

    @property
    def tensor(self) -> torch.Tensor:
        """The tensor that it is."""
        return self._array.tensor  # type: ignore[no-any-return]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of numpy, since the user's code compares it with numpy's."""
        return np.dtype(self._array.dtype.name)

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__":
            raise TypeError(_unfollowed(f"numpy.{function.__name__}.{method}"))
        out = kwargs.pop("out", ())
        result = _computed(function, inputs, kwargs)
        if result is NotImplemented:
            raise TypeError(_unfollowed(f"numpy.{function.__name__}"))
        if not out:
            return result
        out[0].tensor.copy_(result.tensor)
        return out[0]

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        result = _computed(function, args, kwargs)
        if result is NotImplemented:
            raise TypeError(_unfollowed(f"{function.__module__}.{function.__name__}"))
        return result

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = as_tensors((tuple(args), dict(kwargs or {})))
        return function(*args, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        _check_index(index)
        return _opened(self._array[_unopened(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        _check_index(index)
        self._array[_unopened(index)] = _unopened(value)

    def __len__(self) -> int:
        return len(self._array)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._array, name)
        if not callable(found):
            return _opened(found)
        return lambda *args, **kwargs: _opened(found(*_unopened(args), **_unopened(kwargs)))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("an array that is made of open sizes has no values yet")

    def __bool__(self) -> bool:
        return bool(self._array)

    def __int__(self) -> int:
        return int(self._array)

    def __float__(self) -> float:
        return float(self._array)


class OpenNumpy:
    """The module numpy, or one inside it, with functions that leave sizes open."""

    def __init__(self, module: ModuleType = np) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if isinstance(value, ModuleType):
            return value if name == "random" else OpenNumpy(value)
        return value if isinstance(value, type) or not callable(value) else open_function(value)


def open_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numpy's, which takes open sizes and arrays as well."""

    def opened(*args: Any, **kwargs: Any) -> Any:
        leaves = tree_leaves((args, kwargs))
        if not any(isinstance(leaf, (*SIZES, OpenArray)) for leaf in leaves):
            return function(*args, **kwargs)
        result = NotImplemented
        if not kwargs and not any(isinstance(leaf, (OpenArray, np.ndarray)) for leaf in leaves):
            result = _of_sizes(function, args, leaves)
        if result is NotImplemented:
            result = _computed(function, args, kwargs)
        return function(*args, **kwargs) if result is NotImplemented else result

    if isinstance(function, np.ufunc):
        opened.__dict__.update({name: getattr(function, name) for name in _METHODS})
    return opened


def as_tensors(value: Any) -> Any:
    """The value with tensors in place of open arrays."""
    return tree_map(lambda leaf: leaf.tensor if isinstance(leaf, OpenArray) else leaf, value)


def open_array(tensor: torch.Tensor) -> OpenArray:
    """The tensor as an array."""
    return OpenArray(torch_numpy.asarray(tensor))


def open_numpy(value: Any) -> Any:
    """The replacement of numpy, of a module inside it or of one of its functions; None for anything else."""
    if type(value).__module__.partition(".")[0] not in ("builtins", "numpy"):
        return None  # an object of another library computes its attributes, or raises
    if isinstance(value, ModuleType) and value.__name__ in ("numpy", "numpy.fft", "numpy.linalg"):
        return OpenNumpy(value)
    is_own = isinstance(value, np.ufunc) or getattr(value, "__module__", None) == "numpy"
    is_function = callable(value) and hasattr(value, "__name__") and not isinstance(value, type)
    return open_function(value) if is_own and is_function else None


def _of_sizes(function: Callable[..., Any], args: tuple[Any, ...], leaves: list[Any]) -> Any:
    """A number computed from numbers: still a size, where torch can express it."""
    name = getattr(function, "__name__", "")
    if name in _FOLDS and len(args) == 1 and leaves:
        return reduce(_FOLDS[name], leaves)
    if name in _NUMBERS and not any(isinstance(arg, (list, tuple)) for arg in args):
        return _NUMBERS[name](*args)
    return NotImplemented


def _computed(function: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
    """What torch's numpy makes of it; NotImplemented where it has no such function."""
    name = function.__name__
    place: Any = torch_numpy
    for part in (getattr(function, "__module__", None) or "numpy").split(".")[1:]:
        place = getattr(place, part, None) if part in ("fft", "linalg") else place
    found = FUNCTIONS.get(name) or getattr(place, name, None)
    if found is None:
        return NotImplemented
    taken = [number_as_array(arg) for arg in args] if isinstance(function, np.ufunc) else args
    result = found(*_unopened(taken), **_unopened(dict(kwargs)))
    return _opened(_of_dtypes(result, _example(function, args, kwargs)))


def _unfollowed(name: str) -> str:
    return f"{name} is not followed on an array that is computed from open sizes or from inputs"


def _example(function: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
    """What numpy itself gives, at the sizes of the trace; None where it cannot be known."""
    try:
        args, kwargs = tree_map(_stand_in, (list(args), dict(kwargs)))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **kwargs)
    except Exception:
        return None


def _stand_in(leaf: Any) -> Any:
    if isinstance(leaf, OpenArray):
        return np.ones([_stand_in(size) for size in leaf.tensor.shape], leaf.dtype)
    if isinstance(leaf, slice):
        return slice(*map(_stand_in, (leaf.start, leaf.stop, leaf.step)))
    return leaf.node.hint if isinstance(leaf, SIZES) else leaf


def _of_dtypes(result: Any, example: Any) -> Any:
    """The result in numpy's dtypes: torch's numpy takes Python floats for less than they are."""
    if isinstance(result, (list, tuple)) and isinstance(example, (list, tuple)):
        return type(result)(_of_dtypes(*pair) for pair in zip(result, example, strict=True))
    is_array = isinstance(result, torch_numpy.ndarray) and isinstance(example, (np.ndarray, np.generic))
    return result.astype(torch_numpy.dtype(example.dtype.name)) if is_array else result


def _opened(value: Any) -> Any:
    return tree_map(lambda leaf: OpenArray(leaf) if isinstance(leaf, torch_numpy.ndarray) else leaf, value)


def _unopened(value: Any) -> Any:
    return tree_map(_unopened_leaf, value)


def _unopened_leaf(leaf: Any) -> Any:
    if isinstance(leaf, OpenArray):
        return leaf._array
    if isinstance(leaf, slice):
        return slice(*(_unopened_leaf(part) for part in (leaf.start, leaf.stop, leaf.step)))
    if isinstance(leaf, np.dtype) or (isinstance(leaf, type) and issubclass(leaf, np.generic)):
        return torch_numpy.dtype(np.dtype(leaf).name)
    return leaf


def _check_index(index: Any) -> None:
    """Raise for a step backwards beside None or ...: torch's numpy turns another axis round (seen in torch 2.13)."""
    items = index if isinstance(index, tuple) else ()
    is_backwards = any(isinstance(item, slice) and isinstance(item.step, int) and item.step < 0 for item in items)
    if is_backwards and any(item is None or item is Ellipsis for item in items):
        raise NotImplementedError("a step backwards beside None or ... in an index")


_FOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "prod": lambda first, second: first * second,
    "sum": lambda first, second: first + second,
    **dict.fromkeys(("max", "amax"), torch.sym_max),
    **dict.fromkeys(("min", "amin"), torch.sym_min),
}
_NUMBERS: dict[str, Callable[..., Any]] = {
    "sqrt": torch._sym_sqrt,  # type: ignore[attr-defined]
    "ceil": lambda number: torch.sym_float(math.ceil(number)),
    "floor": lambda number: torch.sym_float(math.floor(number)),
    "maximum": torch.sym_max,
    "minimum": torch.sym_min,
    **dict.fromkeys(("abs", "absolute"), abs),
    "log": OPEN_LOG,
    "log2": OPEN_LOG2,
    "log10": OPEN_LOG10,
    "exp": OPEN_EXP,
}
