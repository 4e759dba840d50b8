"""Where a row of calls first differed between the model and its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RowDifference:
    """The number of the call in its row (from 1), its sizes, the output, and what was expected and given."""

    call: int
    sizes: Mapping[str, int] = field(hash=False)
    output: str
    text: str
