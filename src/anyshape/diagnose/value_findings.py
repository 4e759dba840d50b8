"""Findings about values: those that decide what the model does, and those that it takes.

too many ways, or other questions at other sizes                      ->  AS116
one way raises at sizes that no rule describes                        ->  AS117
a function of torch.cond that no compared values lead to              ->  what comparing it by itself came to
a value that is declared as legal, and at which the model raises      ->  AS157, the values that it takes
bounds that were learned by trying                                    ->  a note: the contract promises nothing beyond them
a refusal that goes away with small integers                          ->  AS027: our inputs were bad; give a function of sizes
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from anyshape.diagnose.wording import first_line, say_sizes
from anyshape.domain import format_sizes
from anyshape.findings import Finding, Remedy, Severity, Source
from anyshape.inputs import Declared, explain_bad_inputs
from anyshape.modules.state import kept
from anyshape.records.explored import Explored, RefusedValue
from anyshape.records.verdict import CondSide, Refusal, Verdict


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


def refuses_somewhere(refused: Refusal) -> Finding:
    """A way through the model that raises where no rule is known."""
    return Finding(
        code="AS117",
        name="way-refuses-somewhere",
        what=f"one way through the model answers at some sizes only: {refused.message.splitlines()[0]}",
        where=refused.source,
        why="no simple rule tells where.",
        fix="let every way through forward answer at all sizes.",
        sizes=dict(refused.sizes),
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
    for refusal in sorted(explored.refused, key=lambda refused: sum(refused.sizes.values()))[:3]:
        try:
            with kept(module), torch.no_grad():
                declared.call(module, declared.make(refusal.sizes, 0))
        except Exception as error:  # the module's own refusal, once more, to look at
            found = explain_bad_inputs(module, declared, refusal.sizes, error)
            if found is not None:
                return (found,)
    return ()
