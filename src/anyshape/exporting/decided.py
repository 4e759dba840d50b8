"""The rung for models that decide by values: each condition, and the model on each side of it, is exported alone; then joined.

    if x.sum() > 0: return x * 2          question: x.sum() > 0; where it is true: x * 2; where it is not: x - 1
    return x - 1                    ->    If(question, then: x * 2, else: x - 1)

Every part is exported by the first three rungs and is verified by itself, against the module with these decisions fixed; the
file as a whole is then verified against the module as it is. An int that the model reads from a tensor goes on as a tensor
where it is only computed with; where torch needs an int, each part gets it as the length of a further input, and the file
chooses the part by its sign:

    x[:, : int(k)]            ->    If(k < 0, then: the part x[:, :-size], else: the part x[:, :size])
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from anyshape.diagnose.captures import diagnose_translation_error
from anyshape.diagnose.value_findings import refuses_somewhere, too_many_questions
from anyshape.domain import is_about
from anyshape.explore import costing, explore
from anyshape.exporting.attempts import verify_exported
from anyshape.exporting.bounded import narrowed
from anyshape.exporting.calls_at_sizes import make_trial
from anyshape.exporting.context import ExportContext
from anyshape.findings import AnyshapeError, Finding, PromiseBroken, Reason, Source
from anyshape.inputs import Declared, Inputs, flatten_outputs
from anyshape.inputs.added_inputs import with_numbers
from anyshape.intercept.fixed_decisions import (
    Below,
    FixedDecisions,
    QuestionFound,
    QuestionModule,
    Script,
    Times,
    find_next_question,
)
from anyshape.intercept.questions import Asked, Ints
from anyshape.modules.state import kept
from anyshape.optimize import fold_norms, share_outer_values
from anyshape.records.captured import Captured
from anyshape.records.contract import Rule
from anyshape.records.explored import Explored
from anyshape.records.export import Attempt, Exported
from anyshape.records.verdict import Refusal
from anyshape.translate.decisions import Choice, FailingNode, ReadInt, Repeat, Tree, compose
from anyshape.verify import Reference

STRATEGY = "decided"
_MOST_PARTS = 24
_DRAWS = 4
_PLACES = 4
_SURELY_A_LOOP = 4
_SURELY_SLICES = 2
_LONGEST = 2**16

TryRungs = Callable[[ExportContext], tuple[Attempt, ...]]


def asks_for_values(attempts: Sequence[Attempt], context: ExportContext) -> bool:
    """Whether no earlier rung gave a right file, one of them because values decide in it; or the user chose this rung."""
    if context.options.strategy is not None:
        return context.options.strategy == STRATEGY
    is_right = any(attempt.is_right for attempt in attempts)
    return not is_right and any(attempt.has(Reason.VALUES_DECIDE) for attempt in attempts)


def decide_by_values(context: ExportContext, try_rungs: TryRungs) -> Attempt:
    """The whole rung, from the first question to the verdict. Ints that are read from tensors stay tensors as long as
    they can. If no file comes of that, the slices that they end are masks; then ints are sizes from the start."""
    part = replace(context, options=replace(context.options, strategy=None), is_part=True)
    tree = _Tree(part, try_rungs, "tensors")
    attempt = _decide(context, tree)
    if not attempt.is_right and tree.asks_for_slices:
        masked = _decide(context, _Tree(part, try_rungs, "masks"))
        attempt = masked if masked.is_right or attempt.verdict is None else attempt
    if attempt.is_right:
        return attempt
    other = _decide(context, _Tree(part, try_rungs, "sizes"))
    return other if other.is_right or attempt.verdict is None else attempt


def _decide(context: ExportContext, tree: _Tree) -> Attempt:
    try:
        exported = compose(tree.grow(()), context.declared)
        if context.options.optimize:
            share_outer_values(exported.model)
            fold_norms(exported.model)
        regions = tuple(region for part in tree.captured for region in part.regions)
        outputs = tuple(output for _, output in exported.outputs)
        captured = Captured(STRATEGY, regions, outputs, tuple(tree.decisions))
        declared, explored = narrowed(context.declared, context.explored, tree.rules)
        attempt = verify_exported(captured, exported, replace(context, declared=declared, explored=explored))
        return replace(attempt, findings=(*tree.findings, *attempt.findings), rules=tuple(tree.rules))
    except AnyshapeError as error:
        return Attempt(STRATEGY, error.findings)
    except Exception as error:  # a rung that crashes is a note, not the end
        return Attempt(STRATEGY, (diagnose_translation_error(error),))


@dataclass
class _Tree:
    """The tree of decisions while it grows, and what was captured for it."""

    context: ExportContext
    try_rungs: TryRungs
    ints: Ints
    captured: list[Captured] = field(default_factory=list)
    decisions: list[Source] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    found: dict[Script, list[QuestionFound]] = field(default_factory=dict)
    parts: int = 0
    asks_for_slices: bool = False

    def grow(self, script: Script) -> Tree:
        """What follows after these decisions. Raises PromiseBroken where a part has no right file."""
        question_found = self._questions_found(script)
        numbers = _smallest([each.numbers for each in question_found])
        questions = [each.asked for each in question_found if each.asked is not None]
        if not questions:
            fixed = FixedDecisions(self.context.module, script, ints=self.ints)
            return self._exported(fixed, numbers, answers=True)
        asked = questions[0]
        self.asks_for_slices |= any(question.ends_a_slice for question in questions)
        if len({question.kind for question in questions}) > 1 or self.parts >= _MOST_PARTS:
            raise PromiseBroken(too_many_questions(asked.source, _MOST_PARTS))
        if asked.source is not None and asked.source not in self.decisions:
            self.decisions.append(asked.source)
        if asked.kind == "number":
            if asked.ends_a_slice and self._is_asked_again(script, self._free_names(script), asked):
                raise PromiseBroken(too_many_questions(asked.source, _MOST_PARTS))  # slices in a loop: masks hold them
            return self._number(script, asked, numbers, questions)
        truths = ((truth,) * _SURELY_A_LOOP for truth in (True, False))
        repeated = next((same[0] for same in truths if self._is_asked_again(script, same, asked)), None)
        if repeated is not None:
            times = Times(self._free_name(script), repeated)
            question = self._question((*script, times), asked, {**numbers, times.name: 1})
            return Repeat(question, times.name, repeated, self.grow((*script, times, not repeated)))
        question = self._question(script, asked, numbers)
        return Choice(question, self.grow((*script, True)), self.grow((*script, False)))

    def _number(self, script: Script, asked: Asked, numbers: Mapping[str, int], questions: Sequence[Asked]) -> ReadInt:
        """What follows a number, on both sides of zero; a side without a right file, to which no values led, refuses."""
        name = self._free_name(script)
        question = self._question(script, asked, numbers)
        if not any(each.may_be_negative for each in questions):
            return ReadInt(question, name, self.grow((*script, name)))
        values = [int(each.value) for each in questions]
        then = self._side((*script, name), asked, is_met=any(value >= 0 for value in values))
        below = self._side((*script, Below(name)), asked, is_met=any(value < 0 for value in values))
        return ReadInt(question, name, then, below)

    def _side(self, script: Script, asked: Asked, *, is_met: bool) -> Tree:
        before = len(self.captured), len(self.decisions)
        try:
            return self.grow(script)
        except PromiseBroken:
            if is_met:
                raise
            del self.captured[before[0] :], self.decisions[before[1] :]
            sign = "below zero" if isinstance(script[-1], Below) else "zero or more"
            line = f" ({asked.source.file}:{asked.source.line})" if asked.source else ""
            return FailingNode(f"the model refuses these values: a number that is {sign} was never met{line}")

    def _question(self, script: Script, asked: Asked, numbers: Mapping[str, int]) -> Exported:
        module = QuestionModule(self.context.module, script, asked.kind, ints=self.ints)
        question = self._exported(module, numbers)
        if isinstance(question, FailingNode):
            raise PromiseBroken(too_many_questions(asked.source, _MOST_PARTS))
        return question

    def _is_asked_again(self, script: Script, decisions: Script, asked: Asked) -> bool:
        """Whether the same line reads a value again after each of these decisions, as that of a `while` does."""
        for times in range(1, len(decisions) + 1):
            later = [each.asked for each in self._questions_found((*script, *decisions[:times]))]
            if not any(other is not None and other.source == asked.source for other in later):
                return False
        return True

    def _at_real_numbers(self, declared: Declared, script: Script, explored: Explored) -> Explored:
        """Where the module's questions were found, each time with the numbers that it really read."""
        points = [
            {**question_found.sizes, **question_found.numbers}
            for question_found in self._questions_found(script)
            if question_found.is_real and max(question_found.numbers.values(), default=0) <= _LONGEST
        ]
        answered = [point for point in points if set(point) == set(declared.domain.names)]
        unlike = tuple({tuple(point.items()): point for point in answered}.values())
        is_known = bool(unlike)
        return replace(explored, rules=(), answered=unlike, corners=unlike, is_explained=is_known)

    def _find_question(self, script: Script, inputs: Inputs) -> QuestionFound | None:
        """The module's question about these inputs; None where it raises."""
        import torch

        try:
            with kept(self.context.module), torch.no_grad():
                return find_next_question(self.context.module, inputs.args, inputs.kwargs, script, ints=self.ints)
        except Exception:
            return None

    def _numbers(self, script: Script, inputs: Inputs) -> Mapping[str, int]:
        question_found = self._find_question(script, inputs)
        return question_found.numbers if question_found is not None and question_found.is_real else {}

    def _free_name(self, script: Script) -> str:
        return self._free_names(script)[0]

    def _free_names(self, script: Script) -> tuple[str, ...]:
        """Names for the next numbers of a script, as many as the loop that reads them has at least."""
        declared = self.context.declared
        taken = {*declared.domain.names, *(leaf.path for leaf in declared.leaves)}
        first = 1 + sum(not isinstance(each, bool) for each in script)
        names = (name for number in itertools.count(first) if (name := f"value_{number}") not in taken)
        return tuple(itertools.islice(names, _SURELY_SLICES))

    def _questions_found(self, script: Script) -> list[QuestionFound]:
        """The next questions of the module (values that decide its path), at several sizes and values, looked for once."""
        if script not in self.found:
            declared = self.context.declared
            points = [sizes for sizes in self.context.explored.answered if declared.domain.contains(sizes)][:_PLACES]
            drawn = ((sizes, declared.make(sizes, seed)) for sizes in points for seed in range(_DRAWS))
            found = ((sizes, self._find_question(script, inputs)) for sizes, inputs in drawn)
            self.found[script] = [replace(each, sizes=sizes) for sizes, each in found if each is not None]
        return self.found[script]

    def _exported(
        self, module: FixedDecisions | QuestionModule, numbers: Mapping[str, int], *, answers: bool = False
    ) -> Exported | FailingNode:
        """A part's own file, made by the first rungs; a FailingNode if the module raises wherever it was tried."""
        context = self.context
        self.parts += 1
        not_zero = [entry.name for entry in module.script if isinstance(entry, Below)]
        declared = with_numbers(context.declared, numbers, not_zero=not_zero)
        with Reference(module, flatten_outputs) as reference:
            cost = costing(module, declared, context.options.verify.budget_s, thorough=context.options.thorough)
            explored = explore(declared, make_trial(declared, reference), cost, seed=context.options.verify.seed)
            is_free = True
            real = self._at_real_numbers(declared, module.script, explored) if numbers else explored
            is_likely = all(map(explored.narrow(declared.domain).contains, real.answered))
            if numbers and not (explored.is_explained and is_likely):  # numbers that contradict the values asked
                declared = with_numbers(
                    context.declared, numbers, lambda inputs: self._numbers(module.script, inputs), not_zero=not_zero
                )
                explored, is_free = real, False
            if not explored.answered:
                return FailingNode(_spoken(explored.refused[0]))
            if not explored.is_explained:
                raise PromiseBroken(refuses_somewhere(explored.refused[0]))
            part = replace(
                context,
                module=module,
                declared=replace(declared, domain=explored.narrow(declared.domain)),
                explored=explored,
                reference=reference,
                cost=cost,
                may_refuse=is_free,
            )
            attempts = self.try_rungs(part)
            if _may_pass_strictly(attempts, module.script):
                with Reference(module.strictly(), flatten_outputs) as strict:
                    attempts = self.try_rungs(replace(part, reference=strict, may_refuse=False))
        right = next((attempt for attempt in attempts if attempt.is_right), None)
        if right is None or right.exported is None or right.captured is None:
            raise PromiseBroken(*attempts[0].findings)
        self._take_rules(right)
        if answers:
            self.captured.append(right.captured)
        return right.exported

    def _take_rules(self, part: Attempt) -> None:
        """What ends the domain of a part ends that of the whole."""
        names = self.context.declared.domain.names
        new = [rule for rule in part.rules if rule not in self.rules and is_about(rule.condition, names)]
        self.rules.extend(new)
        if new:
            self.findings.extend(finding for finding in part.findings if finding.reason is Reason.INTEGERS_END)


def _smallest(numbers: Sequence[Mapping[str, int]]) -> Mapping[str, int]:
    """The smallest of these numbers; none so large that an example could not have that length."""
    smallest = min(numbers, key=lambda each: max(each.values(), default=0), default={})
    return {name: min(number, _LONGEST) for name, number in smallest.items()}


def _may_pass_strictly(attempts: Sequence[Attempt], script: Script) -> bool:
    """Whether a part only differed from the module, and perhaps for values that never lead there: x / s where s == 0."""
    is_right = any(attempt.is_right for attempt in attempts)
    differs = any(attempt.verdict is not None and attempt.verdict.failures for attempt in attempts)
    has_truths = any(isinstance(entry, bool) for entry in script)
    return not is_right and differs and has_truths and not any(isinstance(entry, Times) for entry in script)


def _spoken(refusal: Refusal) -> str:
    line = f" ({refusal.source.file}:{refusal.source.line})" if refusal.source else ""
    return f"the model refuses these values: {refusal.message.splitlines()[0]}{line}"
