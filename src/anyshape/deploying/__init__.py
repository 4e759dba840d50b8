"""Write the files that TensorRT, Triton, OpenVINO or a browser need to run a model, from its contract. One file a target.

This file: `deploy`: a file with its contract, written for one of the TARGETS, and compared with its PyTorch model where it
is given.

Files, in the order in which data flows:

    deployment       the records of a deployment, and its folder, whole or not at all
    served_sizes     the sizes of a deployment
    profiles         TensorRT's profiles
    tensorrt_target  TensorRT
    triton_target    Triton
    openvino_target  OpenVINO
    web_target       a page in a browser, with the files of onnxruntime-web
    deploy_messages  findings
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from anyshape.checking.compare_file import compare_file
from anyshape.contract import check_names, find_contract, read_model
from anyshape.contract.digest import find_change
from anyshape.contract.file_messages import no_contract, other_dims
from anyshape.deploying.deploy_messages import broken_profile, cannot_take, option_elsewhere
from anyshape.deploying.deployment import (
    CompareIr,
    Deployment,
    DeployOptions,
    DeployRequest,
    DimRanges,
    Target,
    Tell,
    check_folder,
    whole_folder,
    write_json,
    write_mark,
)
from anyshape.deploying.openvino_target import OPENVINO
from anyshape.deploying.tensorrt_target import TENSORRT
from anyshape.deploying.triton_target import TRITON
from anyshape.deploying.web_target import WEB
from anyshape.domain import Compare, Domain, Number, Ref, Sizes, find_point, format_sizes
from anyshape.findings import (
    ContractBroken,
    Finding,
    PromiseBroken,
    Severity,
    UsageError,
    check_choice,
    raises_for_caller,
)
from anyshape.findings.arguments import read_list, read_path, read_sizes
from anyshape.inputs import declare
from anyshape.intercept.turns import exporting
from anyshape.loading.broken_calls import broken_contract, unverified_contract
from anyshape.modules.callables import as_module
from anyshape.processes.isolated import in_own_process
from anyshape.records.contract import Contract, contract_as_plain
from anyshape.runtime.runtimes import OPENVINO as RUNTIME
from anyshape.saving.atomic import reporting
from anyshape.saving.outputs import command_files
from anyshape.verify import VerifyOptions

__is_entrance__ = True

TARGETS: tuple[Target, ...] = (TENSORRT, TRITON, OPENVINO, WEB)


@raises_for_caller
@in_own_process()
def deploy(
    path: str | PathLike[str],
    to: str,
    output: str | PathLike[str],
    *,
    at: Sizes | Sequence[Sizes] = (),
    max_sizes: Sizes | None = None,
    profiles: Sequence[DimRanges] = (),
    model: Any = None,
    inputs: Any = None,
    ort_web: str | PathLike[str] | None = None,
    time_limit: float = 600.0,
    progress: Tell | None = None,
    isolate: bool | None = None,
) -> Deployment:
    """Write what a server needs to run an ONNX file: `deploy("m.onnx", "tensorrt", "out", at={"batch": 8, "seq": 128})`.

    `to` is tensorrt, triton, openvino or web. Everything comes from the contract of the file. `at` has the usual sizes, once or
    several times, of all dims or of some; `max_sizes` gives dims an end that have none, or a lower one. `profiles` are ranges
    of dims for TensorRT in the place of chosen ones: `[{"past": (0, 0)}, {"seq": (1, 1)}]`. With `model` and `inputs`, as in
    `anyshape.export`, what OpenVINO runs is compared with the model over the whole domain, otherwise with onnxruntime.
    `ort_web` is a folder with the npm package onnxruntime-web. The folder is written whole, in the place of an earlier
    deployment, or not at all.
    """
    check_choice("to", to, [target.name for target in TARGETS])
    target = next(each for each in TARGETS if each.name == to)
    source, folder = read_path("path", path), read_path("output", output)
    with command_files(source, ort_web):
        check_folder(folder)
    contract = _contract(source)
    options = DeployOptions(
        at=(read_sizes("at", at),) if isinstance(at, Mapping) else _each_sizes(at),
        largest={} if max_sizes is None else read_sizes("max_sizes", max_sizes),
        profiles=tuple(profiles),
        ort_web=None if ort_web is None else read_path("ort_web", ort_web),
    )
    domain, tell = _cut(contract.domain, options), progress or _silent
    _check_taken(target, profiles=profiles, model=model, ort_web=ort_web)
    given = model if isinstance(model, GivenModel) or model is None else GivenModel(model=model, inputs=inputs)
    request = DeployRequest(
        path=source,
        contract=contract,
        domain=domain,
        options=options,
        tell=tell,
        compare=None if given is None else comparison(source, domain, given, RUNTIME.name, tell),
    )
    check_names(contract, read_model(source, needs_weights=True), str(source))  # before anything is run
    change = find_change(source, contract)
    with command_files(source, ort_web), reporting(folder), whole_folder(folder) as growing:
        built = target.build(request, growing)
        findings = (*built.findings, *([change] if change else []))
        write_json(growing / "contract.json", _plain_contract(contract, findings))
        files = write_mark(growing, {"target": target.name, "source": source.name})
    return Deployment(
        target=target.name, folder=folder, files=files, lines=built.lines, facts=built.facts, findings=findings
    )


def _each_sizes(given: Sequence[Sizes]) -> tuple[Sizes, ...]:
    return tuple(read_sizes("at", each) for each in read_list("at", given, (Mapping,), "at=[{'batch': 2}]"))


def _contract(source: Path) -> Contract:
    """The contract of a file that keeps it. Raises UsageError or ContractBroken for any other file."""
    contract = find_contract(source)
    if contract is None:
        raise UsageError(no_contract(str(source)))
    if contract.status == "unverified":
        raise ContractBroken(unverified_contract(str(source)))
    if contract.status != "kept":
        raise ContractBroken(broken_contract(str(source), len(contract.findings)), *contract.findings)
    if contract.needs:
        raise UsageError(
            cannot_take(
                "a runtime of its own",
                f"it needs {contract.needs[0]}",
                "the function of a custom node is Python, which is not part of the file.",
                "write the operator with standard ones: anyshape.translation without node=",
            )
        )
    return contract


def _check_taken(target: Target, **given: object) -> None:
    """Raise UsageError (AS562) for an option that this target does not have."""
    for name, value in given.items():
        if value and name not in target.takes:
            owner = next(each for each in TARGETS if name in each.takes)
            raise UsageError(option_elsewhere(name, target.name, owner.name))


def _plain_contract(contract: Contract, findings: Sequence[Finding]) -> dict[str, Any]:
    """The contract with what was found about this deployment."""
    return contract_as_plain(replace(contract, findings=(*contract.findings, *findings)))


def _cut(domain: Domain, options: DeployOptions) -> Domain:
    """The domain up to the largest sizes. Raises UsageError (AS552) where nothing is left."""
    for name in (*options.largest, *(name for each in (*options.at, *options.profiles) for name in each)):
        domain.dim(name)
    ends = tuple(Compare("<=", Ref(name), Number(size)) for name, size in options.largest.items())
    if ends and find_point(domain, *ends) is None:
        raise UsageError(broken_profile(domain, ends, f"--max {format_sizes(options.largest, ',')}"))
    return domain.narrowed(*ends)


def _silent(stage: str, done: int, total: int) -> None:
    """Ignores progress."""


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
