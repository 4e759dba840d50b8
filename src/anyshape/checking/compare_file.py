"""Compare an existing file with its module, over the domain or at given sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyshape.contract.matching import match_file
from anyshape.contract.metadata import find_contract
from anyshape.diagnose.comparison_notes import diagnose_answers, diagnose_clock
from anyshape.diagnose.differences import diagnose_differences
from anyshape.domain import Sizes
from anyshape.explore import Costing, costing, sizes_at_numbers
from anyshape.exporting.constancy import make_constant, ways_of
from anyshape.exporting.context import Tell
from anyshape.findings import Finding
from anyshape.findings.paths import quoted
from anyshape.inputs import Declared, flatten_outputs
from anyshape.inputs.making import promised_values
from anyshape.loading.loaded import needed_operators
from anyshape.modules.user_code import numbers_in_code
from anyshape.records.verdict import Verdict
from anyshape.verify import Reference, VerifyOptions, verify
from anyshape.verify.asking import Cost, SizePlan, plan_check, request_for

if TYPE_CHECKING:
    import torch


def compare_file(
    path: Path,
    module: torch.nn.Module,
    declared: Declared,
    options: VerifyOptions,
    sizes: Sizes | None,
    tell: Tell,
    spelled: str = "model.py",
    operators: Mapping[str, Callable[..., Any]] | None = None,
) -> tuple[Verdict, tuple[Finding, ...]]:
    """How an existing file compares with its module over the domain, or at the given sizes alone.

    `spelled` is how the user named the model, for the line that replays a failure; `operators` run its custom nodes.
    """
    promised = find_contract(path)
    declared = promised_values(declared, promised.values) if promised is not None else declared
    constant = make_constant(module, declared, ways_of(promised, options))
    module, declared, options = constant.module, constant.declared, constant.options.verify
    matched = match_file(path, declared)
    with Reference(module, flatten_outputs) as reference:
        cost = costing(module, declared, options.budget_s)
        plan = (
            SizePlan((constant.complete(sizes),))
            if sizes is not None
            else _plan_check(module, declared, cost, options.seed)
        )
        request = replace(
            request_for(path, matched.outputs, declared, reference),
            sizes=plan.sizes,
            once=plan.once,
            left_out=plan.left_out,
            feeds=lambda inputs: matched.rename(declared.feeds(inputs)),
            operators=needed_operators(str(path), matched.needs, operators),
            options=options.with_progress(tell),
        )
        verdict = verify(request)
    replay = f"{quoted(str(path))} --model {quoted(spelled)}"
    unpromised = verdict.refused if promised is None else verdict.refused_in(promised.domain)
    differences = (*diagnose_differences(verdict, declared.domain, replay=replay), *diagnose_clock(verdict))
    answers = diagnose_answers(unpromised, replay)
    if verdict.tried:
        return verdict, (*constant.findings, *differences, *answers)
    # A model that always refuses says nothing.
    return verdict, answers if sizes is not None and answers else differences


def _plan_check(module: torch.nn.Module, declared: Declared, cost: Costing, seed: int) -> SizePlan:
    """What any file is compared at, and the numbers of the user's code: another exporter may have seen one side only."""
    limits = Cost(cost, cost.cheap, cost.affordable)
    plan = plan_check(declared, limits, seed)
    suspects = sizes_at_numbers(declared, numbers_in_code(module))
    return plan.with_affordable(suspects, cost.excess, limits, cost.all_work // 2)
