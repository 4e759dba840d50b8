"""What requests of the tests of verification share: a call of a module, and a domain that has all sizes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


class Everything:
    def contains(self, sizes: object) -> bool:
        return True
