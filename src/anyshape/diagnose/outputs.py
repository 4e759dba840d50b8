"""Outputs that are not what the user declared, or not the same at all sizes.

{'output': {0: 'batch'}} where axis 0 is 2*batch, or static         ->  AS112
other outputs at other sizes, a bare dim, and a rule says where     ->  AS154, a warning: the contract has the rule
the same with a declared dim, at one size only, or without a rule   ->  AS155
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from anyshape.diagnose.wording import say_sizes
from anyshape.domain import Domain, Expr, Number, dims_of, format_condition, format_expr, simplify
from anyshape.findings import Finding, Reason, Remedy, Severity
from anyshape.records.contract import Rule
from anyshape.records.export import Exported
from anyshape.records.verdict import Refusal


def diagnose_outputs(
    exported: Exported, declared: Mapping[str, Mapping[int, Expr]], domain: Domain
) -> Iterator[Finding]:
    """Findings for output axes that are not what the user calls them. A new name for an open axis is only a label."""
    for name, output in exported.outputs:
        for axis, promised in declared.get(name, {}).items():
            if output.any_rank:
                continue
            if axis >= len(output.axes) or axis < -len(output.axes):
                yield _no_axis(name, axis, len(output.axes))
                continue
            actual = output.axes[axis]
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


_FIXED = "a file has the same outputs at all sizes."
_ONE_DTYPE = "bring the output to one dtype in the model: y.to(torch.float32)."
_ONE_TENSOR = "return one tensor that has the parts along an axis."


def describe_outputs(outputs: Sequence[tuple[str, str]], expected: Sequence[tuple[str, str]]) -> str:
    """What the module returned, and what at the example's sizes: numbers of outputs, their names, or their dtypes.

    Outputs are paths and dtypes.
    """
    if len(outputs) != len(expected):
        return f"{_count(len(outputs))}, and {len(expected)} at the sizes of the example"
    (path, dtype), (other_path, other_dtype) = next(
        (one, other)
        for one, other in sorted(zip(outputs, expected, strict=True), key=lambda pair: pair[0][0] == pair[1][0])
        if one != other
    )
    if path != other_path:
        return f"output {path!r} in place of {other_path!r} at the sizes of the example"
    kinds = [each or "a Python float" for each in (dtype, other_dtype)]
    return f"output {path!r} as {kinds[0]}, and as {kinds[1]} at the sizes of the example"


def find_smallest_varying(refused: Iterable[Refusal]) -> Refusal | None:
    """The smallest sizes at which the module returned other outputs than at the example's."""
    varying = [each for each in refused if each.outputs is not None]
    return min(varying, key=lambda each: sum(each.sizes.values()), default=None)


def narrowed_to_outputs(rule: Rule, refused: Refusal) -> Finding:
    """The contract has the sizes at which a bare dim gives the outputs of the example."""
    condition = format_condition(rule.condition)
    return Finding(
        code="AS154",
        name="narrowed-to-outputs",
        severity=Severity.WARNING,
        what=f"the contract says {condition}: at other sizes the model returns other outputs.",
        where=refused.source,
        why=f"at {say_sizes(refused.sizes)} it returns {refused.message}; {_FIXED}",
        fix=f"to make it yours, write it: where=[{condition!r}]",
        alternative=_alternative(refused),
        sizes=refused.sizes,
        narrows=True,
    )


def outputs_vary(refused: Refusal, condition: str = "") -> Finding:
    """Sizes that the file cannot leave out give other outputs; `condition` is the rule for those of the example, if known."""
    rule = (
        f"it returns those of the example only where {condition}."
        if condition
        else "no rule was found that says where."
    )
    return Finding(
        code="AS155",
        name="outputs-vary",
        what=f"the model returns other outputs at {say_sizes(refused.sizes)} than at the sizes of the example.",
        where=refused.source,
        why=f"there it returns {refused.message}; {_FIXED}\n{rule}",
        fix=(
            f"promise what one file can keep: where=[{condition!r}]"
            if condition
            else "declare sizes at which the outputs are the same, with where=[...]."
        ),
        reason=Reason.OUTPUTS_VARY if condition else None,
        remedy=Remedy(where=(condition,)) if condition else None,
        is_fix_untried=bool(condition),
        alternative=_alternative(refused),
        sizes=refused.sizes,
    )


def _alternative(refused: Refusal) -> str:
    return _ONE_DTYPE if refused.has_other_dtypes else _ONE_TENSOR


def _count(number: int) -> str:
    return f"{number or 'no'} output{'' if number == 1 else 's'}"
