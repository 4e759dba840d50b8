"""The machine has not enough memory for a call of the model  ->  AS141."""

from __future__ import annotations

from collections.abc import Mapping

from anyshape.findings import Finding, Source


def diagnose_memory(sizes: Mapping[str, int], source: Source | None) -> Finding:
    """A call that takes more memory than a quarter of what is free: nothing can be learned of these sizes here."""
    return Finding(
        code="AS141",
        name="out-of-memory",
        what=f"the model needs more memory than there is at {_written(sizes)}.",
        where=source,
        why="one call may take a quarter of the memory that is free, or 1 GiB where that is more.",
        fix="declare ends that keep these sizes out, where=['n <= 64'], or free some memory.",
        sizes=dict(sizes),
    )


def _written(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in sizes.items()) or "its only sizes"
