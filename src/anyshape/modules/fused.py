"""torch's one kernel for a whole encoder layer, which has no fake form and shows nothing of what it computes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from anyshape.modules.patching import standing


@contextmanager
def without_fused_layers() -> Iterator[None]:
    """Within this, nn.Transformer's layers run step by step in this thread; torch's setting itself does not change."""
    import torch

    with standing([(vars(torch.backends.mha), "get_fastpath_enabled", lambda: False)]):
        yield
