"""A name that the user gave to an axis of an output, and that is not what the model does.

{'output': {0: 'batch'}} where axis 0 is 2*batch, or static  ->  AS112
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from anyshape.domain import Domain, Expr, Number, dims_of, format_expr, simplify
from anyshape.findings import Finding, Reason, Remedy
from anyshape.records.exported import Exported


def diagnose_outputs(
    exported: Exported, declared: Mapping[str, Mapping[int, Expr]], domain: Domain
) -> Iterator[Finding]:
    """Findings for output axes that are not what the user calls them. A new name for an open axis is only a label."""
    for name, answer in exported.outputs:
        for axis, promised in declared.get(name, {}).items():
            if answer.any_rank:
                continue
            if axis >= len(answer.axes) or axis < -len(answer.axes):
                yield _no_axis(name, axis, len(answer.axes))
                continue
            actual = answer.axes[axis]
            known = all(dim in domain.names for dim in dims_of(promised))
            is_static = isinstance(actual, Number)
            if (known and actual is not None and simplify(promised) != simplify(actual)) or (not known and is_static):
                yield _otherwise(name, axis, promised, actual)


def _otherwise(name: str, axis: int, promised: Expr, actual: Expr | None) -> Finding:
    really = "depends on values" if actual is None else f"is {format_expr(actual)}"
    words = "None" if actual is None else repr(format_expr(actual))
    fix = f"leave {axis} out" if isinstance(actual, Number) else f"{{{name!r}: {{{axis}: {words}}}}}"
    remedy = (
        None
        if actual is None or isinstance(actual, Number)
        else Remedy(output_axes=((name, axis, format_expr(actual)),))
    )
    return Finding(
        code="AS112",
        name="output-axis",
        reason=Reason.OUTPUT_AXIS,
        about=(f"{name}[{axis}]",),
        what=f"you call axis {axis} of output {name!r} {format_expr(promised)!r}, but it {really}.",
        why="a name on an output is a promise to whoever reads the file.",
        fix=fix,
        remedy=remedy,
        is_fix_untried=remedy is not None,
    )


def _no_axis(name: str, axis: int, rank: int) -> Finding:
    return Finding(
        code="AS112",
        name="output-axis",
        reason=Reason.OUTPUT_AXIS,
        about=(f"{name}[{axis}]",),
        what=f"you name axis {axis} of output {name!r}, which has {rank} axes.",
        fix=f"name axes 0 to {rank - 1}." if rank else "leave it out.",
    )
