"""Function modes that find the values which a function reads besides its arguments, and put others in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from anyshape.intercept.python_numbers import map_slices

Named = Mapping[str, Any] | None

_MAKERS = {torch.tensor, torch.as_tensor, torch.asarray}


class Recorded:
    """What the captures that are under way have recorded: that of the whole, and those of functions inside functions."""

    def __init__(self, tracers: Sequence[Any] = ()) -> None:
        self.tracers = tuple(tracers)

    def has_tensor(self, tensor: torch.Tensor) -> bool:
        """Whether one of them has recorded a tensor."""
        from torch.fx.experimental.proxy_tensor import has_proxy_slot

        return any(has_proxy_slot(tensor, tracer) for tracer in self.tracers)

    def has_symbol(self, symbol: Any) -> bool:
        """Whether one of them has recorded a size."""
        return any(symbol in tracer.sympy_expr_tracker for tracer in self.tracers)


class Reading(TorchFunctionMode):
    """Sees every torch function that is called while it is entered.

    `free` has the tensors, by id, that were read and are recorded, or held by Python. `constants` are those made of Python
    numbers, in order. `symbols` are recorded, too.
    """

    def __init__(self, recorded: Recorded) -> None:
        super().__init__()
        self.free: dict[int, torch.Tensor] = {}
        self.constants: list[torch.Tensor] = []
        self.symbols: dict[Any, None] = {}
        self._recorded = recorded

    def note(self, values: Any) -> None:
        """Note that the function reads these values."""
        for leaf in _leaves(values):
            if isinstance(leaf, torch.Tensor):
                if self._recorded.has_tensor(leaf) or (self._recorded.tracers and _is_held_by_python(leaf)):
                    self.free[id(leaf)] = leaf
            elif isinstance(leaf, torch.SymInt):
                found = filter(self._recorded.has_symbol, leaf.node.expr.free_symbols)
                self.symbols |= dict.fromkeys(sorted(found, key=str))

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Named = None
    ) -> Any:
        named = dict(kwargs or {})
        self.note((args, named))
        if _makes_constant(func, args):
            with unset_fake_temporarily():
                self.constants.append(func(*args, **named))
        return func(*args, **named)


class Replacing(TorchFunctionMode):
    """Wherever a torch function reads one of `values`, it gets its counterpart of `others`.

    What is made of Python numbers is taken from `constants`, in order: a graph inside a graph cannot hold a constant.
    """

    recorded = Recorded()

    def __init__(self, values: Sequence[Any], others: Sequence[Any], constants: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self._by_id = {id(value): other for value, other in zip(values, others, strict=True)}
        self._constants = iter(constants)

    def value(self, value: Any) -> Any:
        """The counterpart, or the value itself."""
        return map_slices(value, self._of) if isinstance(value, slice) else self._of(value)

    def _of(self, value: Any) -> Any:
        return self._by_id.get(id(value), value)

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Named = None
    ) -> Any:
        if _makes_constant(func, args):
            return next(self._constants)
        given, named = tree_map(self.value, (args, dict(kwargs or {})))
        if func is torch.Tensor.__setitem__ and isinstance(given[2], (bool, int, float)):
            given = (*given[:2], given[0].new_full((), given[2]))  # torch would make a constant of the number
        return func(*given, **named)


def _is_held_by_python(tensor: torch.Tensor) -> bool:
    """Whether a tensor has values: the module holds it, or one of its functions does."""
    return not isinstance(tensor, FakeTensor) and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def _makes_constant(func: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    if func not in _MAKERS or not args:
        return False
    return all(isinstance(leaf, (bool, int, float, complex)) for leaf in tree_leaves(args[0]))


def _leaves(values: Any) -> list[Any]:
    leaves = tree_leaves(values)
    ends = [end for leaf in leaves if isinstance(leaf, slice) for end in (leaf.start, leaf.stop, leaf.step)]
    return [*leaves, *ends]
