"""Real numbers that stay open during capture: functions of math on open sizes, and floats that Python reads from tensors.

torch has symbolic functions for roots and angles, for others only sympy terms (seen to torch 2.13). A higher-order operator
is the one kind of callable of ours that a captured program may hold. A float read from a tensor goes on as a tensor without
axes, in double precision, and is promoted like a Python float:

    scale = float(x.abs().max())     ->     scale is x.abs().max() in double precision
    x / scale                        ->     of x's dtype, as with a float, and not of the wider one

A comparison of such a number is recorded as a question, like any other.

A size divided by a float is rounded down as Python does it: 11 // 1.1 is 9, since 1.1 is a bit more than a tenth of 11. torch
(seen to 2.13) takes the floor of the quotient, which is 10.

A function mode looks at the arguments of every operator: `tree_leaves` took a tenth of the time of Longformer's export, so that
`leaves_of` is quicker.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import sympy
import torch
from torch._ops import HigherOrderOperator
from torch.fx.experimental.proxy_tensor import get_proxy_mode, handle_sym_dispatch
from torch.fx.experimental.sym_node import SymNode
from torch.overrides import handle_torch_function, has_torch_function
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils._sympy.functions import make_opaque_unary_fn

from anyshape.intercept.patching import Patch, patched

_HALF = (torch.float16, torch.bfloat16)
_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter, torch.dtype, int, float, bool, str, slice, type(None)})


class OpenFunction(HigherOrderOperator):
    """A function of one number; of an open one it gives an open float."""

    def __init__(self, name: str, function: Callable[[float], float], term: Any = None) -> None:
        super().__init__(f"anyshape_{name}")
        self._function = function
        self._term = term or make_opaque_unary_fn(name)
        if term is None:
            # torch writes guards as code and runs them; of these terms its printer does not know how to.
            self._term._torch_sympystr = lambda own, printer: f"math.{name}({printer._print(own.args[0])})"

    @property
    def term_name(self) -> str:
        """The name of its terms' class in torch's symbolic expressions."""
        return str(self._term.__name__)

    def __call__(self, number: Any, /) -> Any:  # type: ignore[override]
        if not isinstance(number, (torch.SymInt, torch.SymFloat)):
            return self._function(number)
        if get_proxy_mode() is not None:
            return handle_sym_dispatch(self, (number,), {})
        node = torch.sym_float(number).node
        hint = None if node.hint is None else self._function(node.hint)
        return torch.SymFloat(SymNode(self._term(node.expr), node.shape_env, float, hint))


class _Rounded(sympy.Function):  # type: ignore[misc]
    """The nearest float32 of a number, as a term that torch does not simplify."""

    _torch_handler_name = "identity"  # for the range of its values

    @classmethod
    def eval(cls, number: Any) -> Any:
        return sympy.Float(_to_float32(float(number))) if number.is_Integer or number.is_Float else None

    def _torch_sympystr(self, printer: Any) -> str:  # guards are written as code, which torch runs
        return f"torch.ops.higher_order.anyshape_float32({printer._print(self.args[0])})"


def _to_float32(number: float) -> float:
    return float(np.float32(number))


OPEN_FLOAT32 = OpenFunction("float32", _to_float32, _Rounded)
OPEN_LOG = OpenFunction("log", math.log)
OPEN_LOG2 = OpenFunction("log2", math.log2)
OPEN_LOG10 = OpenFunction("log10", math.log10)
OPEN_EXP = OpenFunction("exp", math.exp)


def real_number(value: torch.Tensor) -> Any:
    """float(value), in a form that a torch function mode intercepts and may replace by a tensor."""
    if has_torch_function((value,)):
        return handle_torch_function(real_number, (value,), value)
    return float(value)


def whole_number(value: torch.Tensor) -> Any:
    """int(value), in a form that a torch function mode intercepts and may replace by a size, which int() itself may not."""
    if has_torch_function((value,)):
        return handle_torch_function(whole_number, (value,), value)
    return int(value)


def smaller(*values: Any) -> Any:
    """min(*values), as a function that a torch function mode may replace by a tensor."""
    tensors = tuple(value for value in values if isinstance(value, torch.Tensor))
    return handle_torch_function(smaller, tensors, *values) if has_torch_function(tensors) else min(*values)


def larger(*values: Any) -> Any:
    """max(*values), as a function that a torch function mode may replace by a tensor."""
    tensors = tuple(value for value in values if isinstance(value, torch.Tensor))
    return handle_torch_function(larger, tensors, *values) if has_torch_function(tensors) else max(*values)


def is_python_number(value: Any) -> bool:
    """Whether a value is a number that was read from a tensor, kept as a tensor."""
    return isinstance(value, torch.Tensor) and "is_python_number" in vars(value)


class RealNumbers:
    """The numbers that were asked so far, and what was computed from them alone."""

    MAKERS: ClassVar[set[Any]] = {torch.tensor, torch.as_tensor, torch.scalar_tensor}
    FILLS: ClassVar[dict[Any, int]] = {torch.full: 0, torch.full_like: 1, torch.Tensor.new_full: 1}
    """Functions that fill a new tensor with a number, and how many tensors stand before its shape."""

    def __init__(self) -> None:
        self._numbers: dict[int, torch.Tensor] = {}  # kept, so that no other tensor gets the same id

    def add(self, value: torch.Tensor) -> torch.Tensor:
        """A new float, of the value of a tensor with one element."""
        return self._register(value.reshape(()).to(torch.float64, copy=True))

    def _register(self, number: torch.Tensor) -> torch.Tensor:
        self._numbers[id(number)] = number
        number.is_python_number = True  # type: ignore[attr-defined]
        return number

    def call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The function's result, as if the numbers were Python floats."""
        tensors = tensors_of((args, kwargs)) if self._numbers else []
        others = [tensor for tensor in tensors if not self.has(tensor)]
        if len(others) == len(tensors):
            return func(*args, **kwargs)
        if func in self.MAKERS:
            return self._made(args[0] if args else kwargs["data"], kwargs.get("dtype"))
        if func in self.FILLS:
            return self._filled(self.FILLS[func], *args, **kwargs)
        if others:
            numbers = [tensor for tensor in tensors if self.has(tensor)]
            return self._beside(self._dtype_beside(numbers, others), func, args, kwargs)
        result = func(*args, **kwargs)
        is_number = isinstance(result, torch.Tensor) and result.dtype == torch.float64 and result.ndim == 0
        return self.add(result) if is_number else result

    def _dtype_beside(self, numbers: list[torch.Tensor], others: list[torch.Tensor]) -> torch.dtype:
        return dtype_beside(others)

    def _beside(
        self, dtype: torch.dtype, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Half precision and a float are computed in single precision, and rounded at the end, as torch does it."""
        is_in_place = func.__name__.endswith("_") and not func.__name__.endswith("__")
        wide = torch.float32 if dtype in _HALF and not is_in_place else dtype

        def taken(leaf: Any) -> Any:
            if self.has(leaf):
                return leaf.to(wide)
            return leaf.to(wide) if isinstance(leaf, torch.Tensor) and leaf.dtype == dtype != wide else leaf

        args, kwargs = tree_map(taken, (args, dict(kwargs)))
        result = func(*args, **kwargs)
        is_wide = lambda leaf: isinstance(leaf, torch.Tensor) and leaf.dtype == wide != dtype  # noqa: E731
        return tree_map(lambda leaf: leaf.to(dtype) if is_wide(leaf) else leaf, result)

    @property
    def has_any(self) -> bool:
        """Whether there is any number."""
        return bool(self._numbers)

    def has(self, value: Any) -> bool:
        """Whether a value is one of the numbers."""
        return id(value) in self._numbers

    def outputs_as_tensors(self, value: Any) -> Any:
        """A module's outputs, with its numbers as the tensors that Python floats become."""
        return tree_map(lambda leaf: leaf.to(_own_dtype(leaf)) if self.has(leaf) else leaf, value)

    def _made(self, value: Any, dtype: torch.dtype | None) -> torch.Tensor:
        dtype = dtype or _made_dtype(value)
        if isinstance(value, (list, tuple)):
            return torch.stack([self._made(item, dtype) for item in value])
        return value.to(dtype, copy=True) if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=dtype)

    def _filled(self, before: int, *args: Any, dtype: torch.dtype | None = None, **kwargs: Any) -> torch.Tensor:
        like = args[0] if before else None
        given = [*args[before:], *(kwargs[name] for name in ("size", "fill_value") if name in kwargs)]
        number = given[-1]
        shape = given[0] if len(given) > 1 else like.shape  # type: ignore[union-attr]
        dtype = dtype or (_own_dtype(number) if like is None else like.dtype)
        return number.to(dtype).expand(shape).clone()  # type: ignore[no-any-return]


def _own_dtype(number: Any) -> torch.dtype:
    """The dtype of the tensor that PyTorch makes of a number alone."""
    is_float = number.is_floating_point() if isinstance(number, torch.Tensor) else not isinstance(number, (bool, int))
    if is_float and not isinstance(number, torch.SymInt):
        return torch.get_default_dtype()
    is_bool = number.dtype == torch.bool if isinstance(number, torch.Tensor) else isinstance(number, bool)
    return torch.bool if is_bool else torch.int64


def _made_dtype(value: Any) -> torch.dtype:
    dtypes = {_own_dtype(leaf) for leaf in tree_leaves(value)}
    widest = torch.bool
    for dtype in dtypes:
        widest = torch.promote_types(widest, dtype)
    return widest


def dtype_beside(tensors: list[torch.Tensor]) -> torch.dtype:
    """The dtype in which an operation of these tensors and a Python float is computed."""
    floats = [tensor for tensor in tensors if tensor.is_floating_point() or tensor.is_complex()]
    dtype = torch.get_default_dtype() if not floats else floats[0].dtype
    for tensor in floats[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return dtype


@contextmanager
def floor_divisions_of_python() -> Iterator[None]:
    """Within this, `//` of an open size by a float is what Python computes."""
    with patched([_dividing(kind) for kind in (torch.SymInt, torch.SymFloat)]):
        yield


def _dividing(kind: type) -> Patch:
    own: Callable[[Any, Any], Any] = vars(kind)["__floordiv__"]

    def divide(number: Any, other: Any) -> Any:
        if isinstance(other, float) and other and math.isfinite(other):
            return _floor_divided(number, other)
        return own(number, other)

    return kind, "__floordiv__", divide


def _floor_divided(number: Any, by: float) -> Any:
    """The floor of the quotient, less one where the quotient was rounded up to a whole number."""
    quotient = math.floor(torch.sym_float(number) / by)
    high, low = _halves(by)
    over = math.copysign(1.0, by) * (
        (quotient * high - number) + quotient * low
    )  # of the sign of quotient * by - number
    return torch.sym_float(quotient - one_if_positive(math.ceil(over)))


def one_if_positive(number: Any) -> Any:
    """1 for a positive whole number, 0 for others, without a condition on sizes."""
    return torch.sym_min(torch.sym_max(number, 0), 1)


def _halves(number: float) -> tuple[float, float]:
    """Two floats of 26 bits whose sum is the number: products with whole numbers below 2**26 are exact."""
    scaled = (2.0**27 + 1) * number
    high = scaled - (scaled - number)
    return high, number - high


def leaves_of(values: Iterable[Any]) -> list[Any]:
    """The leaves of these values, in their order, as `tree_leaves` gives them."""
    found: list[Any] = []
    for value in values:
        kind = type(value)
        if kind in _PLAIN or isinstance(value, torch.Tensor):
            found.append(value)
        elif kind is tuple or kind is list:
            found += leaves_of(value)
        elif kind is dict:
            found += leaves_of(value.values())
        else:
            found += tree_leaves(value)
    return found


def tensors_of(values: Iterable[Any]) -> list[torch.Tensor]:
    """The tensors among these leaves."""
    return [leaf for leaf in leaves_of(values) if isinstance(leaf, torch.Tensor)]
