"""The user's module behind a flat signature: tensors in, tensors out, whatever nesting lies between.

Capturing this instead of the module frees us from torch's registry of containers: no class has to be registered,
so none has to be unregistered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

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

    `seen.paths` tells, after a call, the path of each answer. Answers that are no tensors become 0-d tensors, except
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
