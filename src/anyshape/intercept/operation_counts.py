"""Count the operators of a call, the elements of all tensors that they make and their arithmetic, on fake tensors.

Attention over 4096 positions takes few elements in and a thousand times as many in between; only the module knows. It is
run on fake tensors, which have shapes and no memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter, tree_map
from torch.utils.flop_counter import flop_registry

from anyshape.intercept.control_flow import eager_under_modes
from anyshape.intercept.patching import without_fused_layers
from anyshape.processes.quiet import quiet_libraries

_MOST_PROBED = 20_000  # operators: of a loop in a loop over a large size there are millions
_PER_STEP = 750_000
_LARGE = 1 << 16  # elements
_HALF = 4  # processors without arithmetic of 16 bits take so many times as long as with float32, or longer
_ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


@dataclass(frozen=True)
class Counted:
    """The operators of one call, the elements of all tensors that they made, and those of the outputs alone.

    `multiplied` counts the multiplications and additions of products of matrices, convolutions and attention (each of float16
    as 4), `viewed` those of the elements that are views of other tensors.
    """

    operators: int
    elements: int
    answered: int
    multiplied: int = 0
    viewed: int = 0

    @property
    def computed(self) -> int:
        """The elements that operators wrote."""
        return max(0, self.elements - self.viewed)


class _Counting(TorchDispatchMode):
    """Counts operators and the elements of what they return. Ids of tensors that operators take are removed from `unread`."""

    def __init__(self, most_operators: int, unread: set[int] | None = None) -> None:
        super().__init__()
        self._unread = set() if unread is None else unread
        self.operators = 0
        self.elements = 0
        self.multiplied = 0
        self.viewed = 0
        self._most_operators = most_operators

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._unread:
            self._unread.difference_update(map(id, tree_iter((args, kwargs))))
        given = func(*args, **(kwargs or {}))
        if getattr(func, "namespace", "") == "prim":  # the device of a fake tensor, which a real call reads otherwise
            return given
        made = _elements_of(given) + _scores_of(func, args)
        self.elements += made
        self.viewed += made if _is_view(func) else 0
        self.operators += 1
        self.multiplied += _multiplied_by(func, args, kwargs or {}, given)
        if self.operators > self._most_operators:
            raise _TooMany
        return given


class _TooMany(Exception):
    """The call has more operators than are counted."""


class _Enough(BaseException):
    """The call has made as many operations as it may. No `Exception`: the user's code must not catch it."""


class _Limited(_Counting):
    """Stops a call after a number of operations or operators, and before a product of matrices that alone takes more
    operations than are left."""

    def __init__(self, most_operations: int, per_element: int) -> None:
        super().__init__(1 << 40)
        self._most_operations = most_operations
        self._per_element = per_element

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._left < _foreseen(func, args, kwargs or {}):
            raise _Enough
        given = super().__torch_dispatch__(func, types, args, kwargs)
        if self._left < 0 or self.operators > _MOST_PROBED:
            raise _Enough
        return given

    @property
    def _left(self) -> int:
        return self._most_operations - self.multiplied - self._per_element * (self.elements - self.viewed)


def raises_early(call: Callable[[], Any], most_operations: int, per_element: int) -> bool:
    """Whether a call raises before it has made so many operations; it is stopped there.

    An element that an operator writes counts as `per_element` operations.
    """
    try:
        with without_fused_layers(), torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with _Limited(most_operations, per_element), eager_under_modes():
                call()
    except _Enough:
        return False
    except Exception:
        return True
    return False


def count_call(call: Callable[[list[Any]], Any], values: list[Any], most_operators: int) -> Counted | None:
    """What `call(values)` would do, counted on fake tensors; None where that cannot be counted.

    A call cannot be counted if it has more than `most_operators` operators, or cannot run on fake tensors (because it
    reads values, or because an operator has no fake kernel).
    """
    from torch._subclasses import FakeTensorMode

    with quiet_libraries(), without_fused_layers(), FakeTensorMode(allow_non_fake_inputs=True) as fake, torch.no_grad():
        faked = [fake.from_tensor(value) if isinstance(value, torch.Tensor) else value for value in values]
        return _count(lambda: call(faked), most_operators)


def count_real_call(call: Callable[[], Any], most_operators: int, unread: set[int] | None = None) -> Counted | None:
    """The counts of a call, taken while it really runs: faster than on fake tensors, and possible for modules that read values.

    From `unread`, ids of tensors, those that an operator takes are removed: of the others only sizes are read.
    """
    with without_fused_layers(), torch.no_grad():
        return _count(call, most_operators, unread)


def _count(call: Callable[[], Any], most_operators: int, unread: set[int] | None = None) -> Counted | None:
    counting = _Counting(most_operators, unread)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of the user's own code: the user has seen them
            with counting, eager_under_modes():
                answered = _elements_of(call())
    except Exception:  # too many operators, values that decide, operators without a fake kernel
        return None
    return Counted(counting.operators, counting.elements, answered, counting.multiplied, counting.viewed)


def _is_view(func: Any) -> bool:
    """Whether an operator gives other views of its arguments, or an argument that it wrote into."""
    schema = getattr(func, "_schema", None)
    return schema is not None and bool(schema.returns) and all(each.alias_info is not None for each in schema.returns)


def _multiplied_by(func: Any, args: Any, kwargs: Any, given: Any) -> int:
    """The multiplications and additions of one operator by our formulas or torch's; 0 for one that has none."""
    packet = getattr(func, "_overloadpacket", None)
    formula = _OWN_FORMULAS.get(packet) or flop_registry.get(packet)
    if formula is None:
        return 0
    try:
        return int(formula(*args, **kwargs, out_val=given)) * (_HALF if _is_half(given) else 1)
    except Exception:  # a formula takes the usual forms of its operator only
        return 0


def _foreseen(func: Any, args: Any, kwargs: Any) -> int:
    """The multiplications and additions of a product of large matrices before it runs; 0 where it may raise, and for others."""
    packet = getattr(func, "_overloadpacket", None)
    if (packet not in _OWN_FORMULAS and packet not in flop_registry) or _elements_of(args) < _LARGE:
        return 0
    try:
        given = func(*tree_map(_without_memory, args), **tree_map(_without_memory, kwargs))
    except Exception:  # the sizes do not fit, or the operator cannot be foreseen: the real one shows which
        return 0
    return _multiplied_by(func, args, kwargs, given)


def _without_memory(value: Any) -> Any:
    return torch.empty_like(value, device="meta") if isinstance(value, torch.Tensor) else value


def _is_half(given: Any) -> bool:
    return any(isinstance(item, torch.Tensor) and item.dtype == torch.float16 for item in tree_iter(given))


def _recurrent_layer(inputs: Any, of_input: Any, of_hidden: Any, *others: Any, out_val: Any) -> int:
    """A layer of an LSTM over a sequence. Each step waits for the one before it, which takes time of its own."""
    steps, batch = inputs.shape[0], inputs.shape[1]
    return steps * (2 * batch * (of_input.numel() + of_hidden.numel()) + _PER_STEP)


def _attention(query: Any, key: Any, value: Any, *others: Any, out_val: Any, **options: Any) -> int:
    """Attention in one operator: two products of matrices."""
    return 2 * query.shape[:-1].numel() * key.shape[-2] * (query.shape[-1] + value.shape[-1])


def _scores_of(func: Any, args: Any) -> int:
    """The scores of attention, which torch keeps in no tensor; a file does. 0 for other operators."""
    is_attention = getattr(func, "_overloadpacket", None) is _ATTENTION
    return args[0].shape[:-1].numel() * args[1].shape[-2] if is_attention else 0


_OWN_FORMULAS: dict[Any, Callable[..., int]] = {
    torch.ops.aten.mkldnn_rnn_layer: _recurrent_layer,
    _ATTENTION: _attention,
}


def _elements_of(tree: Any) -> int:
    return sum(item.numel() for item in tree_iter(tree) if isinstance(item, torch.Tensor))
