"""Fixes are tried before they are shown, by an export under all of them together; axes that a declaration leaves out are
one.

    the file was right, and compared so far   ->  a rule that ends there, or the true name of an output's axis, is shown,
                                                  without another export
    the export under them is kept             ->  the fixes are shown
    a finding comes again                     ->  its fix is not shown
    another finding comes                     ->  the fix is shown, with the finding that comes next
    no time, or nothing to try it on          ->  the fix is shown as `Fix (not tried)`

The export of a trial tries no fixes itself, and works on the copy of the module on which the first export worked.

dynamic={"x": {0: "batch"}}, mask: float32[3, 5]    the module refuses batch = 4 beside 3 rows of mask, and answers
                                                    where mask has 4 rows: axis 0 of 'mask' is left out
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations, islice
from math import inf
from typing import TYPE_CHECKING

from anyshape.domain import Expr, Number, Ref, declare_domain, format_expr, parse_expr
from anyshape.exporting.context import Options, Tell
from anyshape.findings import AnyshapeError, Finding, PromiseBroken, Remedy, Severity
from anyshape.inputs import Declared
from anyshape.inputs.assemble import check_inside
from anyshape.inputs.calls import Inputs
from anyshape.inputs.declared import InputLeaf
from anyshape.inputs.making import BoundedMaker, declare_values, make_from
from anyshape.modules.call_limits import OutOfTime, TimeLimit
from anyshape.modules.module_forms import edited_copy
from anyshape.records.explored import LeftOut, Place
from anyshape.records.export import Export

if TYPE_CHECKING:
    import torch


_STAGE = "trying the fix"
_LEAST_S = 30.0
_TIMES_AS_LONG = 4.0  # a refusal ends an export early; no trial that goes on much longer is waited for
_MOST_AXES = 3
_MOST_TRIALS = 24
_STEPS = (1, 2, 4, 3, -1, 7)
_POINTS = 3
_FEWEST_POINTS = 2


@dataclass(frozen=True)
class Exporting:
    """An export that can be done again: what was exported, and the function that exports it within the time limit."""

    module: torch.nn.Module
    declared: Declared
    options: Options
    run: Callable[[torch.nn.Module, Declared, Options], Export]
    tell: Tell
    limit: TimeLimit
    took_s: float = 0.0

    @property
    def share(self) -> float:
        """The part of the time that is left which a trial may take: some times as long as the first export took."""
        allowed = max(_LEAST_S, _TIMES_AS_LONG * self.took_s)
        return 1.0 if self.limit.left == inf else min(1.0, allowed / self.limit.left)


def try_fixes(broken: PromiseBroken, exporting: Exporting) -> None:
    """Try the fixes of the error's findings, and let its findings show what became of them."""
    right = [attempt for attempt in broken.attempts if attempt.is_right_but_declared_otherwise]
    compared = {finding for attempt in right for finding in attempt.findings}
    broken.set_findings(
        replace(finding, is_fix_untried=False) if finding in compared else finding for finding in broken.findings
    )
    tried = [finding for finding in broken.findings if finding.remedy is not None and finding.is_fix_untried]
    if not tried or exporting.limit.left <= 0:
        return
    errors = _errors_under(_remedy(tried), _on_one_rung(exporting, broken, tried))
    if errors is not None:
        broken.set_findings(
            _tried(finding, broken.findings, errors) if finding in tried else finding for finding in broken.findings
        )


def _remedy(findings: Sequence[Finding]) -> Remedy:
    return reduce(Remedy.joined, (finding.remedy for finding in findings if finding.remedy is not None))


def _on_one_rung(exporting: Exporting, broken: PromiseBroken, tried: Sequence[Finding]) -> Exporting:
    """The export restricted to the first rung that has these findings, if they come from a rung."""
    rungs = [attempt.strategy for attempt in broken.attempts if set(tried) & set(attempt.findings)]
    strategy = rungs[0] if rungs else exporting.options.strategy
    return replace(exporting, options=replace(exporting.options, strategy=strategy, force=False))


def _errors_under(remedy: Remedy, exporting: Exporting) -> tuple[Finding, ...] | None:
    """The errors of an export under the remedy, none if it is kept; None where it could not be tried to its end."""
    try:
        changed = _changed(exporting, remedy)
        if changed is None:
            return None
        exporting.tell(_STAGE, 0, 0)
        made = _export_in_time(changed)
    except OutOfTime:
        return None
    except AnyshapeError as error:
        return tuple(each for each in error.findings if each.severity is Severity.ERROR)
    except Exception:  # the module's, torch's or ours: nothing is learned about the fix
        return None
    return tuple(each for each in made.findings if each.severity is Severity.ERROR)


def _export_in_time(changed: Exporting) -> Export:
    """The export; raises OutOfTime also where it is refused after so long that a rung may have lacked time."""
    with changed.limit.part(changed.share) as seconds:
        try:
            return changed.run(changed.module, changed.declared, changed.options)
        except AnyshapeError as error:
            if changed.limit.left < seconds / 2:  # a rung gets half of the time that is left
                raise OutOfTime from error
            raise


def _changed(exporting: Exporting, remedy: Remedy) -> Exporting | None:
    """What the user would export after the fix; None where the edit of a line cannot be made on a copy.

    Raises DeclarationError where the rules of the fix contradict the declaration or exclude its example.
    """
    declared, module = exporting.declared, exporting.module
    if remedy.where:
        domain = declare_domain(declared.domain.dims, [*declared.domain.relations, *remedy.where])
        check_inside(domain, declared.example_sizes)
        declared = replace(declared, domain=domain)
    for path, axis, expression in remedy.input_axes:
        declared = with_axes(declared, [(path, axis)], parse_expr(expression))
    if remedy.output_axes:
        axes = {name: dict(by_axis) for name, by_axis in declared.output_axes.items()}
        for name, axis, expression in remedy.output_axes:
            axes.setdefault(name, {})[axis] = parse_expr(expression)
        declared = replace(declared, output_axes=axes)
    if remedy.values:
        declared = declare_values(declared, {**declared.value_texts, **dict(remedy.values)})
    if remedy.edits:
        edited = edited_copy(module, remedy.edits)
        if edited is None:
            return None
        module = edited
    options = replace(exporting.options, **dict(remedy.options))  # type: ignore[arg-type]
    return replace(exporting, module=module, declared=declared, options=options)


def _without_fix(finding: Finding) -> Finding:
    """The finding with other words in the place of a fix that does not help, or with its alternative."""
    if finding.remedy is not None and finding.remedy.otherwise:
        return replace(finding, fix=finding.remedy.otherwise, remedy=None, is_fix_untried=False)
    alternative = finding.alternative
    return replace(finding, fix=alternative, alternative="", remedy=None, is_fix_untried=bool(alternative))


def _tried(finding: Finding, before: Sequence[Finding], after: Sequence[Finding]) -> Finding:
    """The finding, with what an export under its fix has shown; `after` are the errors of that export."""
    others = [other for other in before if other is not finding]
    new = [each for each in after if not any(each.repeats(other) for other in others)]
    if any(each.reason is finding.reason for each in new):
        return _without_fix(finding)
    following = next(iter(new), None)
    then = f"\nthat is not enough: next is {following.code} {following.name}: {following.what}" if following else ""
    return replace(finding, fix=finding.fix + then, is_fix_untried=False)


Answers = Callable[[Inputs], bool]


def find_left_out(declared: Declared, answers: Answers) -> tuple[LeftOut, ...]:
    """For each dim that the module refuses to vary alone: the fewest static axes with which it varies, if there are any."""
    if declared.source != "words" or declared.only_given_values:
        return ()
    found = (_axes_beside(declared, name, answers) for name in declared.domain.names)
    return tuple(each for each in found if each is not None)


def _axes_beside(declared: Declared, name: str, answers: Answers) -> LeftOut | None:
    size = declared.example_sizes[name]
    static = [
        (leaf.path, axis)
        for leaf in declared.tensor_leaves
        for axis, expression in enumerate(leaf.axes)
        if expression == Number(size)
    ]
    if not static:
        return None
    points = list(islice(_refused_alone(declared, name, answers), _POINTS))
    if len(points) < _FEWEST_POINTS:
        return None
    for places in islice(_subsets(static), _MOST_TRIALS):
        following = with_axes(declared, places, Ref(name))
        if all(answers(following.make(sizes, 0)) for sizes in points):
            tried = tuple(sorted(sizes[name] for sizes in points))
            return LeftOut(name, places, size, tried, _dynamic_axes(following.leaves))
    return None


def _refused_alone(declared: Declared, name: str, answers: Answers) -> Iterator[Mapping[str, int]]:
    """The example's sizes with another size of one dim, where the module refuses."""
    for step in _STEPS:
        sizes = {**declared.example_sizes, name: declared.example_sizes[name] + step}
        if declared.domain.contains(sizes) and not answers(declared.make(sizes, 0)):
            yield sizes


def _subsets(places: Sequence[Place]) -> Iterator[tuple[Place, ...]]:
    for count in range(1, min(_MOST_AXES, len(places)) + 1):
        yield from combinations(places, count)


def with_axes(declared: Declared, places: Sequence[Place], expression: Expr) -> Declared:
    """The declaration with these axes following the expression; inputs are made from the same example."""
    leaves = tuple(
        replace(
            leaf, axes=tuple(expression if (leaf.path, axis) in places else own for axis, own in enumerate(leaf.axes))
        )
        for leaf in declared.leaves
    )
    plain = replace(declared, leaves=leaves, make=make_from(leaves, [(declared.example_sizes, declared.bound)]))
    return replace(plain, make=BoundedMaker(plain, plain.value_ranges))


def _dynamic_axes(leaves: Sequence[InputLeaf]) -> dict[str, dict[int, str]]:
    """What `dynamic` takes for these axes: `{"x": {0: "batch"}}`."""
    words = {
        leaf.name: {axis: format_expr(each) for axis, each in enumerate(leaf.axes) if not isinstance(each, Number)}
        for leaf in leaves
    }
    return {name: axes for name, axes in words.items() if axes}
