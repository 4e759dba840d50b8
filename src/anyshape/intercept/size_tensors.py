"""Small tensors while a module is captured: which have known values, and those computed from sizes, which Python reads.

    k = int(torch.sqrt(torch.tensor(n).float()))     torch: a number without a value     ->     here: trunc(sqrt(n)), a size
    rows = torch.arange(torch.tensor([32, 24])[0])   torch: rows has an unknown length   ->     here: rows has 32 elements

`SizeTensors` follows the elements of such tensors beside torch's own operators, from `torch.tensor` on. What is not followed
(see `tensor_arithmetic`), and a tensor that is written to, torch treats as any other.

torch's fake tensors keep the value of a tensor of one element, and here of up to 64. They forget it when a value that is not
known is written into the same memory, so the larger limit is as safe. Of a tensor and a float that is computed from sizes,
torch (to 2.13) would keep the value at the traced sizes, without a condition on them: here that value is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import SymBool, SymFloat, SymInt
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from anyshape.findings import Source
from anyshape.intercept.patching import patched
from anyshape.intercept.real_numbers import larger, leaves_of, real_number, smaller, tensors_of, whole_number
from anyshape.intercept.tensor_arithmetic import MOST_ELEMENTS, Elements, array_of, as_dtype, compute, truncated
from anyshape.modules.user_code import source_of_running_code

_MAKERS = {torch.tensor, torch.as_tensor, torch.scalar_tensor}
_FREEZE = {torch.as_tensor, torch.asarray, torch.Tensor.new_tensor}  # torch.export (to 2.13) has no open sizes in these
_DTYPES = (torch.int64, torch.float32, torch.float64)
_OPEN = (SymInt, SymFloat, SymBool)
_NUMBERS = (int, float, SymInt, SymFloat)
_ITEMS = {torch.Tensor.__getitem__, torch.Tensor.__setitem__}
_TAKE_SIZES = {
    "zeros",
    "ones",
    "empty",
    "arange",
    "view",
    "reshape",
    "expand",
    "repeat",
    "narrow",
    "new_zeros",
    "new_ones",
}
_ROUNDINGS = {"floor", "ceil", "trunc", "round"}
_INTEGER_READS = ("__int__", "__index__", "__invert__")


class Rounding(NamedTuple):
    """A line that rounds or compares a float of which torch's kernels need not give the last bit, and the symbols in it."""

    source: Source
    symbols: frozenset[str]


class SizeTensors(TorchFunctionMode):
    """Follows tensors of up to 64 numbers that are computed from sizes. `noted` gets the lines that round or compare a
    float of which torch's kernels need not give the last bit: no rule follows these from size to size."""

    def __init__(self, noted: list[Rounding]) -> None:
        super().__init__()
        self._noted = noted
        # By id: the tensor, which is kept so that no other gets its id, its version before anything writes to it, its elements.
        self._followed: dict[int, tuple[torch.Tensor, int, Elements]] = {}

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in _FREEZE and any(isinstance(leaf, _OPEN) for leaf in tree_leaves((args, kwargs))):
            with self:
                return _of_numbers(func, *args, **kwargs)
        if func in _MAKERS:
            return self._make(func, args, kwargs)
        name = getattr(func, "__name__", "")
        if func is torch.arange:
            return self._count_up(self._with_sizes(name, func, args), kwargs)
        if not self._followed or not (func in _ITEMS or self._has_any((args, kwargs))):
            return func(*args, **kwargs)
        if _writes(name, kwargs):
            result = func(*self._with_sizes(name, func, args), **kwargs)
            self._followed.clear()
            return result
        source = self._of(args[0]) if args else None
        if source is not None and _is_read(func, name):
            # A root or logarithm whose last bit is not known: Python may round or compare the number that it reads.
            is_known = not source.rough or func is whole_number
            return self._read(func, name, source) if is_known else func(*args, **kwargs)
        if func in (smaller, larger):
            return self._extreme(func, args)
        result = func(*self._with_sizes(name, func, args), **kwargs)
        parts = result if isinstance(result, (tuple, list)) and name == "unbind" else None
        if parts is not None and source is not None and args[1:] in ((), (0,)) and not kwargs:
            for part, values in zip(parts, source.values, strict=True):
                self._follow(part, Elements(array_of(values), source.dtype, source.rough, source.of_root))
        elif isinstance(result, torch.Tensor):
            self._follow(result, self._computed(name, args, kwargs, result))
        return result

    def _has_any(self, values: Any) -> bool:
        return any(id(each) in self._followed for each in tensors_of(values))

    def _make(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor) and result.dtype in _DTYPES and not tensors_of((result,))[1:]:
            try:
                values = array_of(tree_map(self._as_number, args[0] if args else kwargs.get("data", kwargs.get("s"))))
            except ValueError:  # no numbers, or none that follow from sizes
                return result
            if values.size <= MOST_ELEMENTS:
                to = result.dtype
                converted = [as_dtype(value, to) if to.is_floating_point else value for value in values.flat]
                if to.is_floating_point or all(isinstance(value, (int, SymInt)) for value in converted):
                    self._follow(result, Elements(_shaped(converted, values.shape), to))
        return result

    def _count_up(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> torch.Tensor:
        """`torch.arange`: as many whole numbers as are known, such as the axes `torch.arange(1, x.dim()).tolist()`."""
        result = torch.arange(*args, **kwargs)
        start, step = (0 if len(args) < 2 else args[0]), (args[2] if len(args) > 2 else 1)
        are_given = kwargs.keys().isdisjoint(("start", "step"))  # as arguments by place, or not at all
        are_whole = are_given and all(isinstance(each, (int, SymInt)) for each in (start, step))
        if are_whole and result.dtype == torch.int64 and isinstance(result.shape[0], int):
            values = [start + step * place for place in range(min(result.shape[0], MOST_ELEMENTS + 1))]
            self._follow(result, Elements(_shaped(values, (len(values),)), result.dtype))
        return result

    def _as_number(self, value: Any) -> Any:
        elements = self._of(value)
        if elements is not None and not elements.rough:
            return elements.values if elements.values.ndim else elements.values[()]
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "iuf" and value.size <= MOST_ELEMENTS:
            return np.array(value.tolist(), object)
        if not isinstance(value, _NUMBERS) or isinstance(value, bool):
            raise ValueError("no number")
        return value

    def _computed(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: torch.Tensor
    ) -> Elements | None:
        if result.dtype == torch.bool and not all(isinstance(arg, (torch.Tensor, int, SymInt)) for arg in args):
            return None
        given = tree_map(lambda leaf: leaf if self._of(leaf) is None else self._of(leaf), args)
        if len(tensors_of((given, kwargs))):
            return None
        kwargs = {} if name in ("to", "type", "float", "double", "int", "long") else kwargs
        own = name.strip("_")
        try:
            found = compute(own, given, kwargs, result.dtype)
        except (TypeError, ValueError, ArithmeticError):  # no such form of the function, or no number at these sizes
            return None
        leaves = [leaf for leaf in (*given,) if isinstance(leaf, Elements)]
        decides = own in _ROUNDINGS or not result.dtype.is_floating_point
        if found is not None and decides and any(leaf.rough and not leaf.of_root for leaf in leaves):
            self._note(leaves)
        return found

    def _follow(self, tensor: torch.Tensor, elements: Elements | None) -> None:
        if elements is None or elements.dtype != tensor.dtype or elements.values.size > MOST_ELEMENTS:
            return
        if all(isinstance(size, int) for size in tensor.shape) and elements.values.shape == tuple(tensor.shape):
            self._followed[id(tensor)] = (tensor, tensor._version, elements)

    def _of(self, value: Any) -> Elements | None:
        tensor, version, elements = self._followed.get(id(value), (None, 0, None))
        return elements if tensor is not None and tensor._version == version else None

    def _read(self, func: Callable[..., Any], name: str, source: Elements) -> Any:
        """What Python reads: a number, a list of numbers or a truth."""
        if name == "tolist":
            return source.values.tolist()
        if source.values.size != 1:
            raise RuntimeError(f"a Tensor with {source.values.size} elements cannot be converted to Scalar")
        value = source.values.reshape(())[()]
        if func is real_number:
            return torch.sym_float(value)
        if source.rough and not source.of_root:
            self._note([source])
        if func is whole_number:
            return truncated(value)
        if name == "item":
            return torch.sym_float(value) if source.dtype.is_floating_point else value
        if name == "__index__":
            return int(value)
        return bool(value) if isinstance(value, (bool, SymBool)) else bool(value != 0)

    def _extreme(self, func: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """min() or max() of tensors."""
        elements = [self._of(arg) for arg in args]
        if all(elements) and len({each.dtype for each in elements if each is not None}) == 1:
            chosen = args[0]
            for other in args[1:]:
                taken = torch.minimum if func is smaller else torch.maximum
                chosen = self.__torch_function__(taken, (), (chosen, other))
            return chosen
        return func(*args)  # of a tensor and a number, torch goes on in the precision of the one that is chosen

    def _with_sizes(self, name: str, func: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, with numbers in place of followed tensors where torch takes sizes or the ends of slices."""
        if func in _ITEMS:
            index = args[1]
            parts = tuple(map(self._bounds, index)) if isinstance(index, tuple) else self._bounds(index)
            return (args[0], parts, *args[2:])
        if name.strip("_") not in _TAKE_SIZES:
            return args
        first = 0 if name in ("zeros", "ones", "empty", "arange") else 1
        return (*args[:first], *tree_map(self._size, args[first:]))

    def _bounds(self, part: Any) -> Any:
        if not isinstance(part, slice):
            return part
        return slice(*(self._size(end) for end in (part.start, part.stop, part.step)))

    def _size(self, value: Any) -> Any:
        elements = self._of(value)
        is_whole = elements is not None and elements.dtype == torch.int64 and elements.values.size == 1
        return elements.values.reshape(())[()] if elements is not None and is_whole else value

    def _note(self, rounded: Sequence[Elements]) -> None:
        source = source_of_running_code(3)
        if source is None:
            return
        numbers = [value for elements in rounded for value in elements.values.flat]
        open_numbers = [value for value in numbers if isinstance(value, (SymInt, SymFloat))]
        symbols = frozenset(symbol.name for value in open_numbers for symbol in value.node.expr.free_symbols)
        if Rounding(source, symbols) not in self._noted:
            self._noted.append(Rounding(source, symbols))


def _of_numbers(func: Callable[..., Any], *args: Any, **kwargs: Any) -> torch.Tensor:
    """A tensor of numbers among which are open sizes, by the function that torch.export has in place of `torch.tensor`."""
    from torch import _refs

    given: dict[str, Any] = {**kwargs}
    given.pop("copy", None)
    if func is torch.Tensor.new_tensor:
        given = {"dtype": args[0].dtype, "device": args[0].device, **given}
        args = args[1:]
    data = args[0] if args else given.pop("data", given.pop("obj", None))
    return _refs.tensor(data, **dict(zip(("dtype", "device"), args[1:], strict=False)), **given)  # type: ignore[no-any-return]


def _shaped(values: list[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)


def _is_read(func: Callable[..., Any], name: str) -> bool:
    return func in (whole_number, real_number) or name in ("item", "tolist", "__bool__", "is_nonzero", "__index__")


def _writes(name: str, kwargs: Mapping[str, Any]) -> bool:
    if name == "detach_":  # part of torch.tensor in a capture
        return False
    in_place = (name.endswith("_") and not name.endswith("__")) or name == "__setitem__"
    return in_place or "out" in kwargs or (name.startswith("__i") and name not in _INTEGER_READS)


@contextmanager
def small_constants_known() -> Iterator[None]:
    """Enter around `torch.export.export(..., strict=False)`."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    own = FakeTensorMode._dispatch_impl
    replaced = [
        (FakeTensorMode, "may_turn_const", _may_be_known),
        (FakeTensorMode, "_dispatch_impl", _without_values_of_sizes(own)),
    ]
    with patched(replaced):
        yield


def _may_be_known(mode: Any, tensor: Any) -> bool:
    """Like torch's own method, with another limit."""
    from torch._subclasses.meta_utils import is_sparse_any

    return (
        tensor.numel() <= MOST_ELEMENTS
        and not is_sparse_any(tensor)
        and not mode.is_our_fake(tensor)
        and tensor.device.type != "meta"
    )


def _without_values_of_sizes(own: Callable[..., Any]) -> Callable[..., Any]:
    """torch's own method, to which no tensor has a known value in a call with an open float: torch looks for open ints only."""
    from torch._subclasses.fake_tensor import FakeTensor

    def dispatch(mode: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        leaves = leaves_of((args, kwargs))
        if not any(isinstance(leaf, torch.SymFloat) for leaf in leaves):
            return own(mode, func, types, args, kwargs)
        known = [leaf for leaf in leaves if isinstance(leaf, FakeTensor) and leaf.constant is not None]
        values = [leaf.constant for leaf in known]
        if func._schema.is_mutable:
            for value in values:
                mode.fake_tensor_converter.invalidate_constant_aliases(value)
            return own(mode, func, types, args, kwargs)
        for leaf in known:
            leaf.constant = None
        try:
            return own(mode, func, types, args, kwargs)
        finally:
            for leaf, value in zip(known, values, strict=True):
                leaf.constant = value

    return dispatch


def known_number(value: Any) -> Any:
    """The Python number that a tensor of one element is known to hold; any other value as it is."""
    from torch._subclasses.fake_tensor import FakeTensor

    known = value.constant if isinstance(value, FakeTensor) else None
    return value if known is None or known.numel() != 1 else known.item()
