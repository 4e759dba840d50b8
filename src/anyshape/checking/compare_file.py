"""Compare an existing file with its module, over the domain or at given sizes, and renew its contract (`--sign`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyshape.checking.contract_inputs import diagnose_outside
from anyshape.contract import find_contract, match_file, open_model, read_model, write_contract
from anyshape.contract.build import renew_contract
from anyshape.contract.digest import find_change
from anyshape.contract.file_messages import cannot_sign, other_dims, other_names, outside_contract, providers_elsewhere
from anyshape.diagnose.comparison_notes import diagnose_clock, diagnose_unpromised
from anyshape.diagnose.differences import diagnose_differences
from anyshape.domain import Sizes
from anyshape.explore import costing, sizes_at_numbers
from anyshape.exporting.constancy import make_constant, ways_of
from anyshape.exporting.context import Tell
from anyshape.findings import Finding, Severity, UsageError
from anyshape.findings.finding import quoted
from anyshape.inputs import Declared, flatten_outputs
from anyshape.inputs.making import promised_values
from anyshape.loading import needed_operators
from anyshape.modules.numbers_in_code import numbers_in_code
from anyshape.records.contract import Contract
from anyshape.records.verdict import Verdict
from anyshape.runtime.runtimes import ONNXRUNTIME, check_runtime
from anyshape.runtime.session import check_providers
from anyshape.saving import model_bytes, write_atomically
from anyshape.saving.outputs import MODEL
from anyshape.verify import Reference, VerifyOptions, VerifyRequest, verify
from anyshape.verify.plan import SharedPlan
from anyshape.verify.request import Cost, SizePlan, plan_check, request_for

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
    run: Callable[[VerifyRequest], Verdict] = verify,
    plan: SharedPlan | None = None,
) -> tuple[Verdict, tuple[Finding, ...]]:
    """How an existing file compares with its module over the domain, or at the given sizes alone.

    `spelled` is how the user named the model, for the line that replays a failure; `operators` run its custom nodes.
    `run` makes the comparisons: here, unless they are spread over other machines. `plan` is one that another process made.
    """
    promised = find_contract(path)
    declared = promised_values(declared, promised.values) if promised is not None else declared
    constant = make_constant(module, declared, ways_of(promised, options))
    module, declared, options = constant.module, constant.declared, constant.options.verify
    matched = match_file(path, declared)
    with Reference(module, flatten_outputs, apart=True) as reference:
        request = replace(
            request_for(path, matched.outputs, declared, reference),
            feeds=lambda inputs: matched.rename(declared.feeds(inputs)),
            operators=needed_operators(str(path), matched.needs, operators),
            options=options.with_progress(tell),
        )
        if plan is not None:
            request = plan.put_into(request)
        else:
            points = None if sizes is None else SizePlan((constant.complete(sizes),))
            chosen = points or _plan_check(module, declared, options)
            request = replace(request, sizes=chosen.sizes, once=chosen.once, left_out=chosen.left_out)
        verdict = run(request)
    replay = f"{quoted(str(path))} --model {quoted(spelled)}"
    if options.runtime != ONNXRUNTIME.name:
        replay += f" --runtime {options.runtime}"
    unpromised = verdict.refused if promised is None else verdict.refused_in(promised.domain)
    differences = (*diagnose_differences(verdict, declared.domain, replay=replay), *diagnose_clock(verdict))
    notes = diagnose_unpromised(unpromised, replay)
    if verdict.tried:
        return verdict, (*constant.findings, *differences, *notes)
    # A model that always refuses says nothing.
    return verdict, notes if sizes is not None and notes else differences


def _plan_check(module: torch.nn.Module, declared: Declared, options: VerifyOptions) -> SizePlan:
    """What any file is compared at, and the numbers of the user's code: another exporter may have seen one side only."""
    cost = costing(module, declared, options.budget_s)
    limits = Cost(cost, cost.cheap, cost.affordable)
    plan = plan_check(declared, limits, options.seed)
    suspects = sizes_at_numbers(declared, numbers_in_code(module))
    return plan.with_affordable(suspects, cost.excess, limits, cost.all_work // 2)


Compare = Callable[[Declared], tuple[Verdict, tuple[Finding, ...]]]


@dataclass(frozen=True)
class Checked:
    """The outcome of a check: what differs from the model, and what from the file that was verified.

    `signed`: whether the contract in the file is about the file as it is now. `outside`: what the runtime answers to outside
    the contract, where it is not onnxruntime.
    """

    verdict: Verdict
    differences: tuple[Finding, ...]
    change: Finding | None = None
    signed: bool = False
    outside: tuple[Finding, ...] = ()

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.differences if finding.severity is Severity.ERROR)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return (*self.differences, *self.outside, *([self.change] if self.change else []))


def check_engine(path: Path, runtime: str, providers: Sequence[str] | None, *, sign: bool) -> tuple[str, ...]:
    """The execution providers. Raises UsageError where the runtime is not there, or cannot be combined with the rest."""
    check_runtime(runtime)
    if runtime != ONNXRUNTIME.name:
        if sign:
            raise UsageError(cannot_sign(str(path), f"a contract is about onnxruntime, not about {runtime}."))
        if providers:
            raise UsageError(providers_elsewhere(providers, runtime))
    return check_providers(providers)


def check_file(
    path: Path,
    declared: Declared,
    sizes: Mapping[str, int] | None,
    compare: Compare,
    *,
    sign: bool = False,
    runtime: str = ONNXRUNTIME.name,
) -> Checked:
    """Compare a file with its model, and report whether it is the one that was verified.

    `sign=True` compares over the whole domain of the file's own contract and, where nothing differs, renews the
    contract. Raises UsageError for sizes outside the contract (AS064), and where there is nothing to sign (AS065).
    """
    contract = find_contract(path)
    if sizes is not None:
        _check_sizes(path, contract, declared, sizes)
    if sign:
        declared = _declared_to_sign(path, contract, declared, sizes)
    checked = Checked(*compare(declared))
    if contract is not None and runtime != ONNXRUNTIME.name:
        checked = replace(checked, outside=diagnose_outside(path, contract, runtime))
    change = find_change(path, contract, weights=True) if contract is not None else None
    if sign and contract is not None and not checked.errors:
        if change is not None or contract.digest is None or contract.status != "kept":
            _sign(path, contract, checked.verdict)
        return replace(checked, signed=True)
    return replace(checked, change=change)


def _check_sizes(path: Path, contract: Contract | None, declared: Declared, sizes: Mapping[str, int]) -> None:
    is_own = contract is not None and set(contract.domain.names) == set(declared.domain.names)
    domain = contract.domain if contract is not None and is_own else declared.domain
    if not domain.contains(sizes):
        raise UsageError(outside_contract(str(path), sizes, domain, is_own))


def _declared_to_sign(
    path: Path, contract: Contract | None, declared: Declared, sizes: Mapping[str, int] | None
) -> Declared:
    """The declaration over the domain of the contract, which is what a signature is about."""
    if contract is None:
        raise UsageError(cannot_sign(str(path), "it has no contract that could be renewed."))
    if sizes is not None:
        raise UsageError(cannot_sign(str(path), "a contract is about its whole domain, not about some sizes."))
    if set(contract.domain.names) != set(declared.domain.names):
        raise UsageError(other_dims(str(path), contract.domain.names, declared.domain.names))
    return replace(declared, domain=contract.domain)


def _sign(path: Path, contract: Contract, verdict: Verdict) -> None:
    """Write the renewed contract into the file; a second file with weights stays as it is."""
    model = read_model(path)
    weights = {tensor.name for tensor in model.graph.initializer}
    sides = [
        ([value.name for value in model.graph.input if value.name not in weights], contract.inputs),
        ([value.name for value in model.graph.output], contract.outputs),
    ]
    for names, promised in sides:
        if names != [tensor.name for tensor in promised]:
            raise UsageError(other_names(str(path), names, [tensor.name for tensor in promised]))
    write_contract(model, renew_contract(contract, verdict, open_model(path)))
    data = model_bytes(model)
    write_atomically(path, lambda stream: stream.write(data), MODEL, is_edit=True)
