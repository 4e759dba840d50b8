"""A value that the user declares as legal, and for which the module raises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class RefusedValue:
    """`number` in the input `name` at `sizes`; `inputs` are such ones, and `declared` is the text of the declared bounds.

    `taken` has the bounds that the module keeps, as text; "" where no bounds describe all sizes that were tried.
    """

    name: str
    declared: str
    number: float
    sizes: Mapping[str, int] = field(hash=False)
    inputs: Any = field(compare=False)
    taken: str
