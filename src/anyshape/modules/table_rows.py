"""Rows of the tables that a module holds: where one is too short for a size, the module raises, early or late in a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def find_table_rows(module: torch.nn.Module) -> tuple[int, ...]:
    """Rows of embeddings, and sizes of the axes of tensors that modules of the user's own hold, in ascending order."""
    import torch

    rows: set[int] = set()
    for each in module.modules():
        if isinstance(each, torch.nn.Embedding):
            rows.add(each.num_embeddings)
        elif not type(each).__module__.startswith("torch.nn."):
            own = (*each.parameters(recurse=False), *each.buffers(recurse=False))
            rows.update(size for tensor in own for size in tensor.shape)
    return tuple(sorted(rows))
