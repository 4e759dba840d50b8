"""Watch a run of the module, and keep what each operator that picks positions by value chose from.

    scores.topk(8).indices   ->   Choice(values=scores, axis=-1, indices=…, each_once=True)

`numbers` are those of the inputs: values that are all among them have not been rounded on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from anyshape.runtime.child_messages import Array
from anyshape.verify.compare import is_float, widen
from anyshape.verify.reference import CallInputs
from anyshape.verify.tensors import map_tensors, to_array

_ONE_OF_MANY = {"argmax", "argmin", "max", "min", "kthvalue", "median", "nanmedian", "mode"}
EACH_ONCE = {"sort", "topk"}  # argsort is sort to a dispatcher
_FIRST_OF_EQUALS = {"argmax", "argmin", "max", "min"}
_FEW = 16
_KEPT_BYTES = 512 * 2**20


@dataclass(frozen=True, eq=False)
class Choice:
    """What an operator chose from, along which axis, and the positions that it chose, as it gave them.

    `descending` and `is_stable`: how an operator that gives each position once puts the values in order.
    """

    values: Array
    axis: int
    indices: Array
    each_once: bool
    takes_first: bool
    descending: bool = False
    is_stable: bool = False
    rounding: Array | float = 0.0
    """How far rounding moved the values, for each line along the axis."""

    def is_given_as(self, expected: Array) -> bool:
        """Whether an output of the module is these positions."""
        is_like = expected.dtype.kind in "iu" and self.indices.size == expected.size
        return is_like and np.array_equal(self.indices.reshape(-1), expected.reshape(-1))


Product = tuple[Any, torch.Tensor | None]
"""A convolution or a product of matrices, and what it gave; None where that is too large to be kept."""


class Watched:
    """All choices of one run of the module, in the order of the calls.

    `products` are what was computed before anything was put in order: another order of that has the same ones.
    """

    def __init__(self, run: Callable[[CallInputs], object], inputs: CallInputs) -> None:
        self.products: list[Product] = []
        self.choices = watch_choices(run, inputs, self.products)
        self._numbers = InputNumbers(inputs)
        self._exact: dict[int, bool] = {}

    def is_exact(self, place: int) -> bool:
        """Whether no rounding has touched the values of the choice at this place: no floats, or numbers of the inputs."""
        if place not in self._exact:
            values = self.choices[place].values
            self._exact[place] = not is_float(values) or self._numbers.have(values)
        return self._exact[place]


def watch_choices(
    run: Callable[[CallInputs], object], inputs: CallInputs, products: list[Product] | None = None
) -> list[Choice]:
    """What operators chose in one run, in the order of the calls; `products` are added to that list."""
    watching = _Watching(products)
    with watching:
        run(inputs)
    return watching.choices


class InputNumbers:
    """The magnitudes of all numbers in the inputs, and 0 and 1."""

    def __init__(self, inputs: CallInputs) -> None:
        self._inputs = inputs

    def have(self, values: Array) -> bool:
        """Whether all of these, without their signs, are among them. Values that were computed show it at the first few."""
        few = np.abs(widen(values.reshape(-1)[:_FEW]))
        if not all(any((given == each).any() for given in self._given) for each in few):
            return False
        return bool(np.isin(np.abs(widen(values)), self._sorted).all())

    @cached_property
    def _given(self) -> list[Array]:
        found: list[Array] = [np.array([0.0, 1.0])]

        def look(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.is_floating_point() and tensor.element_size() > 1:
                found.append(tensor.detach().abs().double().cpu().numpy())
            return tensor

        map_tensors(self._inputs, look)
        return found

    @cached_property
    def _sorted(self) -> Array:
        return np.unique(np.concatenate([np.unique(given) for given in self._given]))


def base_name(func: Any) -> str:
    """`topk` of `aten::topk.values`."""
    return str(func.name()).rpartition("::")[2].partition(".")[0]


def is_product(func: Any) -> bool:
    """Whether an operator is a convolution or a product of matrices, which take most of the time of many modules."""
    return getattr(func, "_overloadpacket", None) in flop_registry


class _Watching(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self, products: list[Product] | None) -> None:
        super().__init__()
        self.choices: list[Choice] = []
        self._products = products
        self._left = _KEPT_BYTES

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = base_name(func)
        if name in EACH_ONCE:
            self._products = None
        elif self._products is not None and is_product(func):
            self._products.append((func, self._kept(result)))
        if name in _ONE_OF_MANY or name in EACH_ONCE:
            with suppress(Exception):  # a form of the operator that chooses nothing, such as max of two tensors
                self.choices.extend(_choices(func, name, args, kwargs or {}, result))
        return result

    def _kept(self, result: Any) -> torch.Tensor | None:
        if type(result) is not torch.Tensor or result.nbytes > self._left:
            return None
        self._left -= result.nbytes
        return result.clone()  # later operators may write into it


def _choices(func: Any, name: str, args: Any, kwargs: Any, result: Any) -> Iterator[Choice]:
    named = {argument.name: value for argument, value in zip(func._schema.arguments, args, strict=False)} | dict(kwargs)
    given, axis = named["self"], named.get("dim", None if name.startswith("arg") else -1)
    indices = result if isinstance(result, torch.Tensor) else result[-1]
    if indices.dtype is not torch.int64:
        return
    values = to_array(given.reshape(-1) if axis is None or given.dim() == 0 else given)
    place = 0 if axis is None or given.dim() == 0 else int(axis) % given.dim()
    yield Choice(
        values,
        place,
        to_array(indices),
        name in EACH_ONCE,
        name in _FIRST_OF_EQUALS,
        bool(named.get("largest", True) if "k" in named else named.get("descending", False)),
        bool(named.get("stable")),
    )
