"""Whether two values that a module keeps are the same, bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from anyshape.modules.plain_access import is_a

_COMPARED: tuple[Any, ...] = (bool, int, float, complex, str, bytes, set, frozenset)


def is_same(one: Any, other: Any) -> bool:
    """Whether two values of a slot are equal; objects that cannot be compared are equal if they are one object."""
    if one is other:
        return True
    if is_a(one, torch.Tensor) and is_a(other, torch.Tensor):
        return one.dtype == other.dtype and one.shape == other.shape and _has_bytes_of(one, other)
    if is_a(one, np.ndarray) and is_a(other, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    kind = next((each for each in _COMPARED if issubclass(type(one), each)), None)
    if kind is None or type(one) is not type(other):
        return False
    # By the methods of Python's own class: a class of the user's may compare in another way, or raise.
    return bool(kind.__eq__(one, other)) or bool(kind.__ne__(one, one) and kind.__ne__(other, other))


def _has_bytes_of(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of one dtype and shape have the same bytes: zeros of unequal signs have not."""
    flat = [each.detach() for each in (one, other)]
    if all(map(_is_plain, flat)) and one.device == other.device:
        size = flat[0].numel() * flat[0].element_size()
        starts = [each.storage_offset() * each.element_size() for each in flat]
        kind = torch.int64 if all(number % 8 == 0 for number in (size, *starts)) else torch.uint8
        return torch.equal(*(bytes_of_contiguous(each).view(kind) for each in flat))
    return tensor_bytes(one) == tensor_bytes(other)


def bytes_of_contiguous(tensor: torch.Tensor) -> torch.Tensor:
    """The memory of a contiguous tensor as bytes, not copied.

    A single element is contiguous with any stride, also with the 0 of `expand`; `view` takes a stride of 1 only.
    """
    return tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8)


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor's memory has its elements in their order, and nothing else."""
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta or not tensor.numel():
        return False
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def tensor_bytes(tensor: torch.Tensor) -> bytes:
    """The bytes of a tensor's values, of any dtype."""
    try:
        dense = tensor.detach().to_dense() if tensor.layout is not torch.strided else tensor.detach()
        dense = dense.resolve_conj().resolve_neg().cpu().contiguous()
        return bytes_of_contiguous(dense).numpy().tobytes() if dense.numel() else b""
    except (RuntimeError, TypeError, NotImplementedError):  # quantized, meta
        return repr(tensor).encode()
