"""The model returns other outputs at other sizes, and a file always has the same ones.

bare dim, the same outputs follow a rule      ->  AS154, a warning: the contract says so
declared dim, one size only, or no rule       ->  AS155
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from anyshape.diagnose.wording import say_sizes
from anyshape.domain import format_condition
from anyshape.findings import Finding, Reason, Remedy, Severity
from anyshape.records.contract import Rule
from anyshape.records.verdict import Refusal

_FIXED = "a file has the same outputs at all sizes."


def describe_outputs(paths: Sequence[str], expected: Sequence[str]) -> str:
    """What the module returned, and what at the example's sizes: numbers of outputs, or their names."""
    if len(paths) != len(expected):
        return f"{_count(len(paths))}, and {len(expected)} at the sizes of the example"
    others = [(one, other) for one, other in zip(paths, expected, strict=True) if one != other]
    return f"output {others[0][0]!r} in place of {others[0][1]!r} at the sizes of the example"


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
        alternative="return one tensor that has the parts along an axis.",
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
        alternative="return one tensor that has the parts along an axis.",
        sizes=refused.sizes,
    )


def _count(number: int) -> str:
    return f"{number or 'no'} output{'' if number == 1 else 's'}"
