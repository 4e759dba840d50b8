"""Two other forms of the user's module: one that takes and returns a flat list of tensors, and one whose state is an argument.

Capturing the flat form frees us from torch's registry of containers: no class has to be registered, so none has to be
unregistered.

    StatefulModule(m, {"ema": slot})(x, state={"ema": tensor})   ->   Carried(m's outputs, {"ema": the tensor afterwards})

The state lies in its place within one call only; afterwards the module is as before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from anyshape.modules.slots import Slot, putting
from anyshape.modules.user_code import names_attribute

Rebuild = Callable[[Sequence[Any]], Any]
Call = Callable[[torch.nn.Module, Any], Any]
Flatten = Callable[[Any], Sequence[tuple[str, Any]]]


class Seen:
    """The last call's inputs, and the paths of its answers. No attributes of the module: torch.export puts those back."""

    leaves: tuple[Any, ...] = ()
    paths: tuple[str, ...] = ()


class FlatModule(torch.nn.Module):
    """`forward(*leaves)` rebuilds the user's inputs, calls the user's module, and flattens what it answers.

    `seen.paths` has, after a call, the path of each answer. Answers that are no tensors become 0-d tensors, except
    sizes, which the capture must see as sizes. A module that calls `set_` gets copies of its inputs: torch.export has no way
    to write down that an input becomes another tensor.
    """

    def __init__(self, module: torch.nn.Module, rebuild: Rebuild, call: Call, flatten: Flatten) -> None:
        super().__init__()
        self.module = module
        self._rebuild = rebuild
        self._call = call
        self._flatten = flatten
        self._copies = names_attribute(module, "set_")
        self.seen = Seen()

    def forward(self, *leaves: Any) -> tuple[Any, ...]:
        self.seen.leaves = leaves
        if self._copies:
            leaves = tuple(leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves)
        answers = [
            (path, leaf)
            for path, leaf in self._flatten(self._call(self.module, self._rebuild(leaves)))
            if leaf is not None and not isinstance(leaf, str)
        ]
        self.seen.paths = tuple(path for path, _ in answers)
        return tuple(_as_answer(leaf) for _, leaf in answers)


def _as_answer(leaf: Any) -> Any:
    if isinstance(leaf, (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)):
        return leaf
    return torch.tensor(leaf)


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
