"""Dims without a declared range that may be 0: the user's code has a condition about emptiness, or reads sizes alone.

if x.numel() == 0: return y         0 is a size that the author thought of
torch.full((x.shape[1], 1), 2)      of x only sizes are read: 0 is a number as any other
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import CodeType
from typing import TYPE_CHECKING

from anyshape.domain import Dim, dims_of
from anyshape.explore.carried import calling
from anyshape.explore.cost_estimates import Costing
from anyshape.inputs import Declared, flatten_outputs
from anyshape.intercept.control_flow import control_flow_in_python
from anyshape.intercept.replay import Call, Replay
from anyshape.modules.emptiness_tests import Step, codes_to_follow, follow, part_by_emptiness

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class WithEmptySizes:
    """A declaration with ranges that begin at 0. `has_condition`: the user's code has conditions about emptiness."""

    declared: Declared
    has_condition: bool


def with_empty_sizes(module: torch.nn.Module, declared: Declared, cost: Costing) -> WithEmptySizes | None:
    """The declaration with 0 in the ranges of such dims, as far as the module answers there; None if there are none."""
    open_dims = [dim for dim in declared.domain.dims if not dim.declared and dim.smallest == 1 and dim.multiple == 1]
    unread = _only_sizes_read(declared, cost)
    codes = codes_to_follow(module) if open_dims else frozenset[CodeType]()
    looked_at = [dim for dim in open_dims if codes or dim.name in unread]
    if not looked_at:
        return None
    with Replay(module, flatten_outputs) as replay, control_flow_in_python():
        trial = _Trial(declared, replay, codes)
        answered = [dim for dim in looked_at if trial.answers_at_0(dim.name)]
        tested = {dim.name for dim in answered if trial.tests(dim.name)}
    found = [dim for dim in answered if dim.name in unread | tested]
    return WithEmptySizes(_from_zero(declared, found), bool(tested)) if found else None


@dataclass(frozen=True)
class _Trial:
    """Calls of the module with one dim at 0 or 1, the others as in the example."""

    declared: Declared
    replay: Replay
    codes: frozenset[CodeType]

    def answers_at_0(self, name: str) -> bool:
        return self.replay.fresh(self._call(name, 0)).raised is None

    def tests(self, name: str) -> bool:
        """Whether a condition about emptiness separates a size of 0 from that of the example, and from 1."""
        if not self._usual_steps:
            return False
        at_0 = self._follow(self._call(name, 0))
        if not part_by_emptiness(self._usual_steps, at_0):
            return False
        at_1 = self._call(name, 1)
        return self.replay.fresh(at_1).raised is not None or part_by_emptiness(self._follow(at_1), at_0)

    @cached_property
    def _usual_steps(self) -> list[Step]:
        return self._follow(calling(self.declared, self.declared.example_sizes, 0)) if self.codes else []

    def _follow(self, call: Call) -> list[Step]:
        return follow(partial(self.replay.fresh, call), self.codes)

    def _call(self, name: str, size: int) -> Call:
        return calling(self.declared, {**self.declared.example_sizes, name: size}, 0)


def _only_sizes_read(declared: Declared, cost: Costing) -> set[str]:
    """The dims that occur only in inputs which no operator takes."""
    leaves = list(enumerate(declared.open_leaves))
    if not cost.unread_inputs:
        return set()
    shown = [{name for axis in leaf.axes for name in dims_of(axis)} for _, leaf in leaves]
    read = {name for place, _ in leaves if place not in cost.unread_inputs for name in shown[place]}
    return {name for place in cost.unread_inputs for name in shown[place]} - read


def _from_zero(declared: Declared, dims: Iterable[Dim]) -> Declared:
    domain = declared.domain
    for dim in dims:
        domain = domain.with_dim(replace(dim, min=0))
    return replace(declared, domain=domain)
