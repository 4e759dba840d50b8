"""Double precision wherever torch would use its default dtype, in the running thread only.

    torch.zeros(3), torch.tensor(0.5)            made as float64
    torch.arange(3) / 7, torch.arange(3) * 0.5   computed in float64

torch.set_default_dtype does the same for the whole process, and would change the results of other threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from anyshape.modules.stands_for import standing

_WIDE = torch.float64
_WIDE_DTYPES = (torch.float64, torch.complex128)
_MAKERS = {torch.tensor, torch.as_tensor, torch.asarray}
_CHOOSERS = {torch.where, torch.Tensor.where}
_DRAWS = ("aten::rand", "aten::randn", "aten::normal")  # not to be run twice
Kwargs = Mapping[str, Any] | None


@contextmanager
def double_by_default() -> Iterator[None]:
    """Within this, the default dtype is float64 in this thread."""
    if torch.get_default_dtype() == _WIDE:
        yield
        return
    with standing([(vars(torch), "get_default_dtype", lambda: _WIDE)]), _Makers(), _Operators():
        yield


class _Makers(TorchFunctionMode):
    """Tensors of Python floats: torch rounds them before a dispatch mode sees them."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Kwargs = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in _MAKERS and kwargs.get("dtype") is None and args and not hasattr(args[0], "dtype"):
            holds = {type(leaf) for leaf in tree_leaves(args[0])}
            if float in holds and holds <= {float, int, bool}:
                kwargs["dtype"] = _WIDE
        if func in _CHOOSERS:
            args = tuple(torch.tensor(each, dtype=_WIDE) if isinstance(each, float) else each for each in args)
        return func(*args, **kwargs)


class _Operators(TorchDispatchMode):  # type: ignore[misc]
    """Operators that take neither a float tensor nor a dtype: their result has the default dtype, if it is a float."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Kwargs = None) -> Any:
        kwargs = dict(kwargs or {})
        if func._schema.name in _DRAWS and kwargs.get("dtype") is None and not any(map(_is_float, tree_leaves(args))):
            return func(*args, **{**kwargs, "dtype": _WIDE})
        result = func(*args, **kwargs)
        narrow = [leaf for leaf in tree_leaves(result) if _is_float(leaf) and leaf.dtype not in _WIDE_DTYPES]
        if not narrow or any(_is_float(leaf) or isinstance(leaf, torch.dtype) for leaf in tree_leaves((args, kwargs))):
            return result
        if any(argument.name == "dtype" for argument in func._schema.arguments):
            return func(*args, **{**kwargs, "dtype": _WIDE})
        with suppress(RuntimeError, TypeError, NotImplementedError):
            return func.overloadpacket(*tree_map(_widened, args), **tree_map(_widened, kwargs))
        return tree_map(lambda leaf: leaf.to(_WIDE) if _is_float(leaf) else leaf, result)


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _widened(value: Any) -> Any:
    return value.to(_WIDE) if isinstance(value, torch.Tensor) else value
