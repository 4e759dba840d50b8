"""The module itself refuses sizes of the domain: baked-in sizes, promises that the model does not keep, and notes.

bare dim, refusals follow a rule              ->  AS106, a warning: the contract has it
a range or relation that the user wrote       ->  AS103
a dim that answers at one size only           ->  AS102, with the edit where the line shows the literal; a warning if
                                                  its axes were declared without a name
refusals of a declared dim without a rule     ->  AS104; also such as no learned rule forbids
refusals of bare dims without a rule          ->  AS142, a warning, if the file raises there too; else AS104
values are refused, not sizes                 ->  AS316, also where the user's own function makes them
the example itself refused                    ->  AS105
other outputs at other sizes                  ->  `varying_outputs`
A dim is declared if a bound or a relation that the user wrote mentions it; the others are bare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from anyshape.diagnose import first_line, say_range, say_sizes
from anyshape.diagnose.consent import accept_refusals, declared_dims, is_cut, may_stay
from anyshape.diagnose.one_size import diagnose_one_size, follow_dim, say_held
from anyshape.diagnose.value_findings import find_smallest_varying, narrowed_to_outputs, outputs_vary
from anyshape.domain import Condition, Domain, dims_of, format_condition, holds
from anyshape.findings import Finding, Reason, Remedy, Severity
from anyshape.inputs import Declared
from anyshape.records.contract import Rule
from anyshape.records.explored import Explored, Misfit, RefusedValue
from anyshape.records.verdict import Refusal, Verdict


def diagnose_refusals(declared: Declared, explored: Explored) -> tuple[Finding, ...]:
    """What the module's own refusals mean for the promise."""
    if not explored.refused:
        return ()
    if not explored.answered:
        return (_example_refused(explored.refused[0]),)
    if explored.by_value is not None:
        return (_refused_by_value(explored.by_value),)
    if explored.pinned:
        return tuple(_one_sizes(declared, explored))
    if not explored.is_explained:
        if (varying := find_smallest_varying(explored.refused)) is not None:
            return (outputs_vary(varying),)
        if explored.misfit is not None:
            return (_held_in_one_size(explored, explored.misfit),)
        return (_unexplained(explored),) if _is_promise_refused(declared.domain, explored) else ()
    return tuple(_per_rule(declared, explored))


def diagnose_refused_inside(verdict: Verdict, domain: Domain, explored: Explored) -> tuple[Finding, ...]:
    """What it means that the module refused sizes of the contract while the file was compared."""
    inside = verdict.refused_in(domain)
    if not inside:
        return ()
    if explored.is_explained:
        return (_unexplained(explored, inside[0], "the rules that were learned do not forbid it."),)
    answered = [each for each in inside if each.file_answers is not False]
    if answered:
        return (_unexplained(explored, answered[0], "a file would answer there, so without a rule it is not kept."),)
    return (_rule_unknown(verdict, inside),)


def _one_sizes(declared: Declared, explored: Explored) -> Iterator[Finding]:
    """Dims that answer at one size: errors; where all of them may stay, warnings, beside those of other rules."""
    found = [diagnose_one_size(declared, explored, name) for name in explored.pinned]
    if not explored.is_explained or not all(may_stay(declared, name) for name in explored.pinned):
        yield from found
        return
    yield from accept_refusals(found)
    others = [rule for rule in explored.rules if not explored.pinned.keys() >= set(dims_of(rule.condition))]
    yield from _per_rule(declared, replace(explored, rules=tuple(others)))


def _per_rule(declared: Declared, explored: Explored) -> Iterator[Finding]:
    written = declared_dims(declared.domain)
    kept = explored.narrow(declared.domain)
    mentioned = {name for rule in explored.rules for name in dims_of(rule.condition)}
    cut = {name for name in written & mentioned if is_cut(name, kept, declared.domain.dim(name))}
    for rule in explored.rules:
        refused, names = _smallest(explored, rule.condition), dims_of(rule.condition)
        if written.issuperset(names) or cut.intersection(names):
            yield _not_kept(declared.domain, rule, refused)
        else:
            yield _narrowed(rule, refused)


def _is_promise_refused(domain: Domain, explored: Explored) -> bool:
    """Whether a declared dim alone, moved from an answered size, leads to a refused one."""
    written = declared_dims(domain)
    bare = [name for name in domain.names if name not in written]
    answered = {tuple(sizes[name] for name in bare) for sizes in explored.answered}
    return any(tuple(refused.sizes[name] for name in bare) in answered for refused in explored.refused)


def _smallest(explored: Explored, rule: Condition) -> Refusal:
    breaking = [refused for refused in explored.refused if not holds(rule, refused.sizes)]
    others = [other.condition for other in explored.rules if other.condition != rule]
    alone = [refused for refused in breaking if all(holds(other, refused.sizes) for other in others)]
    return min(alone or breaking or explored.refused, key=lambda refused: sum(refused.sizes.values()))


def _not_kept(domain: Domain, rule: Rule, refusal: Refusal) -> Finding:
    if refusal.outputs is not None:
        return outputs_vary(refusal, format_condition(rule.condition))
    names = dims_of(rule.condition)
    promised = ", ".join(f"{name} {say_range(domain.dim(name))}" for name in names)
    return Finding(
        code="AS103",
        name="promise-not-kept",
        reason=Reason.ANSWERS_ON_LESS,
        about=(format_condition(rule.condition),),
        what=f"you promise {promised}, but the model answers only where {format_condition(rule.condition)}.",
        where=refusal.source,
        why=f"at {say_sizes(refusal.sizes)} the model itself raises: {first_line(refusal.message)}",
        fix=f"promise what the model keeps: where=[{format_condition(rule.condition)!r}]",
        remedy=Remedy(where=(format_condition(rule.condition),)),
        is_fix_untried=True,
        alternative="change the line so that it answers there too.",
        sizes=refusal.sizes,
    )


def _narrowed(rule: Rule, refusal: Refusal) -> Finding:
    if refusal.outputs is not None:
        return narrowed_to_outputs(rule, refusal)
    return Finding(
        code="AS106",
        name="contract-narrowed",
        severity=Severity.WARNING,
        what=f"the contract says {format_condition(rule.condition)}: the model itself refuses other sizes.",
        where=refusal.source,
        why=f"at {say_sizes(refusal.sizes)} the model itself raises: {first_line(refusal.message)}",
        fix=f"to make it yours, write it: where=[{format_condition(rule.condition)!r}]",
        sizes=refusal.sizes,
        narrows=True,
    )


def _unexplained(explored: Explored, refusal: Refusal | None = None, more: str = "") -> Finding:
    """No rule was found; `more` is what else is known of the refused point."""
    refusal = refusal or min(explored.refused, key=lambda refusal: sum(refusal.sizes.values()))
    made = explored.made_value
    if made is not None and refusal.kind in {each.kind for each in explored.refused}:
        return _refused_by_function(made, next(each for each in explored.refused if each.sizes == made.sizes))
    answered: Mapping[str, int] = min(explored.answered, key=lambda sizes: sum(sizes.values()))
    refusals = len({tuple(each.sizes.items()) for each in (*explored.refused, refusal)})
    tried = refusals + len(explored.answered)
    return Finding(
        code="AS104",
        name="sizes-refused",
        what=f"the model refuses {refusals} of {tried} sizes tried, such as {say_sizes(refusal.sizes)}.",
        where=refusal.source,
        why=(
            f"there it raises: {first_line(refusal.message)}\n"
            f"it answers at {say_sizes(answered)}; no rule was found that tells the two apart."
            + (f"\n{more}" if more else "")
        ),
        fix="declare the sizes at which the model answers, with where=[...].",
        alternative="change the line so that it answers at all sizes.",
        sizes=refusal.sizes,
    )


def _held_in_one_size(explored: Explored, misfit: Misfit) -> Finding:
    """The sizes that answer are those that lead to the size of a tensor which the module holds."""
    refusal, answered = misfit.refusal, explored.answered[0]
    return Finding(
        code="AS104",
        name="sizes-refused",
        what=f"the model refuses {say_sizes(refusal.sizes)}: {misfit.held.name!r} has one size.",
        where=refusal.source,
        why=f"there it raises: {first_line(refusal.message)}{say_held(misfit.held)}\nit answers at {say_sizes(answered)}.",
        fix=follow_dim(misfit.held, "the sizes"),
        alternative="if the sizes are really fixed, declare numbers in place of the dims.",
        sizes=refusal.sizes,
    )


def _rule_unknown(verdict: Verdict, inside: Sequence[Refusal]) -> Finding:
    first = min(inside, key=lambda refused: sum(refused.sizes.values()))
    count = f"{len(inside)} of {len(inside) + len(verdict.tried)}"
    return Finding(
        code="AS142",
        name="rule-unknown",
        severity=Severity.WARNING,
        what=f"the model refuses {count} sizes tried, such as {say_sizes(first.sizes)}, and no rule was found for it.",
        where=first.source,
        why=(
            f"there it raises: {first_line(first.message)}\n"
            f"the file raises at each of these {len(inside)} sizes too; the contract names them."
        ),
        fix="if you know the rule, write it: where=[...]; the file then refuses the other sizes by itself.",
        sizes=first.sizes,
        narrows=True,
    )


def _refused_by_value(refusal: Refusal) -> Finding:
    return Finding(
        code="AS316",
        name="model-refuses-values",
        what="the model raises for some values of its inputs, at sizes at which it answers for others.",
        where=refusal.source,
        why=(
            f"at {say_sizes(refusal.sizes)} it raises: {first_line(refusal.message)}\n"
            "at the same sizes it answers when the inputs are nearer to zero; which values it takes is unknown."
        ),
        fix="declare the values that are legal, with values={...}, or give a function of sizes that makes such values.",
        sizes=refusal.sizes,
    )


def _refused_by_function(made: RefusedValue, refusal: Refusal) -> Finding:
    """The sizes are not at fault: with other values the model answers at them."""
    return Finding(
        code="AS316",
        name="model-refuses-values",
        what=f"your function makes {made.number:g} for {made.name!r}, and the model raises: it takes {made.taken}.",
        where=refusal.source,
        why=(
            f"at {say_sizes(made.sizes)} it raises: {first_line(refusal.message)}\n"
            "at the same sizes it answers for values that it takes."
        ),
        fix=f'declare the values that the model takes: values={{"{made.name}": "{made.taken}"}}.',
        remedy=Remedy(values=((made.name, made.taken),)),
        is_fix_untried=True,
        alternative=f"let the function make such values of {made.name!r} only, or change the line so that it takes others.",
        sizes=dict(made.sizes),
    )


def _example_refused(refusal: Refusal) -> Finding:
    return Finding(
        code="AS105",
        name="example-refused",
        what=f"the model refuses its own example ({say_sizes(refusal.sizes)}).",
        where=refusal.source,
        why=f"it raises: {first_line(refusal.message)}",
        fix="give inputs at which model(*inputs) answers.",
        sizes=refusal.sizes,
    )
