"""Facts of all stages -> the contract of the file, with the state that it has before the first call."""

from __future__ import annotations

import base64
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from anyshape.contract.digest import digest_model
from anyshape.domain import Condition, Domain, Number, Ref, dims_of, holds
from anyshape.domain.bounded_values import lowest_text
from anyshape.findings import Finding, Severity
from anyshape.graphs import find_needs
from anyshape.inputs import Declared, StateInput
from anyshape.inputs.calls import as_array
from anyshape.records.captured import Captured
from anyshape.records.contract import Constant, Contract, Rule, StatePromise, TensorPromise, Tested
from anyshape.records.explored import Explored
from anyshape.records.export import Exported
from anyshape.records.runs import Run
from anyshape.records.verdict import Verdict
from anyshape.runtime.child_messages import Array, dtype_called

if TYPE_CHECKING:
    import onnx_ir as ir

_RECORDED = ("anyshape", "torch", "onnx", "onnx-ir", "onnxscript", "onnxruntime")


def state_promises(states: Sequence[StateInput], parameter: str) -> tuple[StatePromise, ...]:
    """What the contract has of each state; `parameter` is the argument that holds them."""
    return tuple(_promise(state, f"{parameter}.{state.name}") for state in states)


def _promise(state: StateInput, path: str) -> StatePromise:
    dtype = str(state.initial.dtype).removeprefix("torch.")
    own = [dim.name for dim in state.own]
    shape = tuple(
        str(axis) if isinstance(axis, Ref) and axis.name not in own and not isinstance(axis, Number) else size
        for axis, size in zip(state.axes, state.initial.shape, strict=True)
    )
    data = np.ascontiguousarray(as_array(state.initial, dtype)).tobytes()
    return StatePromise(
        state.name, path, f"{path}.next", dtype, shape, base64.b64encode(data).decode() if any(data) else ""
    )


def first_value(state: StatePromise, sizes: Mapping[str, int]) -> Array:
    """The value before the first call. Raises TypeError where a size that it needs is not given."""
    missing = [size for size in state.shape if isinstance(size, str) and size not in sizes]
    if missing:
        raise TypeError(f"initial_state() needs the size of {missing[0]}: initial_state({missing[0]}=...)")
    stored = [1 if isinstance(size, str) else size for size in state.shape]
    dtype = np.dtype(dtype_called(state.dtype))
    data = base64.b64decode(state.data) or bytes(prod(stored) * dtype.itemsize)
    wanted = [sizes[size] if isinstance(size, str) else size for size in state.shape]
    return np.broadcast_to(np.frombuffer(data, dtype=dtype).reshape(stored), wanted).copy()


def build_contract(
    declared: Declared,
    explored: Explored,
    captured: Captured,
    exported: Exported,
    verdict: Verdict | None = None,
    findings: Sequence[Finding] = (),
    *,
    written: Domain | None = None,
) -> Contract:
    """What the file promises. Without a verdict it is a draft, which promises the same and has not been tested.

    `written` is the domain before rules made it smaller, so that the user's own ranges can be told from later ones.
    """
    lowest = {} if verdict is None else verdict.lowest
    broken = any(finding.severity is Severity.ERROR for finding in findings)
    return Contract(
        status="broken" if broken else "unverified" if verdict is not None and verdict.is_skipped else "kept",
        domain=declared.domain,
        rules=_rules(written or declared.domain, declared.domain, explored),
        inputs=promised_inputs(declared),
        outputs=tuple(
            TensorPromise(name, output.path, output.dtype, output.axes, output.any_rank)
            for name, output in exported.outputs
        ),
        constants=tuple(Constant(path, value) for path, value in declared.constants.items()),
        parameters=_parameters(declared),
        needs=find_needs(exported.model),
        values={**declared.value_texts, **{name: lowest_text(name, low) for name, low in lowest.items()}},
        refused=_refused(declared, verdict),
        tested=_tested(captured, verdict),
        strategy=captured.strategy,
        opset=exported.opset,
        target=exported.target,
        findings=tuple(findings),
        versions=recorded_versions(),
        digest=None if verdict is None else digest_model(exported.model),
    )


def promised_inputs(declared: Declared) -> tuple[TensorPromise, ...]:
    """The inputs of the file, with the axes that were declared."""
    return tuple(
        TensorPromise(leaf.name, leaf.path, leaf.file_dtype, leaf.axes, number=leaf.number)
        for leaf in declared.open_leaves
    )


def describe_run(model: str, declared: Declared, seed: int) -> Run:
    """How a result is made, as far as it is known beforehand; `model` is its name."""
    return Run(
        model=model,
        domain=declared.domain,
        inputs=promised_inputs(declared),
        example=dict(declared.example_sizes),
        seed=seed,
        versions=recorded_versions(),
    )


def renew_contract(contract: Contract, verdict: Verdict, model: ir.Model) -> Contract:
    """The contract of a file that was changed and compared again; the proofs of its capture no longer count."""
    return replace(
        contract,
        status="kept",
        tested=replace(
            contract.tested,
            sizes=tuple(verdict.tried),
            capture_proved=False,
            largest=_largest(verdict),
            worst_error=_worst_errors(verdict),
            against_guards=0,
        ),
        needs=find_needs(model),
        opset=model.opset_imports.get("", contract.opset),
        findings=tuple(finding for finding in contract.findings if finding.severity is not Severity.ERROR),
        versions=recorded_versions(),
        digest=digest_model(model),
    )


def _parameters(declared: Declared) -> tuple[str, ...]:
    """The names that arguments without a name go to; what went into `*args` is `args.0`, `args.1`."""
    found: list[str] = []
    for name, parameter in declared.signature.parameters.items():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            found.append(name)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            inside = (leaf.path.split(".") for leaf in declared.leaves)
            found.extend(dict.fromkeys(".".join(path[:2]) for path in inside if path[0] == name))
    return tuple(found)


def _rules(written: Domain, domain: Domain, explored: Explored) -> tuple[Rule, ...]:
    """The user's own rules, then all others."""
    ranges = [condition for dim in written.dims if dim.declared for condition in dim.conditions()]
    learned = [rule.condition for rule in explored.rules]
    related = [relation for relation in domain.relations if relation not in learned]
    own = [Rule(condition, "declared") for condition in (*ranges, *related)]
    return (*own, *explored.rules)


def _refused(declared: Declared, verdict: Verdict | None) -> tuple[Mapping[str, int], ...]:
    refused = () if verdict is None else verdict.refused_in(declared.domain)
    return tuple(dict(each.sizes) for each in refused)


def _tested(captured: Captured, verdict: Verdict | None) -> Tested:
    if verdict is None:
        return Tested((), capture_proved=captured.is_proved)
    conditions = [
        guard.condition
        for guard in captured.guards
        if guard.status != "proved" and guard.condition is not None and not _is_of_a_body(guard.condition, verdict)
    ]
    against = [sizes for sizes in verdict.tried if not all(holds(condition, sizes) for condition in conditions)]
    return Tested(
        tuple(verdict.tried),
        captured.is_proved,
        _largest(verdict),
        _worst_errors(verdict),
        against_guards=len(against),
        untried=verdict.untried,
    )


def _largest(verdict: Verdict) -> dict[str, int]:
    names = verdict.tried[0] if verdict.tried else ()
    return {name: max(sizes[name] for sizes in verdict.tried) for name in names}


def _worst_errors(verdict: Verdict) -> dict[str, float]:
    """The worst error of each output as a share of its tolerance, in three digits: the same on machines that round alike."""
    return {each.output: float(f"{each.worst / each.allowed:.3g}") for each in verdict.outputs}


def _is_of_a_body(condition: Condition, verdict: Verdict) -> bool:
    """Whether the condition mentions the counter of a loop, which is no size."""
    return any(name not in sizes for sizes in verdict.tried[:1] for name in dims_of(condition))


def recorded_versions() -> dict[str, str]:
    """The versions of Python and of the packages that make a file."""
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for package in _RECORDED:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
