"""Findings of `anyshape deploy`: what a target cannot take, profiles that break a rule, runtimes that do not refuse."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from anyshape.domain import Condition, Domain, Sizes, find_contradiction, format_condition, format_sizes
from anyshape.findings import Finding, Severity, counted
from anyshape.findings.finding import quoted


def folder_not_empty(folder: Path, file: str) -> Finding:
    """AS550: the folder has files that `anyshape deploy` did not write; this one, for example."""
    return Finding(
        code="AS550",
        name="folder-not-empty",
        what=f"{str(folder)!r} has files that anyshape deploy did not write, such as {file!r}.",
        why="a deployment is written whole, in the place of an earlier one: these files would be lost.",
        fix=f"-o {quoted(str(folder / 'deploy'))}",
    )


def no_upper_end(dims: Sequence[str], target: str) -> Finding:
    """AS551: the target needs an end, and the contract has none."""
    listed = ", ".join(dims)
    return Finding(
        code="AS551",
        name="no-upper-end",
        what=f"{target} needs a largest size, and the contract has none for {listed}.",
        why="the largest shape of each input is part of what is written.",
        fix=f"--max {','.join(f'{name}=512' for name in dims)}",
        is_fix_untried=True,
    )


def broken_profile(domain: Domain, wanted: Sequence[Condition], spelled: str) -> Finding:
    """AS552: the sizes that are asked for break a rule of the contract."""
    core = find_contradiction(domain.with_relations(*wanted))
    rules = [rule for rule in core if rule not in wanted]
    asked = [rule for rule in core if rule in wanted] or list(wanted)
    return Finding(
        code="AS552",
        name="profile-breaks-rule",
        what=f"{spelled} lies outside the contract.",
        why=f"{_listed(asked)} cannot hold together with {_listed(rules or domain.relations)}.",
        fix="give sizes that keep the rule, or leave them out: they are then chosen.",
    )


def outside_profile(point: Sizes) -> Finding:
    """AS552: usual sizes that none of the given profiles has."""
    return Finding(
        code="AS552",
        name="profile-breaks-rule",
        what=f"--at {format_sizes(point, ',')} lies in none of the given profiles.",
        fix="add a --profile that holds it, or leave --profile out: profiles are then chosen.",
    )


def sizes_left_out(point: Sizes, count: int) -> Finding:
    """AS553, a warning: sizes of the contract that no profile holds."""
    ranges = ",".join(f"{name}={size}..{size}" for name, size in point.items())
    return Finding(
        code="AS553",
        name="sizes-in-no-profile",
        severity=Severity.WARNING,
        what=f"TensorRT will refuse some sizes of the contract, such as {format_sizes(point)}.",
        why=f"the ranges of {counted(count, 'profile')}, whose corners keep every rule, do not hold all of them.",
        fix=f"--profile {ranges}      given for each range of sizes that you use",
        is_fix_untried=True,
        sizes=dict(point),
    )


def not_proved(question: Condition) -> Finding:
    """AS554: the solver has no answer, so nothing is written."""
    return Finding(
        code="AS554",
        name="profile-not-proved",
        what="the solver could not decide whether a profile keeps the rules of the contract.",
        why=f"asked was: {format_condition(question)}",
        fix="--profile with the ranges that you use, or --max with smaller ends.",
    )


def corner_outside(name: str, corners: Sequence[Sizes]) -> Finding:
    """AS902: our own fault."""
    return Finding(
        code="AS902",
        name="solver-disagrees",
        what="the solver gave sizes that do not keep the rules it was asked about.",
        why=f"profile {name!r}: {'; '.join(map(format_sizes, corners))}",
        fix="this is our fault, sorry: please report the rules above.",
    )


def cannot_take(target: str, what: str, why: str, fix: str) -> Finding:
    """AS555: the target has no way to run this file."""
    return Finding(
        code="AS555", name="target-cannot-run", what=f"{target} cannot run this file: {what}.", why=why, fix=fix
    )


def _listed(conditions: Sequence[Condition]) -> str:
    return ", ".join(map(format_condition, conditions)) or "the ranges of the dims"


def defence_not_measured(target: str) -> Finding:
    """AS558, a note: nobody ran this runtime outside the contract here."""
    return Finding(
        code="AS558",
        name="refusal-not-tested",
        severity=Severity.NOTE,
        what=f"whether {target} refuses sizes that break a rule was not tested here.",
        why="the file refuses them by an index out of range, which not every runtime reports.",
        fix="check the sizes before each call: the rules are in the contract (anyshape inspect).",
    )


def differs_from_file(sizes: Sizes, why: str) -> Finding:
    """AS559: OpenVINO gives something else than onnxruntime does, so nothing is written."""
    return Finding(
        code="AS559",
        name="runtime-differs",
        what=f"OpenVINO does not answer as onnxruntime does at {format_sizes(sizes)}.",
        why=why,
        fix="serve the file with onnxruntime; anyshape check m.onnx --model model.py --runtime openvino      says more",
        is_fix_untried=True,
        sizes=dict(sizes),
    )


def nothing_compared(why: str) -> Finding:
    """AS560: there is no evidence for what would be written."""
    return Finding(
        code="AS560",
        name="deployment-not-compared",
        what="onnxruntime answers to none of the inputs that were made from the contract.",
        why=why.splitlines()[0][:200] if why else "",
        fix="declare which values inputs have: values={...} in anyshape.export; or give --model model.py",
        is_fix_untried=True,
    )


def no_ort_web(why: str) -> Finding:
    """AS561: the page needs the runtime's own files, and they are not here."""
    return Finding(
        code="AS561",
        name="no-onnxruntime-web",
        what="the files of onnxruntime-web are missing, by which a page runs the model.",
        why=why,
        fix="npm install onnxruntime-web      where there is a network; then --ort-web node_modules/onnxruntime-web",
        is_fix_untried=True,
    )


def option_elsewhere(name: str, target: str, owner: str) -> Finding:
    """AS562: an option that would have no effect."""
    return Finding(
        code="AS562",
        name="option-of-another-target",
        what=f"{name} has no effect for {target}.",
        why=f"it is an option of {owner}.",
        fix=f"leave {name} out.",
    )
