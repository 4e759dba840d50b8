"""A module whose state is an argument and a result.

    StatefulModule(m, {"ema": slot})(x, state={"ema": tensor})   ->   Carried(m's outputs, {"ema": the tensor afterwards})

The state lies in its place within one call only; afterwards the module is as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from anyshape.modules.slots import Slot, putting


@dataclass(frozen=True, eq=False)
class Carried:
    """The outputs of a call, and the state after it: tensors by path (`state.ema.next`)."""

    outputs: Any
    state: Mapping[str, Any]


class StatefulModule(torch.nn.Module):
    """Calls `module` with the values of `state` in its slots; `parameter` is the name of that argument."""

    def __init__(self, module: torch.nn.Module, slots: Mapping[str, Slot], parameter: str) -> None:
        super().__init__()
        self.module = module
        self._slots = dict(slots)
        self._parameter = parameter

    def forward(self, *args: Any, **kwargs: Any) -> Carried:
        given = kwargs.pop(self._parameter)
        values = [given[name].clone() for name in self._slots]
        with putting(list(self._slots.values()), values):
            outputs = self.module(*args, **kwargs)
            after = {name: _as_tensor(slot.get(), given[name]) for name, slot in self._slots.items()}
        return Carried(outputs, {f"{self._parameter}.{name}.next": value for name, value in after.items()})


def _as_tensor(value: Any, like: torch.Tensor) -> torch.Tensor:
    """The state as a tensor; a Python number becomes one of the dtype that it had before."""
    return value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=like.dtype)
