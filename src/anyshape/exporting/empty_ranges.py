"""Open ranges that begin at 0 where the user's code shows that 0 is meant: tried first, and kept if the file is right there."""

from __future__ import annotations

from dataclasses import replace

from anyshape.capture.rungs import METHODS
from anyshape.explore.empty_sizes import with_empty_sizes
from anyshape.exporting.constancy import Constant
from anyshape.inputs import Declared
from anyshape.records.export import Export

_RUNG = METHODS[0].name


def with_empty_sizes_of(constant: Constant) -> Constant | None:
    """The same with open ranges that begin at 0, where the user's code shows that 0 is meant; None where it does not.

    Only the rung that sees conditions on sizes is tried there: one that learns from traces would look for a rule across the
    condition. Nothing is opened without comparisons, nor where the state of the model became inputs.
    """
    options = constant.options
    if options.verify.is_skipped or constant.states or constant.cost is None or options.strategy not in (None, _RUNG):
        return None
    declared = with_empty_sizes(constant.module, constant.declared, constant.cost)
    if declared is None:
        return None
    return replace(constant, declared=declared, options=replace(options, strategy=_RUNG), cost=None)


def has_empty_sizes(result: Export) -> bool:
    """Whether a file is right, and promises a size of 0 that nobody declared."""
    return result.verdict.passed and any(dim.min == 0 and not dim.declared for dim in result.contract.domain.dims)


def is_cut(result: Export, declared: Declared) -> bool:
    """Whether a range of the contract has an end that the declaration does not have."""
    before = {dim.name: dim.max for dim in declared.domain.dims}
    return any(dim.max is not None and before.get(dim.name) is None for dim in result.contract.domain.dims)
