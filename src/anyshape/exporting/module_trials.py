"""Call the module at given sizes, to find where it answers, with values that it takes, before anything is captured.

sizes refused -> integers that we made were illegal?       bounds of integers are learned
              -> or are smaller floats taken there?        bounds of floats are learned; else the sizes are at fault
              -> with integers inside the bounds, where    values decide, as those of a position table behind a padding
                 others inside are answered                token do: several draws at each size
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import torch

from anyshape.capture.guard_candidates import CapturedOnce, find_candidates
from anyshape.capture.symbolic import Traces
from anyshape.diagnose.value_findings import diagnose_refused_value, find_smallest_varying
from anyshape.domain import Sizes
from anyshape.explore import Costing, costing, explore
from anyshape.explore.legal_floats import find_calm, find_refused_values, learn_floats
from anyshape.explore.legal_values import LegalValues, are_legal, find_refused_by_function, learn_values
from anyshape.exporting.calls_at_sizes import Outcomes, drawn_inputs, make_trial
from anyshape.exporting.context import Options, Tell
from anyshape.findings import Finding
from anyshape.inputs import Declared, Inputs
from anyshape.modules.line_trace import find_return
from anyshape.modules.raised_errors import find_layer, find_misfit
from anyshape.records.explored import Explored, Lesson, Misfit
from anyshape.records.verdict import Refusal
from anyshape.verify import Reference, Refused
from anyshape.verify.patterns import is_number
from anyshape.verify.tensors import map_tensors

STAGE = "trying the model"
_LOOKED_AT, _DRAWS = 8, 3


@dataclass(frozen=True)
class Tried:
    """The declaration, with bounds of values that were learned, and where the module answers under it."""

    declared: Declared
    explored: Explored
    cost: Costing
    values: Mapping[str, str] = field(default_factory=dict)
    order: str = ""
    programs: Traces = field(default_factory=dict)
    """Programs that torch.export has made of the module under this declaration."""
    has_legal_integers: bool = False
    """Whether bounds of integers were found, and refusals are left with integers inside of them: those are of sizes."""


@dataclass
class KnownBefore:
    """What is known of a module under one declaration, so that rules are learned again without trying all of it again."""

    cost: Costing | None = None
    captured: CapturedOnce = field(default_factory=CapturedOnce)
    outcomes: Outcomes = field(default_factory=dict)
    refused: tuple[Refusal, ...] = ()
    """Refusals of calls under another declaration, with values that are legal under this one, too."""

    def note_answer(self, sizes: Sizes) -> None:
        """The module answers at these sizes with the usual outputs: it need not be called there to see that."""
        self.outcomes[None, tuple(sorted(sizes.items()))] = None


def try_module(
    module: torch.nn.Module,
    declared: Declared,
    reference: Reference,
    options: Options,
    lessons: Sequence[Lesson] = (),
    known: KnownBefore | None = None,
    tell: Tell = lambda stage, done, total: None,
) -> Tried:
    """Where the module answers; where it refuses values that were drawn, with such as it takes. `lessons`: see `explore`.

    What is found under this declaration is added to `known`. `tell` is called with the number of sizes.
    """
    trials = _Trials(module, reference, options, lessons, tell)
    known = known or KnownBefore()
    first = trials.explore_under(declared, known)
    raised = [each for each in first.explored.refused if each.outputs is None]
    if not raised or not first.explored.answered:
        return first
    raised.sort(key=lambda refusal: sum(refusal.sizes.values()))
    refused = [each.sizes for each in raised]
    integers = learn_values(declared, reference.answers)
    legal = {} if integers is None else _find_legal(declared, integers, known.outcomes)
    found = trials.explore_again(integers, refused, legal)
    if found is None:
        calm = find_calm(declared, reference.answers, refused)
        found = trials.explore_again(learn_floats(declared, reference.answers, calm), refused)
        by_value = next((each for each in raised if any(each.sizes == other.sizes for other in calm)), None)
        found = found or replace(first, explored=replace(first.explored, by_value=by_value))
        if not found.explored.is_explained and not found.cost.is_dear:
            made = find_refused_by_function(declared, reference.answers, refused)
            found = replace(found, explored=replace(found.explored, made_value=made))
    found = _with_layers(_with_misfit(found, reference), reference)
    return replace(found, has_legal_integers=integers is not None)


@dataclass
class _Trials:
    """Explorations of one module, under its declaration and with learned bounds of values; all count their sizes together."""

    module: torch.nn.Module
    reference: Reference
    options: Options
    lessons: Sequence[Lesson]
    tell: Tell
    _done: int = 0

    def explore_under(self, declared: Declared, known: KnownBefore) -> Tried:
        """Where the module answers under a declaration."""
        verify = self.options.verify
        cost = known.cost or costing(self.module, declared, verify.budget_s, thorough=self.options.thorough)
        known.cost = cost
        candidates = partial(find_candidates, self.module, declared, known.captured)

        def explore_with(*, several: bool) -> Explored:
            draws = _DRAWS if several else None
            trial = make_trial(declared, self.reference, draws=draws, known=known.outcomes, cost=cost)
            try_sizes = partial(self._count, trial)
            lessons = [*self.lessons, *(Lesson(refusal.sizes) for refusal in known.refused)]
            few = verify.is_skipped
            return explore(declared, try_sizes, cost, lessons, seed=verify.seed, candidates=candidates, few=few)

        several = _need_several_draws(declared, self.reference, self.lessons, known.outcomes)
        explored = explore_with(several=several or bool(known.refused))
        if not several and known.refused:
            explored = explored if explored.is_explained else explore_with(several=False)
        elif not several and _depends_on_values(declared, explored, cost, self.reference, known.outcomes):
            stricter = explore_with(several=True)
            explored = stricter if stricter.is_explained else explored  # equal integers may be illegal
        return _with_return_line(Tried(declared, explored, cost, programs=known.captured.traces), self.reference)

    def explore_again(
        self, learned: LegalValues | None, refused: Sequence[Sizes], legal: Outcomes | None = None
    ) -> Tried | None:
        """Explore with values inside learned bounds; None where these change nothing at the refused sizes.

        `legal` are outcomes of calls with values that are inside of the bounds. Where such values are refused, and others
        inside are answered at the same sizes, values decide: several are tried at each size, of which these are the first.
        """
        if learned is None:
            return None
        try_again = make_trial(learned.declared, self.reference)
        changed = [sizes for sizes in refused[:_LOOKED_AT] if try_again(sizes) is None]
        if not changed:
            return None
        refusals = tuple(each for each in (legal or {}).values() if each is not None)
        known = KnownBefore()
        if legal and any(each.sizes in changed for each in refusals):
            known = KnownBefore(outcomes=dict(legal), refused=refusals)
        return replace(self.explore_under(learned.declared, known), values=learned.texts, order=learned.order)

    def _count(self, try_sizes: Callable[[Sizes], Refusal | None], sizes: Sizes) -> Refusal | None:
        self._done += 1
        self.tell(STAGE, self._done, 0)
        return try_sizes(sizes)


def _need_several_draws(declared: Declared, reference: Reference, lessons: Sequence[Lesson], known: Outcomes) -> bool:
    """Whether values may decide about refusals that lessons show: integers do, and others where one draw is answered."""
    refused = [lesson.sizes for lesson in lessons if lesson.rule is None]
    try_sizes = make_trial(declared, reference, known=known)
    return bool(refused) and (_has_integers(declared) or any(try_sizes(sizes) is None for sizes in refused))


def _find_legal(declared: Declared, learned: LegalValues, known: Outcomes) -> Outcomes:
    """Those of the outcomes of one draw whose values are inside the learned bounds."""
    single = {key: outcome for key, outcome in known.items() if key[0] is None}
    return {
        (draws, sizes): outcome
        for (draws, sizes), outcome in single.items()
        if are_legal(learned, declared.make(dict(sizes), 0), dict(sizes))
    }


def diagnose_declared_values(declared: Declared, explored: Explored, reference: Reference) -> tuple[Finding, ...]:
    """An error for each input with a declared value at which the module raises."""
    wide = sorted(
        (each for each in explored.answered[1:] if min(each.values()) > 1), key=lambda each: sum(each.values())
    )

    def takes(inputs: Inputs) -> bool:
        answer = reference.recall(inputs)
        return not isinstance(answer, Refused) or answer.memory  # too little memory is no fault of the values

    found = find_refused_values(declared, takes, [*explored.answered[:1], *wide])
    answers = [(refused, reference.run(refused.inputs)) for refused in found]
    refusals = [(refused, answer) for refused, answer in answers if isinstance(answer, Refused)]
    return tuple(diagnose_refused_value(refused, answer.message, answer.source) for refused, answer in refusals)


def _depends_on_values(
    declared: Declared, explored: Explored, cost: Costing, reference: Reference, known: Outcomes
) -> bool:
    """Whether rules hold for some integers only, as those of a position table behind a padding token do.

    Dear calls are stopped early: an index beyond a table is met in the first operators.
    """
    if not explored.refused or not _has_integers(declared):
        return False
    if not explored.is_explained:
        return True
    dear = [sizes for sizes in explored.ends if cost.is_dear or cost(sizes) > cost.cheap]
    drawn = [inputs for sizes in dear for inputs in drawn_inputs(declared, sizes, _DRAWS)]
    try_several = make_trial(declared, reference, draws=_DRAWS, known=known, cost=cost)
    others = (sizes for sizes in explored.ends if sizes not in dear)
    return any(map(cost.refuses_inputs_early, drawn)) or any(try_several(sizes) is not None for sizes in others)


def _has_integers(declared: Declared) -> bool:
    found: list[bool] = []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        found.append(is_number(tensor))
        return tensor

    map_tensors(declared.make(declared.example_sizes, 0), note)
    return any(found)


def _with_misfit(tried: Tried, reference: Reference) -> Tried:
    """`tried` with a tensor of the module that does not fit other sizes, where no rule describes the refusals."""
    explored = tried.explored
    if explored.is_explained and not explored.pinned:
        return tried
    raised = [each for each in explored.refused if each.outputs is None]
    for each in raised[:: max(1, -(-len(raised) // _LOOKED_AT))]:
        found = find_misfit(reference.module, partial(reference.run, tried.declared.make(each.sizes, 0), watched=True))
        if found is not None and (explored.pinned or not found.is_factor):
            return replace(tried, explored=replace(explored, misfit=Misfit(found, each)))
    return tried


def _with_layers(tried: Tried, reference: Reference) -> Tried:
    """`tried` with the layers whose weights fix the size of a dim that has one size only."""
    layers = {}
    for name in tried.explored.pinned:
        answer = reference.run(tried.declared.make(tried.explored.refusal_beside(name).sizes, 0))
        layer = find_layer(reference.module, answer.layer) if isinstance(answer, Refused) else None
        if layer is not None:
            layers[name] = layer
    return replace(tried, explored=replace(tried.explored, layers=layers))


def _with_return_line(tried: Tried, reference: Reference) -> Tried:
    """`tried`, where refusals and rules about other outputs have the line that returns these."""
    explored = tried.explored
    smallest = find_smallest_varying(explored.refused)
    if smallest is None:
        return tried
    source = find_return(partial(reference.run, tried.declared.make(smallest.sizes, 0), watched=True))
    refused = tuple(each if each.outputs is None else replace(each, source=source) for each in explored.refused)
    rules = tuple(replace(rule, source=rule.source or source) for rule in explored.rules)
    return replace(tried, explored=replace(explored, refused=refused, rules=rules))
