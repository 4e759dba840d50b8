"""Keep the values of a module's tensors, and put them back where a call has written them.

A network of many layers has hundreds of small buffers, and a call of it is followed by one comparison of all of them
together. Only where that shows a difference is each compared by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from anyshape.findings import Finding, UsageError
from anyshape.modules.reach import NOTHING, REWRITTEN, WRITTEN

_SMALL_BYTES = 1 << 14  # of a tensor: a larger one is compared as fast by itself


class KeptTensors:
    """All tensors of a module, in their order."""

    def __init__(self, kept: Iterable[KeptTensor]) -> None:
        self._kept = list(kept)
        self._small = [each for each in self._kept if each.is_small_buffer]
        self._views = [each.bits for each in self._small]
        self._values = torch.cat(self._views) if self._views else torch.empty(0)

    def restore(self, thorough: bool) -> list[frozenset[Any]]:
        """Put all values back; what was written of each."""
        for each in self._small:
            each.put_back_memory()
        is_unwritten = bool(self._views) and not any(each.is_written for each in self._small)
        is_unwritten = is_unwritten and torch.equal(torch.cat(self._views), self._values)
        unwritten = {id(each) for each in self._small} if is_unwritten else set()
        return [NOTHING if id(each) in unwritten else each.restore(thorough) for each in self._kept]


class KeptTensor:
    """A tensor, the memory that it lay in, and (if `copied`) the values that were there."""

    def __init__(self, tensor: torch.Tensor, copied: bool, name: str) -> None:
        self._tensor = tensor
        self._name = name
        self._memory = tensor.detach()
        self._values = self._memory.clone() if copied else None
        self._version = _version(tensor)
        # Only parameters may go unwritten, and only after a look behind a call: a write through `.data` leaves the version.
        self._trusted = False
        self._is_parameter = isinstance(tensor, torch.nn.Parameter)

    @property
    def is_small_buffer(self) -> bool:
        """Whether the tensor is a small buffer, which is compared after each call together with others."""
        if self._values is None or self._is_parameter or self._memory.device.type != "cpu":
            return False
        return _is_dense(self._memory) and 0 < self._memory.nbytes <= _SMALL_BYTES

    @property
    def bits(self) -> torch.Tensor:
        """The memory as bytes in a row."""
        return self._memory.reshape(-1).view(torch.uint8)

    @property
    def is_written(self) -> bool:
        """Whether something was written in place, equal values included."""
        return _version(self._tensor) != self._version

    def put_back_memory(self) -> None:
        """Let the tensor lie where it lay before; a call may have set its `.data`."""
        if self._tensor.shape != self._memory.shape or _address(self._tensor) != _address(self._memory):
            self._tensor.data = self._memory

    def restore(self, thorough: bool) -> frozenset[Any]:
        """Put the values back; what was written."""
        self.put_back_memory()
        written = self.is_written
        if self._values is None:
            if written:
                raise UsageError(parameter_written(self._name))
            return NOTHING
        if self._trusted and not written and not thorough:
            return NOTHING
        is_other = not _same(self._memory, self._values)
        if is_other:
            with torch.no_grad():
                self._memory.copy_(self._values)
        elif self._is_parameter and not thorough:
            self._trusted = True
        self._version = _version(self._tensor)
        return WRITTEN if is_other else REWRITTEN if written else NOTHING


def parameter_written(name: str) -> Finding:
    return Finding(
        code="AS310",
        name="parameter-written",
        what=f"forward writes into parameter {name!r}, which cannot be put back as it was.",
        why="the module answers differently each time, and its parameters are too large to be kept twice.",
        fix=f"keep what changes in a buffer:   self.register_buffer({name.rpartition('.')[2]!r}, ...)",
        is_fix_untried=True,
    )


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


def _address(tensor: torch.Tensor) -> int:
    try:
        return tensor.data_ptr()
    except RuntimeError:  # no storage: fake, sparse and meta tensors
        return 0


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of one shape and dtype hold the same bits; NaN is the same as NaN."""
    try:
        if _is_plain(one) and _is_plain(other):  # whole numbers of 64 bits are compared 2 to 9 times as fast
            return torch.equal(one.reshape(-1).view(torch.int64), other.reshape(-1).view(torch.int64))
        return torch.equal(one, other)
    except RuntimeError:  # layouts without `equal`
        return False


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether the values lie one after the other and fill whole numbers of 64 bits."""
    return _is_dense(tensor) and tensor.nbytes % 8 == 0


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether the values lie one after the other."""
    if type(tensor) is not torch.Tensor or tensor.layout is not torch.strided or tensor.is_quantized:
        return False
    return not tensor.is_conj() and not tensor.is_neg() and tensor.is_contiguous()


def copied(value: Any) -> Any:
    """A copy of a tensor, without its gradients; anything else as it is."""
    return value.detach().clone() if isinstance(value, torch.Tensor) else value
