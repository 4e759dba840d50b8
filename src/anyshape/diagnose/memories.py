"""The machine has not enough memory for a call of the model  ->  AS141."""

from __future__ import annotations

from collections.abc import Mapping

from anyshape.findings import Finding, Reason, Remedy, Source

_MORE_MEMORY = "free some memory, or give a smaller example."


def diagnose_memory(sizes: Mapping[str, int], source: Source | None, example: Mapping[str, int]) -> Finding:
    """A call that takes more memory than a quarter of what is free: nothing can be learned of these sizes here."""
    ends = {name: max(example[name], size // 2) for name, size in sizes.items() if size > example[name]}
    rules = tuple(f"{name} <= {end}" for name, end in ends.items())
    return Finding(
        code="AS141",
        name="out-of-memory",
        reason=Reason.OUT_OF_MEMORY,
        what=f"the model needs more memory than there is at {_written(sizes)}.",
        where=source,
        why="one call may take a quarter of the memory that is free, or 1 GiB where that is more.",
        fix=f"declare ends that keep these sizes out: where={list(rules)!r}" if rules else _MORE_MEMORY,
        remedy=Remedy(where=rules) if rules else None,
        is_fix_untried=bool(rules),
        alternative="free some memory." if rules else "",
        sizes=dict(sizes),
    )


def _written(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in sizes.items()) or "its only sizes"
