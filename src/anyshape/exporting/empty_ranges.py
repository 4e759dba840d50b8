"""Open ranges that begin at 0 where the user's code shows that 0 is meant, if the file is right there; else they begin at 1."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from anyshape.capture.rungs import METHODS
from anyshape.explore.empty_sizes import WithEmptySizes, with_empty_sizes
from anyshape.exporting.constancy import Constant
from anyshape.findings import PromiseBroken
from anyshape.inputs import Declared
from anyshape.modules.call_limits import OutOfTime, TimeLimit
from anyshape.records.export import Export

_RUNG = METHODS[0].name
_HALF = 0.5

ExportConstant = Callable[[Constant], Export]


def export_from_zero_or_one(constant: Constant, export: ExportConstant, limit: TimeLimit) -> Export:
    """The export with ranges from 0 where they are meant and right, else from 1. Raises PromiseBroken.

    Where the user's code has a condition about emptiness, ranges from 0 come first. Where only sizes are read, they come after
    an export by the rung that sees conditions on sizes: if that rung fails, it does so at 0, too.
    """
    wider = _find_wider(constant)
    if wider is None:
        return export(constant)
    opened = _try_from_zero(constant, wider, export, limit) if wider.has_condition else None
    if opened is not None and not _is_cut(opened, constant.declared):
        return opened
    try:
        result = export(constant)
    except PromiseBroken:
        if opened is None:
            raise
        return opened
    if not wider.has_condition and result.contract.strategy == _RUNG:
        opened = _try_from_zero(constant, wider, export, limit)
        return result if opened is None or _is_cut(opened, constant.declared) else opened
    return result if opened is None or not _is_cut(result, constant.declared) else opened


def _find_wider(constant: Constant) -> WithEmptySizes | None:
    """Nothing is opened without comparisons, nor where the state of the model became inputs."""
    options = constant.options
    if options.verify.is_skipped or constant.states or constant.cost is None or options.strategy not in (None, _RUNG):
        return None
    return with_empty_sizes(constant.module, constant.declared, constant.cost)


def _try_from_zero(
    constant: Constant, wider: WithEmptySizes, export: ExportConstant, limit: TimeLimit
) -> Export | None:
    """The export with ranges that begin at 0; None where no file is right there within half of the time.

    Only the rung that sees conditions on sizes is tried: one that learns from traces would look for a rule across them.
    """
    options = replace(constant.options, strategy=_RUNG)
    with suppress(PromiseBroken, OutOfTime), limit.part(_HALF):
        result = export(replace(constant, declared=wider.declared, options=options, cost=None))
        return result if _has_empty_sizes(result) else None
    return None


def _has_empty_sizes(result: Export) -> bool:
    """Whether a file is right, and promises a size of 0 that the user did not declare."""
    return result.verdict.passed and any(dim.min == 0 and not dim.declared for dim in result.contract.domain.dims)


def _is_cut(result: Export, declared: Declared) -> bool:
    """Whether a range of the contract has an end that the declaration does not have."""
    before = {dim.name: dim.max for dim in declared.domain.dims}
    return any(dim.max is not None and before.get(dim.name) is None for dim in result.contract.domain.dims)
