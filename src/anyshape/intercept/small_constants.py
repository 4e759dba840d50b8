"""Let torch know the values of small tensors while a module is captured, and forget them where open sizes are computed in.

    shapes = torch.tensor([(32, 24)])     torch:  rows has an unknown length
    rows = torch.arange(shapes[0, 0])     here:   rows has 32 elements

torch's fake tensors keep the value of a tensor of one element, and here of up to 64. They forget it when a value that is not
known is written into the same memory, so the larger limit is as safe. Of a tensor and a float that is computed from sizes,
torch (to 2.13) would keep the value at the traced sizes, without a condition on them: here that value is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from anyshape.intercept.patching import patched

_MOST_ELEMENTS = 64


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
        tensor.numel() <= _MOST_ELEMENTS
        and not is_sparse_any(tensor)
        and not mode.is_our_fake(tensor)
        and tensor.device.type != "meta"
    )


def _without_values_of_sizes(own: Callable[..., Any]) -> Callable[..., Any]:
    """torch's own method, to which no tensor has a known value in a call with an open float: torch looks for open ints only."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    from anyshape.intercept.real_numbers import leaves_of

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
