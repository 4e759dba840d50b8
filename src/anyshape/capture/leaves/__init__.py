"""Functions that a capture keeps whole, because ONNX has an operator for them: recurrent networks, packed or not.

`torch.export` unrolls a recurrent network step by step, which freezes its length. Here nothing is patched: a torch
function mode sees the calls that `torch.nn` makes while `leaves()` is entered, and records our own operators instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

LEAVES = ("lstm", "gru", "rnn_tanh", "rnn_relu", "_pack_padded_sequence", "_pad_packed_sequence")
"""The torch functions that are kept whole."""

_ONLY_FLAT_WEIGHTS = (
    r"The tensor attributes? (self\.[\w.]*_flat_weights\[\d+\](, )?)+ (was|were) assigned during export"
)


@contextmanager
def leaves() -> Iterator[None]:
    """Enter around `torch.export.export(..., strict=False)`. Each entry starts afresh and leaves nothing behind."""
    from anyshape.capture.leaves.mode import LeafMode

    with warnings.catch_warnings():
        # torch.nn rebuilds this list whenever its weights are others, and in a capture they are symbolic ones.
        warnings.filterwarnings("ignore", message=_ONLY_FLAT_WEIGHTS, category=UserWarning)
        with LeafMode():
            yield


__all__ = ["LEAVES", "leaves"]
