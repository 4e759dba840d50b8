"""Findings about values that decide or that the module does not take, and about outputs that are not as declared.

    too many ways, or other questions at other sizes                      ->  AS116
    one way raises at sizes that no rule describes                        ->  AS117
    a function of torch.cond that no compared values lead to              ->  what comparing it by itself came to
    a value that is declared as legal, and at which the model raises      ->  AS157, the values that it takes
    bounds that were learned by trying                                    ->  a note: the contract promises nothing beyond them
    a refusal that goes away with small integers                          ->  AS027: our inputs were bad

{'output': {0: 'batch'}} where axis 0 is 2*batch, or static         ->  AS112
other outputs at other sizes, a bare dim, and a rule says where     ->  AS154, a warning: the contract has the rule
the same with a declared dim, at one size only, or without a rule   ->  AS155
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch

from anyshape.diagnose import first_line, say_sizes
from anyshape.domain import Domain, Expr, Number, dims_of, format_condition, format_expr, format_sizes, simplify
from anyshape.findings import Finding, Reason, Remedy, Severity, Source
from anyshape.inputs import Declared, explain_bad_inputs, find_made_integers
from anyshape.modules.state import kept
from anyshape.records.contract import Rule
from anyshape.records.explored import Explored, RefusedValue
from anyshape.records.export import Exported
from anyshape.records.verdict import CondSide, Refusal, Verdict

_FIXED = "a file has the same outputs at all sizes."
_ONE_DTYPE = "bring the output to one dtype in the model: y.to(torch.float32)."
_ONE_TENSOR = "return one tensor that has the parts along an axis."


def diagnose_cond_sides(verdict: Verdict) -> tuple[Finding, ...]:
    """An error for each function that differs, a warning for each that could not be compared."""
    return tuple(
        _differs(side) if side.failure is not None else _not_compared(side)
        for side in verdict.sides
        if side.failure is not None or not side.is_compared
    )


def _differs(side: CondSide) -> Finding:
    failure = side.failure
    sizes = format_sizes(failure.sizes) if failure is not None else ""
    return Finding(
        code="AS135",
        name="cond-function-wrong",
        what=f"the {_place(side)} function of a torch.cond gives other values in the file.",
        where=side.source,
        why=f"no values of the inputs led to it; compared by itself, it differs at {sizes}.",
        fix="write that function with other operators, or mend the translation of yours that it uses.",
    )


def _not_compared(side: CondSide) -> Finding:
    return Finding(
        code="AS136",
        name="cond-function-not-compared",
        severity=Severity.WARNING,
        what=f"the {_place(side)} function of a torch.cond is in the file, and was not compared.",
        where=side.source,
        why="no values of the inputs led to it, and the function raises for these values.",
        fix="give a function of sizes that draws values which lead to either function.",
    )


def _place(side: CondSide) -> str:
    return "first" if side.side else "second"


def too_many_questions(source: Source | None, most: int) -> Finding:
    """Ways that multiply, or questions that are not the same at all sizes."""
    return Finding(
        code="AS116",
        name="endless-questions",
        what="the model decides by values again and again.",
        where=source,
        why=f"more than {most} ways lead through it, or what it asks changes with the sizes.",
        fix="write the choice as torch.where(condition, a, b), or torch.cond(condition, f, g, inputs).",
        is_fix_untried=True,
    )


def refuses_somewhere(refusal: Refusal) -> Finding:
    """A way through the model that raises where no rule is known."""
    return Finding(
        code="AS117",
        name="way-refuses-somewhere",
        what=f"one way through the model answers at some sizes only: {refusal.message.splitlines()[0]}",
        where=refusal.source,
        why="no simple rule tells where.",
        fix="let every way through forward answer at all sizes.",
        sizes=dict(refusal.sizes),
    )


def diagnose_refused_value(refused: RefusedValue, message: str, source: Source | None) -> Finding:
    """`message` and `source` are those of the error that the module raises."""
    name = refused.name
    return Finding(
        code="AS157",
        name="declared-values-refused",
        what=f"values of {name!r} are declared as {refused.declared}, but the model raises at {refused.number:g}.",
        where=source,
        why=f"at {say_sizes(refused.sizes)}: {first_line(message)}",
        fix=f'declare the values that the model takes: values={{"{name}": "{refused.taken}"}}.'
        if refused.taken
        else "",
        remedy=Remedy(values=((name, refused.taken),)) if refused.taken else None,
        is_fix_untried=bool(refused.taken),
        sizes=dict(refused.sizes),
    )


def diagnose_learned_values(texts: Mapping[str, str], order: str) -> tuple[Finding, ...]:
    """One warning for all inputs whose values are bounded; `order` is that of the values, in words."""
    if not texts:
        return ()
    takes = " and ".join(texts.values()) + (f", {order}" if order else "")
    declared = ", ".join(f'"{name}": "{text}"' for name, text in texts.items())
    return (
        Finding(
            code="AS315",
            name="values-learned",
            severity=Severity.WARNING,
            what=f"the model takes {takes}: the file is promised for these values.",
            why="it raises for other values.",
            fix=f"declare them: values={{{declared}}}, or give a function of sizes, which makes legal values.",
            narrows=True,
        ),
    )


def diagnose_made_values(module: torch.nn.Module, declared: Declared, explored: Explored) -> tuple[Finding, ...]:
    """The finding for the smallest sizes at which our values are to blame; nothing where none are."""
    if not find_made_integers(declared):
        return ()
    for refusal in sorted(explored.refused, key=lambda each: sum(each.sizes.values()))[:3]:
        try:
            with kept(module), torch.no_grad():
                declared.call(module, declared.make(refusal.sizes, 0))
        except Exception as error:  # the module's own refusal, once more, to look at
            found = explain_bad_inputs(module, declared, refusal.sizes, error)
            if found is not None:
                return (found,)
    return ()


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


def narrowed_to_outputs(rule: Rule, refusal: Refusal) -> Finding:
    """The contract has the sizes at which a bare dim gives the outputs of the example."""
    condition = format_condition(rule.condition)
    return Finding(
        code="AS154",
        name="narrowed-to-outputs",
        severity=Severity.WARNING,
        what=f"the contract says {condition}: at other sizes the model returns other outputs.",
        where=refusal.source,
        why=f"at {say_sizes(refusal.sizes)} it returns {refusal.message}; {_FIXED}",
        fix=f"to make it yours, write it: where=[{condition!r}]",
        alternative=_alternative(refusal),
        sizes=refusal.sizes,
        narrows=True,
    )


def outputs_vary(refusal: Refusal, condition: str = "") -> Finding:
    """Sizes that the file cannot leave out give other outputs; `condition` is the rule for those of the example, if known."""
    rule = (
        f"it returns those of the example only where {condition}."
        if condition
        else "no rule was found that says where."
    )
    return Finding(
        code="AS155",
        name="outputs-vary",
        what=f"the model returns other outputs at {say_sizes(refusal.sizes)} than at the sizes of the example.",
        where=refusal.source,
        why=f"there it returns {refusal.message}; {_FIXED}\n{rule}",
        fix=(
            f"promise what one file can keep: where=[{condition!r}]"
            if condition
            else "declare sizes at which the outputs are the same, with where=[...]."
        ),
        reason=Reason.OUTPUTS_VARY if condition else None,
        remedy=Remedy(where=(condition,)) if condition else None,
        is_fix_untried=bool(condition),
        alternative=_alternative(refusal),
        sizes=refusal.sizes,
    )


def _alternative(refusal: Refusal) -> str:
    return _ONE_DTYPE if refusal.has_other_dtypes else _ONE_TENSOR


def _count(number: int) -> str:
    return f"{number or 'no'} output{'' if number == 1 else 's'}"
