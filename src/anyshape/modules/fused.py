"""torch's one kernel for a whole encoder layer, which has no fake form and shows nothing of what it computes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_fused_layers() -> Iterator[None]:
    """Within this, nn.Transformer's layers run step by step. Afterwards torch's setting is as before."""
    import torch

    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
