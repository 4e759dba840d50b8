"""During a capture, torch keeps the values of small tensors that are made of Python numbers, so that Python can read them.

    shapes = torch.tensor([(32, 24)])                before   an unknown number of rows
    rows = torch.arange(shapes[0, 0])         ->     now      32 rows

torch does so for tensors of one element, by fake tensors that know their values. They forget them when a value that is not
known is written into the same memory, so a limit above one element is as safe.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from anyshape.intercept.patching import patched

_MOST_ELEMENTS = 64


@contextmanager
def small_constants_known() -> Iterator[None]:
    """Enter around `torch.export.export(..., strict=False)`."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with patched([(FakeTensorMode, "may_turn_const", _may_be_known)]):
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


def known_number(value: Any) -> Any:
    """The Python number that a tensor of one element is known to hold; any other value as it is."""
    from torch._subclasses.fake_tensor import FakeTensor

    known = value.constant if isinstance(value, FakeTensor) else None
    return value if known is None or known.numel() != 1 else known.item()
