"""torch.nn's own checks of packed sequences, passed without freezing a size or guessing a value.

`RNNBase.check_forward_args` asks for `int(batch_sizes[0])`, and an int cannot be symbolic. There, and only there, the
number is answered by a placeholder, and the size that it is then compared with by the same placeholder, once the two
are known to be equal. Anyone else who asks for the int gets it, and with it a guard on the number of sequences.
"""

# mypy: disable-error-code="no-untyped-call"
# torch has functions without types.

from __future__ import annotations

import sys
from types import CodeType, FrameType

import torch
from torch import SymInt, Tensor
from torch.nn import LSTM, RNNBase
from torch.nn.utils.rnn import pad_packed_sequence

from anyshape.modules.frames import is_ours

_PLACEHOLDER = -1
"""No size is negative, so a placeholder that went astray could not be taken for one."""

_ASKING: tuple[CodeType, ...] = (RNNBase.get_expected_hidden_size.__code__, LSTM.get_expected_cell_size.__code__)
_COMPARING: tuple[CodeType, ...] = (RNNBase.check_hidden_size.__code__,)


class SizeCheck:
    """What torch.nn asked for last: the number of sequences that the next state's size is compared with."""

    def __init__(self) -> None:
        self._count: int | SymInt | None = None

    def is_asking(self) -> bool:
        """Whether the running call is torch.nn's, asking for the number of sequences in packed input."""
        return _is_called_from(_ASKING)

    def as_int(self, count: int | SymInt) -> int:
        """`int(batch_sizes[0])`."""
        if not self.is_asking():
            return int(count)
        self._count = count
        return _PLACEHOLDER

    def size(self, state: Tensor) -> tuple[int | SymInt, ...] | None:
        """`state.size()` as the check must see it; None where nobody is checking packed input."""
        frame = _calling_frame()
        if frame.f_code not in _COMPARING or self._count is None or state.dim() != 3:
            return None
        compared = frame.f_locals["expected_hidden_size"][1]
        if not isinstance(compared, int) or compared != _PLACEHOLDER:
            return None
        layers, batch, features = state.shape
        # Adds the guard that the comparison itself would have added; unequal sizes go on to torch.nn's own message.
        return (layers, _PLACEHOLDER, features) if batch == self._count else (layers, batch, features)


def promise_total_length(longest: int | SymInt) -> None:
    """`pad_packed_sequence` refuses a total length below the longest sequence: what passes there is enough."""
    frame = _calling_frame()
    if frame.f_code is pad_packed_sequence.__code__:
        total_length = frame.f_locals["total_length"]
        if total_length is not None:
            torch._check(longest <= total_length)


def _is_called_from(codes: tuple[CodeType, ...]) -> bool:
    return _calling_frame().f_code in codes


def _calling_frame() -> FrameType:
    """The Python function that made the torch call, behind all modes."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (frame.f_code.co_name == "__torch_function__" or is_ours(frame)):
        frame = frame.f_back
    return frame
