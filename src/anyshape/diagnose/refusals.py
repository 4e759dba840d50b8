"""The module itself refuses sizes of the domain: baked-in sizes, promises that the model does not keep, and notes.

bare dim, refusals follow a rule              ->  AS106, a note: the contract says so
a range or relation that the user wrote       ->  AS103
a dim that answers at one size only           ->  AS102, with the edit where the line shows the literal
refusals that no simple rule tells            ->  AS104
the example itself refused                    ->  AS105
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from anyshape.diagnose.edits import propose_edit
from anyshape.diagnose.wording import first_line, say_promise, say_range, say_sizes
from anyshape.domain import Compare, Condition, Domain, Number, Ref, dims_of, format_condition, holds
from anyshape.findings import Finding, Remedy, Severity
from anyshape.inputs import Declared
from anyshape.records.contract import Rule
from anyshape.records.explored import Explored
from anyshape.records.verdict import Refusal


def diagnose_refusals(declared: Declared, explored: Explored) -> tuple[Finding, ...]:
    """What the module's own refusals mean for the promise."""
    if not explored.refused:
        return ()
    if not explored.answered:
        return (_example_refused(explored.refused[0]),)
    if explored.pinned:
        return tuple(_baked_in(declared, explored, name, size) for name, size in explored.pinned.items())
    if not explored.is_explained:
        return (_unexplained(explored),)
    return tuple(_per_rule(declared, explored))


def _per_rule(declared: Declared, explored: Explored) -> Iterator[Finding]:
    for rule in explored.rules:
        refused = _smallest(explored, rule.condition)
        if _is_users_promise(rule.condition, declared.domain):
            yield _not_kept(declared.domain, rule, refused)
        else:
            yield _narrowed(rule, refused)


def _is_users_promise(rule: Condition, domain: Domain) -> bool:
    """Whether the rule cuts into a range that the user wrote, rather than into a bare name's."""
    dims = [domain.dim(name) for name in dims_of(rule)]
    if isinstance(rule, Compare) and isinstance(rule.left, Ref) and isinstance(rule.right, Number):
        (dim,) = dims
        if rule.op == "<=":
            return dim.max is not None
        if rule.op == ">=":
            return dim.declared and (dim.max is not None or dim.min != 1)
    return any(dim.declared and dim.max is not None for dim in dims)


def _smallest(explored: Explored, rule: Condition) -> Refusal:
    breaking = [refused for refused in explored.refused if not holds(rule, refused.sizes)]
    return min(breaking or explored.refused, key=lambda refused: sum(refused.sizes.values()))


def _baked_in(declared: Declared, explored: Explored, name: str, size: int) -> Finding:
    broadcasts = any(sizes[name] == 1 != size for sizes in explored.answered)
    others = [refused for refused in explored.refused if refused.sizes[name] != size]
    alone = [
        refused
        for refused in others
        if all(refused.sizes[other] == fixed for other, fixed in explored.pinned.items() if other != name)
    ]
    refused = min(alone or others, key=lambda refused: sum(refused.sizes.values()))
    promise = say_promise(declared.domain, name)
    sizes = {pinned: (held, _places(declared, pinned)) for pinned, held in explored.pinned.items()}
    edit = propose_edit(refused.source, sizes, name)
    return Finding(
        code="AS102",
        name="size-baked-in",
        what=f"dim {name!r} is {promise}, but the model works only for {name} = {size}{' or 1' if broadcasts else ''}.",
        where=refused.source,
        why=f"at {say_sizes(refused.sizes)} the model itself raises: {first_line(refused.message)}",
        fix=edit or f"let the line above take the size from its input instead of holding {size}.",
        remedy=Remedy(edits=((refused.source, edit),)) if edit and refused.source is not None else None,
        is_fix_untried=bool(edit),
        alternative=f"if {name} is really fixed, promise that: {_fixed_words(declared, name, size)}",
        sizes=refused.sizes,
    )


def _places(declared: Declared, name: str) -> dict[str, int]:
    return {
        leaf.path: axis
        for leaf in declared.tensor_leaves
        for axis, expression in enumerate(leaf.axes)
        if expression == Ref(name)
    }


def _fixed_words(declared: Declared, name: str, size: int) -> str:
    for leaf in declared.tensor_leaves:
        if any(name in dims_of(axis) for axis in leaf.axes):
            words = " ".join(str(size) if axis == Ref(name) else str(axis).replace(" ", "") for axis in leaf.axes)
            return f"{leaf.path}: {words}"
    return f"{name} == {size}"


def _not_kept(domain: Domain, rule: Rule, refused: Refusal) -> Finding:
    names = dims_of(rule.condition)
    promised = ", ".join(f"{name} {say_range(domain.dim(name))}" for name in names)
    return Finding(
        code="AS103",
        name="promise-not-kept",
        what=f"you promise {promised}, but the model answers only where {format_condition(rule.condition)}.",
        where=refused.source,
        why=f"at {say_sizes(refused.sizes)} the model itself raises: {first_line(refused.message)}",
        fix=f"promise what the model keeps: where=[{format_condition(rule.condition)!r}]",
        remedy=Remedy(where=(format_condition(rule.condition),)),
        is_fix_untried=True,
        alternative="change the line so that it answers there too.",
        sizes=refused.sizes,
    )


def _narrowed(rule: Rule, refused: Refusal) -> Finding:
    return Finding(
        code="AS106",
        name="contract-narrowed",
        severity=Severity.NOTE,
        what=f"the contract says {format_condition(rule.condition)}: the model itself refuses other sizes.",
        where=refused.source,
        why=f"at {say_sizes(refused.sizes)} the model itself raises: {first_line(refused.message)}",
        fix=f"to make it yours, write it: where=[{format_condition(rule.condition)!r}]",
        sizes=refused.sizes,
        narrows=True,
    )


def _unexplained(explored: Explored) -> Finding:
    refused = min(explored.refused, key=lambda refused: sum(refused.sizes.values()))
    answered: Mapping[str, int] = min(explored.answered, key=lambda sizes: sum(sizes.values()))
    tried = len(explored.refused) + len(explored.answered)
    return Finding(
        code="AS104",
        name="sizes-refused",
        what=f"the model refuses {len(explored.refused)} of {tried} sizes tried, such as {say_sizes(refused.sizes)}.",
        where=refused.source,
        why=(
            f"there it raises: {first_line(refused.message)}\n"
            f"it answers at {say_sizes(answered)}; no multiple, bound, equality, sum or product tells the two apart."
        ),
        fix="say which sizes are meant: where=[...], for instance where=['h % 32 == 0', 'a <= b']",
        alternative="change the line so that it answers at all sizes.",
        sizes=refused.sizes,
    )


def _example_refused(refused: Refusal) -> Finding:
    return Finding(
        code="AS105",
        name="example-refused",
        what=f"the model refuses its own example ({say_sizes(refused.sizes)}).",
        where=refused.source,
        why=f"it raises: {first_line(refused.message)}",
        fix="give inputs at which model(*inputs) answers.",
        sizes=refused.sizes,
    )
