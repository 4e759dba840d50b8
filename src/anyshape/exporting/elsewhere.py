"""Comparisons of an export that are made by other processes: who exports says how, and the attempts of the ladder use it.

It is a context variable and no option: an option would have to pass through `anyshape.export`, whose keywords are for users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from anyshape.records.verdict import Verdict
from anyshape.verify import VerifyRequest

if TYPE_CHECKING:
    import torch

Compare = Callable[[VerifyRequest, "torch.nn.Module"], Verdict]
"""Compares the file of a request, which has a draft of its contract, with the module."""

_COMPARE: ContextVar[Compare | None] = ContextVar("compare", default=None)


@contextmanager
def comparing_elsewhere(compare: Compare | None) -> Iterator[None]:
    """Files of exports inside are compared by `compare`; None: here, as always."""
    token = _COMPARE.set(compare)
    try:
        yield
    finally:
        _COMPARE.reset(token)


def find_compare() -> Compare | None:
    """How files are to be compared; None: here."""
    return _COMPARE.get()
