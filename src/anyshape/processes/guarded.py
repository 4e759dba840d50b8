"""Tensors that end at a page which nobody may touch: a kernel that reads or writes past the end of an input ends the process.

Some kernels of torch do not check that their inputs fit together (a recurrent network of packed sequences takes an initial
state of any size). What they read past the end is whatever lies there, and what they answer means nothing.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_NO_ACCESS = 0  # PROT_NONE of mprotect(2)


def guarded_copy(memory: Any) -> torch.Tensor:
    """A copy of an array of bytes as a tensor of bytes, which ends where its memory ends."""
    import torch

    size = memory.nbytes
    pages = -(-size // mmap.PAGESIZE)
    mapped = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
    if ctypes.CDLL(None, use_errno=True).mprotect(
        ctypes.c_void_p(start + pages * mmap.PAGESIZE), ctypes.c_size_t(mmap.PAGESIZE), _NO_ACCESS
    ):
        return torch.from_numpy(memory)
    placed = torch.frombuffer(mapped, dtype=torch.uint8, count=size, offset=pages * mmap.PAGESIZE - size)
    placed.copy_(torch.from_numpy(memory))
    return placed
