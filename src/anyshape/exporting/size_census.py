"""What the user's code does at each size of a dim that it uses as a text or a key: looked at once in an export, when needed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch.overrides import TorchFunctionMode, resolve_name

from anyshape.domain import Sizes
from anyshape.explore import Costing, EachSize, Unfollowed, find_unfollowed
from anyshape.inputs import Declared
from anyshape.modules.unfollowed_uses import Seen, Use, watch_uses
from anyshape.verify import Reference

_SHARE = 4  # one part in so many of all work


@dataclass(frozen=True)
class SizeCensus:
    """Calls of the module for such dims. `is_affordable`: whether one more watched call is in proportion."""

    declared: Declared
    reference: Reference
    cost: Costing
    seed: int
    is_affordable: Callable[[Sizes], bool]

    @cached_property
    def unfollowed(self) -> Mapping[str, Unfollowed]:
        """The dims that the user's code uses in a way that nothing follows, each with a line."""
        return find_unfollowed(self.declared, self._watch, self.is_affordable)

    @cached_property
    def paths(self) -> Mapping[str, Mapping[int, Hashable]]:
        """Which functions of torch a call comes to, by the sizes of each such dim, the others as in the example."""
        each = EachSize(self.declared, self.cost, self.unfollowed)
        return {name: self._along(name, each) for name in self.unfollowed}

    def _along(self, name: str, each: EachSize) -> dict[int, Hashable]:
        found: dict[int, Hashable] = {}
        left = self.cost.all_work // _SHARE
        for value in each.values(name, each.ends[name]):
            sizes = {**self.declared.example_sizes, name: value}
            left -= self.cost(sizes)
            if left < 0:
                return {}
            if self.declared.domain.contains(sizes):
                found[value] = self._path(sizes)
        return found

    def _path(self, sizes: Sizes) -> Hashable:
        inputs = self.declared.make(sizes, self.seed)
        with _Path() as path:
            self.reference.run(inputs)
        return tuple(path.called)

    def _watch(self, sizes: Sizes) -> dict[Use, Seen]:
        inputs = self.declared.make(sizes, self.seed)  # outside: how the user makes inputs is no part of the model
        return watch_uses(lambda: self.reference.run(inputs))


class _Path(TorchFunctionMode):
    """Notes the names of the functions that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.called: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.called.append(resolve_name(func) or repr(func))
        return func(*args, **(kwargs or {}))
