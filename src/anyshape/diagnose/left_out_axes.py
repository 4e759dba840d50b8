"""An axis that the declaration leaves static, and that keeps a dynamic one from varying.

the model answers at the example's size of the dim alone, or no rule is found   ->  AS153, an error
the same, a rule is found, and the axes of the dim were declared without a name  ->  AS153, a warning
the model answers at some sizes of the dim, by a rule in the contract           ->  AS153, a warning
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from anyshape.diagnose.consent import may_stay
from anyshape.domain import dims_of
from anyshape.findings import Finding, Reason, Remedy, Severity
from anyshape.inputs import Declared
from anyshape.records.explored import Explored, LeftOut


def diagnose_left_out(declared: Declared, left_out: Iterable[LeftOut], explored: Explored) -> tuple[Finding, ...]:
    """One finding for each dim, with the declaration that has the axes of all of them."""
    found = list(left_out)
    inputs = dict.fromkeys(name for each in found for name in each.declaration)
    whole = {name: _joined(each.declaration.get(name, {}) for each in found) for name in inputs}
    return tuple(
        _left_out(
            replace(each, declaration=whole),
            is_error=not explored.is_explained or (each.dim in explored.pinned and not may_stay(declared, each.dim)),
        )
        for each in found
    )


def _joined(axes: Iterable[Mapping[int, str]]) -> Mapping[int, str]:
    """The words of an input's axes in all of the declarations."""
    return dict(sorted({axis: word for each in axes for axis, word in each.items()}.items()))


def refusals_of_others(declared: Declared, left_out: Iterable[LeftOut], explored: Explored) -> Explored:
    """The same without the dims that AS153 explains: their refusals are no fault of a line of the model."""
    explained = {each.dim for each in left_out}
    others = {name: size for name, size in explored.pinned.items() if name not in explained}
    if len(others) == len(explored.pinned):
        return explored
    fixed = explored.pinned.keys() - others
    if explored.is_explained and all(may_stay(declared, name) for name in fixed):
        rules = tuple(rule for rule in explored.rules if not fixed >= set(dims_of(rule.condition)))
        return replace(explored, pinned=others, rules=rules)
    return replace(explored, pinned=others, refused=explored.refused if others else ())


def _left_out(each: LeftOut, *, is_error: bool) -> Finding:
    axes = " and ".join(f"axis {axis} of input {path!r}" for path, axis in each.places)
    stay, them = ("stays", "it") if len(each.places) == 1 else ("stay", "them")
    words = ", ".join(f'"{name}": {_as_code(axes)}' for name, axes in each.declaration.items())
    sizes = ", ".join(map(str, each.tried))
    return Finding(
        code="AS153",
        name="axis-left-out",
        reason=Reason.AXIS_LEFT_OUT,
        about=tuple(f"{path}[{axis}]" for path, axis in each.places),
        severity=Severity.ERROR if is_error else Severity.WARNING,
        what=f"{axes} {stay} {each.size}: the model refuses other sizes of {each.dim!r} beside {them}.",
        why=(
            f"the declaration leaves {them} out. At {each.dim} = {sizes} the model raises with {them} at {each.size},\n"
            f"and answers with {them} at the same size as {each.dim}."
        ),
        fix=f"dynamic={{{words}}}",
        remedy=Remedy(input_axes=tuple((path, axis, each.dim) for path, axis in each.places)) if is_error else None,
        is_fix_untried=is_error,
        alternative=f"in compat.export: dynamic_axes={{{words}}}",
        narrows=not is_error,
    )


def _as_code(axes: Mapping[int, str]) -> str:
    return "{" + ", ".join(f'{axis}: "{word}"' for axis, word in axes.items()) + "}"
