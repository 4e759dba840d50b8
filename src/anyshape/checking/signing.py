"""Checking a file that has a contract: sizes inside it, changes since it was verified, and its renewal (`--sign`).

declared, contract -> [ compared by the pipeline ] -> findings, and a renewed contract where the user signs
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from anyshape.contract.build import renew_contract
from anyshape.contract.digest import find_change, open_model
from anyshape.contract.file_messages import cannot_sign, other_dims, other_names, outside_contract
from anyshape.contract.metadata import find_contract, read_model, write_contract
from anyshape.findings import Finding, Severity, UsageError
from anyshape.inputs import Declared
from anyshape.records.contract import Contract
from anyshape.records.verdict import Verdict
from anyshape.saving import model_bytes, write_atomically

Compare = Callable[[Declared], tuple[Verdict, tuple[Finding, ...]]]


@dataclass(frozen=True)
class Checked:
    """The outcome of a check: what differs from the model, and what from the file that was verified.

    `signed` says whether the contract in the file is about the file as it is now.
    """

    verdict: Verdict
    differences: tuple[Finding, ...]
    change: Finding | None = None
    signed: bool = False

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.differences if finding.severity is Severity.ERROR)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return (*self.differences, *([self.change] if self.change else []))


def check_file(
    path: Path, declared: Declared, sizes: Mapping[str, int] | None, compare: Compare, *, sign: bool = False
) -> Checked:
    """Compare a file with its model, and say whether it is the one that was verified.

    `sign=True` compares over the whole domain of the file's own contract and, where nothing differs, renews the
    contract. Raises UsageError for sizes outside the contract (AS064), and where there is nothing to sign (AS065).
    """
    contract = find_contract(path)
    if sizes is not None:
        _check_sizes(path, contract, declared, sizes)
    if sign:
        declared = _declared_to_sign(path, contract, declared, sizes)
    checked = Checked(*compare(declared))
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
    write_atomically(path, lambda stream: stream.write(data))
