"""Branches on values inside loops, before the rung for decisions: both sides run, and the value selects what they leave.

    for t in range(n): if x[t].sum() > 0: h = f(h) else: h = g(h)     ->     a Loop whose body has a Where

The first rungs capture the module in that form (`intercept/selected_sides.py`); its file is compared with the module as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from anyshape.exporting.context import ExportContext
from anyshape.intercept.selected_sides import SelectedSides, has_sides_to_select
from anyshape.records.export import Attempt


def select_by_values(
    context: ExportContext, try_rungs: Callable[[ExportContext], tuple[Attempt, ...]]
) -> Attempt | None:
    """The attempt with a right file; None where the module has no such branches, or no right file came of them."""
    if not has_sides_to_select(context.module):
        return None
    options = replace(context.options, strategy=None)
    selected = replace(context, module=SelectedSides(context.module), options=options, programs={})
    return next((attempt for attempt in try_rungs(selected) if attempt.is_right), None)
