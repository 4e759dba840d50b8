"""torch's errors where Python reads a value of a tensor that a capture does not have."""

from __future__ import annotations

from collections.abc import Iterator

_TYPES = ("GuardOnDataDependentSymNode", "PendingUnbackedSymbolNotFound", "DataDependentOutputException")


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """The error and what caused it, outermost first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def reads_values(error: BaseException) -> bool:
    """Whether a capture ended because what runs next depends on values."""
    return any(type(each).__name__ in _TYPES for each in chain_of(error)) or "data-dependent" in str(error)
