"""Where a module raises, from the guards that a capture met on its way to the error.

if n > 40 and n % 7 == 3: raise ValueError     captured at n = 45     ->     n > 40 and n % 7 == 3
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from anyshape.capture.symbolic import Stopped, capture_symbolically
from anyshape.domain import all_of, holds
from anyshape.inputs import Declared
from anyshape.records.captured import RefusedPart

if TYPE_CHECKING:
    import torch


def refused_part(stopped: Stopped, sizes: Mapping[str, int]) -> RefusedPart | None:
    """The part of the domain in which the module raises as it does at these sizes; None if it is not known."""
    opened = [guard for guard in stopped.guards if guard.status != "proved"]
    conditions = [guard.condition for guard in opened if guard.condition is not None]
    if len(conditions) < len(opened) or not conditions or not all(holds(each, sizes) for each in conditions):
        return None
    return RefusedPart(all_of(conditions), dict(sizes))


def find_refused_parts(
    module: torch.nn.Module, declared: Declared, refused: Iterable[Mapping[str, int]]
) -> Iterator[RefusedPart]:
    """The parts of the domain in which these refused sizes lie, as far as captures show them."""
    found: list[RefusedPart] = []
    for sizes in refused:
        if any(holds(part.condition, sizes) for part in found):
            continue
        captured = capture_symbolically(module, declared, sizes, lambda program: program)
        part = refused_part(captured, sizes) if isinstance(captured, Stopped) else None
        if part is not None:
            found.append(part)
            yield part
