"""A deployment compared with its PyTorch model, by the verification that every export goes through."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from anyshape.checking.compare_file import compare_file
from anyshape.contract.file_messages import other_dims
from anyshape.deploying.deployment import CompareIr, Tell
from anyshape.domain import Domain
from anyshape.findings import PromiseBroken, Severity, UsageError
from anyshape.inputs import declare
from anyshape.intercept.turns import exporting
from anyshape.modules.callables import as_module
from anyshape.verify import VerifyOptions


@dataclass(frozen=True, kw_only=True)
class GivenModel:
    """A PyTorch model with its inputs, as for `anyshape.export`; `spelled` is how the user named it."""

    model: Any
    inputs: Any
    dynamic: Any = None
    values: Any = None
    spelled: str = "model.py"


def comparison(path: Path, domain: Domain, given: GivenModel, runtime: str, tell: Tell) -> CompareIr:
    """The function that compares a form of the file, run by this runtime, with the model over the domain."""

    def compare(form: Path) -> int:
        with exporting(as_module(given.model), tell) as module:
            declared = declare(module, given.inputs, dynamic=given.dynamic, values=given.values)
            if set(declared.domain.names) != set(domain.names):
                raise UsageError(other_dims(str(path), domain.names, declared.domain.names))
            options = VerifyOptions(runtime=runtime, runs=str(form))
            over = replace(declared, domain=domain)
            verdict, findings = compare_file(path, module, over, options, None, tell, given.spelled)
        errors = [finding for finding in findings if finding.severity is Severity.ERROR]
        if errors:
            raise PromiseBroken(*errors)
        return len(verdict.tried)

    return compare
