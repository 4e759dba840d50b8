"""A module whose torch.cond at given lines always choose the same function, whatever the values are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from anyshape.findings import Source
from anyshape.modules.control_flow import choices_noted


class ForcedModule(torch.nn.Module):
    """`sides` has True for the first function and False for the second, by the line of the torch.cond."""

    def __init__(self, module: torch.nn.Module, sides: Mapping[Source, bool]) -> None:
        super().__init__()
        self.module = module
        self._sides = dict(sides)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with choices_noted({}, self._sides):
            return self.module(*args, **kwargs)
