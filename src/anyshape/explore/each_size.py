"""Dims whose sizes the user's code uses as a text, as a key, or otherwise beyond any capture: all of their sizes are compared.

Of a dim that is only divided with a rest (`n % 97`), many sizes are compared in the same way, but no promise ends there.

if f"{n:04d}".startswith("03"):     no comparison of numbers leads to 300 and 399, so the file is compared at 1, 2, 3, ...
                                    up to the end of n, or as far as that is affordable: there the promise ends
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from anyshape.domain import Sizes
from anyshape.explore.cost_estimates import Costing
from anyshape.findings import Source
from anyshape.inputs import Declared
from anyshape.modules.unfollowed_uses import Use
from anyshape.modules.user_code import make_source

_SHARE_OF_OPEN, _SHARE_OF_DECLARED = 32, 2  # one part in so many of all work, for a dim without and with an end
_MOST = 1 << 16
_TOGETHER = 200  # points at which several such dims vary
Watch = Callable[[Sizes], Mapping[Use, str]]


class Unfollowed(NamedTuple):
    """The line of such a use of a dim. `is_rest`: there are only rests of divisions."""

    source: Source
    is_rest: bool


def find_unfollowed(declared: Declared, watch: Watch, is_affordable: Callable[[Sizes], bool]) -> dict[str, Unfollowed]:
    """The dims on which such a use depends, by calls of the module at a few sizes of each dim."""
    found: dict[str, Unfollowed] = {}
    example = declared.example_sizes
    first = watch(example) if is_affordable(example) else {}
    for name in declared.domain.names if first else ():
        for value in _others(example[name]):
            sizes = {**example, name: value}
            if not declared.domain.contains(sizes) or not is_affordable(sizes):
                continue
            seen = watch(sizes)
            changed = [use for use, text in first.items() if seen.get(use, text) != text]
            if changed:
                use = min(changed, key=lambda each: (each.is_rest, each.file, each.line, each.column))
                found[name] = Unfollowed(make_source(use.file, use.line, use.function), use.is_rest)
                break
    return found


def _others(size: int) -> tuple[int, ...]:
    return (2 * size + 1, size + 1, size - 1)


@dataclass(frozen=True)
class EachSize:
    """Limits of comparisons: those of `cost`, and that each size of a dim in `unfollowed` is compared up to its end."""

    declared: Declared
    cost: Costing
    unfollowed: Mapping[str, Unfollowed]
    ends: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ends", {name: self._find_end(name) for name in self.unfollowed})

    def excess(self, sizes: Sizes) -> str:
        """Which limits a comparison at these sizes exceeds, in words; "" if none."""
        beyond = [name for name, end in self.ends.items() if sizes[name] > end and not self.unfollowed[name].is_rest]
        if not beyond:
            return self.cost.excess(sizes)
        line = self.unfollowed[beyond[0]].source
        return f"each size of {beyond[0]} is compared, since no rule follows how it is used at {line}"

    def points(self, largest: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """The sizes to compare, up to these ends of the dims."""
        for name, end in self.ends.items():
            for value in self.values(name, min(end, largest.get(name, end))):
                yield {**self.declared.example_sizes, name: value}
        if len(self.ends) > 1:
            random = Random(0)
            for _ in range(_TOGETHER):
                drawn = {name: random.randint(1, min(end, largest.get(name, end))) for name, end in self.ends.items()}
                yield {**self.declared.example_sizes, **drawn}

    def values(self, name: str, end: int) -> range:
        """The sizes of a dim up to an end."""
        dim = self.declared.domain.dim(name)
        return range(dim.smallest, end + 1, dim.multiple)

    def _find_end(self, name: str) -> int:
        """The last size such that all up to it together are affordable; the example's at the least."""
        example = self.declared.example_sizes
        written = self.declared.domain.dim(name).max
        is_little = written is None or self.unfollowed[name].is_rest
        left = self.cost.all_work // (_SHARE_OF_OPEN if is_little else _SHARE_OF_DECLARED)
        values = self.values(name, _MOST if written is None else written)
        end = example[name]
        for value in values:
            sizes = {**example, name: value}
            left -= self.cost(sizes)
            if left < 0 or self.cost.excess(sizes):
                break
            end = max(end, value)
        return end
