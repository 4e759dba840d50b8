"""RULES about a file that was compared with its module; above all, where their outputs differ.

Which output differs, at which smallest sizes, at which node, and by whose condition. Adding a rule:
docs/how-to/extend/add-a-finding.md.

a failing size breaks a guard of the capture  ->  AS101, the guard's line; also of a guard that has no rule of whole numbers
the line of a random operator differs         ->  AS149: the module draws the same numbers in each call, from its own seed
otherwise, by what differs                    ->  AS301 structure, AS302 shape, AS303 dtype, AS304 NaN or infinity, AS305 value,
                                                  AS150 distribution of random values
the runtime refuses, crashes, hangs           ->  AS306, AS307
nothing could be compared                     ->  AS308
the file of onnxruntime's optimizer differs   ->  AS423, a warning: the portable file is kept
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from anyshape.diagnose import first_line, replay_option, say_promise, say_sizes
from anyshape.diagnose.comparison_notes import (
    diagnose_clock,
    diagnose_copy,
    diagnose_lowest,
    diagnose_nan,
    diagnose_rounding,
)
from anyshape.diagnose.consent import not_verified
from anyshape.diagnose.refusals import diagnose_refused_inside
from anyshape.diagnose.value_findings import diagnose_cond_sides, diagnose_outputs
from anyshape.domain import Domain, dims_of, format_condition, holds, is_about
from anyshape.findings import Finding, Reason, Remedy, Severity, Source
from anyshape.records.captured import Guard, Region
from anyshape.records.export import Judged
from anyshape.records.verdict import Difference, Failure, FailureKind, Fault, Located, Mismatch, Verdict

_TAKES_A_SHAPE = ("Reshape", "Expand", "ConstantOfShape")
_LINE = "anyshape.source"  # the metadata of a node: the line of the user's code that it comes from
_DRAWS = ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial")
_NAMES = {
    Mismatch.STRUCTURE: ("AS301", "wrong-structure"),
    Mismatch.SHAPE: ("AS302", "wrong-shape"),
    Mismatch.DTYPE: ("AS303", "wrong-dtype"),
    Mismatch.NAN: ("AS304", "wrong-nan"),
    Mismatch.INFINITY: ("AS304", "wrong-nan"),
    Mismatch.VALUE: ("AS305", "wrong-values"),
    Mismatch.DISTRIBUTION: ("AS150", "wrong-distribution"),
}


class Entry(Protocol):
    """What Python finds in a table: at which sizes of some dims, the numbers of the key, and the line that looks it up."""

    @property
    def sizes(self) -> Mapping[str, int]: ...

    @property
    def key(self) -> Sequence[int]: ...

    @property
    def source(self) -> Source: ...


def say_node(failure: Failure) -> str | None:
    """Which node it is and what is wrong with it; None where it was not found."""
    located = failure.located
    if located is None or not located.node:
        return None
    source = f" (from {located.source.file}:{located.source.line})" if located.source is not None else ""
    return f"node {located.node} ({located.op_type}) {_does(failure, located)}{source}"


def _does(failure: Failure, located: Located) -> str:
    if located.constant is not None:
        word = "shape" if located.op_type in _TAKES_A_SHAPE else "size"
        return f"holds the constant {word} {list(located.constant)}"
    if failure.kind is FailureKind.DIFFERS:
        return "is the first whose value differs"
    return "is where it goes wrong"


def say_fault(failure: Failure) -> str:
    """Whose fault it is, where that is known to be the runtime's, or the file breaks the standard."""
    located = failure.located
    if located is not None and located.fault is Fault.UNDEFINED:
        return f"; the fault is the file's: the ONNX standard does not define {located.op_type} for this type"
    if located is None or located.fault is not Fault.RUNTIME:
        return ""
    if not located.node:
        return "; the fault is onnxruntime's: with its optimizations off the file answers as PyTorch does"
    return "; the fault is onnxruntime's: onnx.reference answers as PyTorch does"


def source_of(failure: Failure) -> Source | None:
    """The user's line behind the node."""
    return failure.located.source if failure.located is not None else None


def diagnose_differences(
    verdict: Verdict,
    domain: Domain,
    regions: Sequence[Region] = (),
    replay: str = "m.onnx --model model.py",
    drawing_lines: Collection[str] = (),
) -> tuple[Finding, ...]:
    """Findings from a verdict that breaks the promise; nothing when it passed. `replay` is what `anyshape check` is given.

    `drawing_lines` are those that random operators of the file come from, as `model.py:7`.
    """
    failure = verdict.smallest_failure or next(iter(verdict.failures), None)
    if failure is None:
        if verdict.is_skipped:
            return (not_verified(),)
        found = (diagnose_copy, diagnose_rounding, diagnose_lowest, diagnose_nan)
        told = tuple(finding for diagnose in found for finding in diagnose(verdict))
        return told if verdict.tried else (_nothing_compared(verdict),)
    blamed = blamed_guard(verdict, regions)
    if blamed is not None:
        return (_branch(failure, blamed, domain),)
    if (ruleless := _find_ruleless(verdict, regions)) is not None:
        return (_ruleless_branch(*ruleless),)
    if (line := source_of(failure)) is not None and f"{line.file}:{line.line}" in drawing_lines:
        return (_drawn(failure),)
    return (_plain(failure, verdict, replay),)


def blamed_guard(verdict: Verdict, regions: Sequence[Region]) -> Guard | None:
    """The condition that the failing sizes break; the user's own before torch's bookkeeping. None if they break none."""
    failure = verdict.smallest_failure or next(iter(verdict.failures), None)
    if failure is None:
        return None
    answering = next((region for region in regions if holds(region.condition, failure.sizes)), None)
    broken = [
        guard
        for guard in (answering.guards if answering is not None else ())
        if guard.condition is not None
        and is_about(guard.condition, failure.sizes)
        and not holds(guard.condition, failure.sizes)
    ]
    return min(broken, key=lambda guard: (not guard.by_user, guard.source is None), default=None)


def _find_ruleless(verdict: Verdict, regions: Sequence[Region]) -> tuple[Failure, Guard] | None:
    """A failure at sizes at which a guard is known to be false that integer arithmetic cannot express, and the guard."""
    for failure in filter(None, (verdict.smallest_failure, *verdict.failures)):
        answering = next((region for region in regions if holds(region.condition, failure.sizes)), None)
        for guard in answering.guards if answering is not None else ():
            known_false = [dict(sizes) for sizes in (guard.counterexample or {}, *guard.further)]
            if guard.condition is None and guard.source is not None and dict(failure.sizes) in known_false:
                return failure, guard
    return None


def _ruleless_branch(failure: Failure, guard: Guard) -> Finding:
    return Finding(
        code="AS101",
        name="size-branch",
        reason=Reason.SIZE_BRANCH,
        what=f"the file has one path of a choice by sizes, and at {say_sizes(failure.sizes)} the model takes another.",
        where=guard.source,
        why=f"the choice is no rule of whole numbers over the dims, so only one side is captured: {say_failure(failure)}",
        fix="choose with tensors (torch.where, torch.argmin), or compare whole numbers: a * d < c * b, not a / b < c / d.",
        is_fix_untried=True,
        sizes=failure.sizes,
    )


def diagnose_entry(findings: Iterable[Finding], verdict: Verdict, entries: Sequence[Entry]) -> tuple[Finding, ...]:
    """The findings. If Python finds a table's entry at every size that fails, they name the look-up instead of the values."""
    failures = [failure for failure in (verdict.smallest_failure, *verdict.failures) if failure is not None]
    found = [next((each for each in entries if _is_at(each, failure)), None) for failure in failures]
    entry, is_elsewhere_right = next(iter(found), None), len(verdict.failures) < len(verdict.tried)
    if entry is None or None in found or not is_elsewhere_right:
        return tuple(findings)
    return tuple(
        _looked_up(each, failures[0], entry) if each.severity is Severity.ERROR and each.reason is None else each
        for each in findings
    )


def _is_at(entry: Entry, failure: Failure) -> bool:
    is_there = all(failure.sizes.get(name) == size for name, size in entry.sizes.items())
    return is_there and failure.difference is not None


def _looked_up(finding: Finding, failure: Failure, entry: Entry) -> Finding:
    is_there = " and ".join(f"{name} == {size}" for name, size in entry.sizes.items())
    key = ", ".join(map(str, entry.key))
    return replace(
        finding,
        code="AS101",
        name="size-branch",
        reason=Reason.SIZE_BRANCH,
        what=f"the model looks up {' and '.join(entry.sizes)} in a table; at {say_sizes(failure.sizes)} the file has no entry.",
        where=entry.source,
        why=f"the table has an entry for {key}, and no rule over the dims follows a table: {say_failure(failure)}.",
        fix=f"write it as a branch, of which both sides are captured:   if {is_there}: ...",
        is_fix_untried=True,
    )


def _branch(failure: Failure, guard: Guard, domain: Domain) -> Finding:
    assert guard.condition is not None
    rule = format_condition(guard.condition)
    names = dims_of(guard.condition)
    promises = ", ".join(f"{name!r} is {say_promise(domain, name)}" for name in names)
    return Finding(
        code="AS101",
        name="size-branch",
        reason=Reason.SIZE_BRANCH,
        about=(rule,),
        what=f"dim {promises}, but the captured program holds only where {rule}.",
        where=guard.source,
        why=f"at {say_sizes(failure.sizes)} the model takes another path: {say_failure(failure)}",
        fix=f"promise what the program keeps: where=[{rule!r}]",
        remedy=Remedy(where=(rule,)),
        is_fix_untried=True,
        alternative="write the line so that one program serves all sizes (torch.where, masks, clamped slices).",
        sizes=failure.sizes,
    )


def _drawn(failure: Failure) -> Finding:
    """Random numbers that are the same in each call, or are drawn for such values alone."""
    return Finding(
        code="AS149",
        name="random-not-kept",
        what="the file cannot draw the random numbers of the model: those of torch follow from its seed.",
        where=source_of(failure),
        why=f"at {say_sizes(failure.sizes)} the output depends on them{_values(failure)}: {say_failure(failure)}.",
        fix='draw once in __init__:   self.register_buffer("noise", torch.randn(...))',
        is_fix_untried=True,
        alternative="make the noise an input of forward.",
        sizes=failure.sizes,
    )


def _plain(failure: Failure, verdict: Verdict, checked: str) -> Finding:
    count = len({tuple(sorted(each.sizes.items())) for each in verdict.failures})
    share = f"{count} of {max(len(verdict.tried), count)} sizes fail"
    command = f"anyshape check {checked} --sizes {replay_option(failure.sizes)} --seed {failure.seed}"
    replay = command if failure.sizes else ""
    if failure.difference is not None:
        code, name = _NAMES[failure.difference.mismatch]
        output = f"output {failure.difference.output!r}" if failure.difference.output else "the answer"
        return Finding(
            code=code,
            name=name,
            what=f"{output} differs from PyTorch at {say_sizes(failure.sizes)} (smallest failing sizes).",
            where=say_node(failure),
            why=f"{say_failure(failure)}; {share}{_values(failure)}{say_fault(failure)}.",
            alternative=_other_values(verdict),
            replay=replay,
            sizes=failure.sizes,
            source=source_of(failure),
        )
    crashed = failure.kind in (FailureKind.CRASHED, FailureKind.TIMED_OUT, FailureKind.OUT_OF_MEMORY)
    happened = f"{_did(failure.kind)} at {say_sizes(failure.sizes)} (smallest failing sizes)"
    return Finding(
        code="AS307" if crashed else "AS306",
        name="runtime-died" if crashed else "runtime-refuses",
        what=f"{verdict.runtime} {happened}, where PyTorch answers.",
        where=say_node(failure),
        why=f"{first_line(failure.message, 300)}; {share}{_values(failure)}{say_fault(failure)}.",
        alternative=_other_values(verdict),
        replay=replay,
        sizes=failure.sizes,
        source=source_of(failure),
    )


def say_failure(failure: Failure) -> str:
    """What was expected and what came, in one line."""
    if failure.difference is None:
        return f"onnxruntime {_did(failure.kind)}: {first_line(failure.message)}"
    return say_difference(failure.difference)


def say_difference(difference: Difference) -> str:
    """`expected shape [1, 5], actual shape [3, 5]`."""
    word = {Mismatch.SHAPE: "shape ", Mismatch.DTYPE: "dtype "}.get(difference.mismatch, "")
    text = f"expected {word}{_say(difference.expected)}, actual {word}{_say(difference.actual)}"
    if difference.index is not None and difference.index != ():
        text += f" at {list(difference.index)}, {difference.count} elements differ"
    return text


def _say(value: Any) -> str:
    shown = list(value) if isinstance(value, tuple) else value
    return f"{shown:.6g}" if isinstance(shown, float) else str(shown)


def _did(kind: FailureKind) -> str:
    return {
        FailureKind.CRASHED: "crashes",
        FailureKind.TIMED_OUT: "does not end",
        FailureKind.OUT_OF_MEMORY: "runs out of memory",
        FailureKind.REJECTED: "cannot load the file",
        FailureKind.UNSUPPORTED: "has no kernel for the file",
    }.get(kind, "refuses")


def _values(failure: Failure) -> str:
    return "" if failure.values == "random" else f" (with input values: {failure.values})"


def _other_values(verdict: Verdict) -> str:
    """For failures at edge values alone, which inputs may never have."""
    if any(failure.values == "random" for failure in verdict.failures):
        return ""
    return (
        'if an input NAME never has such values, declare those it has: values={"NAME": "-10 <= NAME <= 10"}, '
        'or values="given".'
    )


def _nothing_compared(verdict: Verdict) -> Finding:
    why = verdict.refused[0].message if verdict.refused else "no sizes were left to try."
    return Finding(
        code="AS308",
        name="nothing-compared",
        what="the file could not be compared with PyTorch at any size.",
        why=first_line(why),
        fix="give inputs at which the model answers, or a larger --budget.",
    )


def diagnose_custom_nodes(needs: Sequence[str]) -> Finding:
    """The optimizer does not load files with custom nodes."""
    return _unfused(f"onnxruntime's optimizer does not load a file with the custom node {needs[0]}.")


def diagnose_rejected(message: str) -> Finding:
    """The optimizer wrote no file, for this reason."""
    return _unfused(f"onnxruntime's optimizer wrote no file: {first_line(message)}")


def diagnose_changed(verdict: Verdict) -> Finding:
    """The optimized file is wrong where the file before it is right."""
    failure = verdict.smallest_failure or next(iter(verdict.failures), None)
    if failure is None:
        return _unfused("the file of onnxruntime's optimizer could be compared at no size.")
    why = f"onnxruntime's optimizer changed what the file returns: at {say_sizes(failure.sizes)} {say_failure(failure)}"
    return _unfused(why)


def _unfused(why: str) -> Finding:
    return Finding(
        code="AS423",
        name="not-fused",
        severity=Severity.WARNING,
        what="target='onnxruntime' had no effect: the file has no fused operators.",
        why=why,
        fix="use the file as it is: it was verified, and onnxruntime fuses what it can when it loads it.",
        alternative="leave target out.",
    )


FileRule = Callable[[Judged], Iterable[Finding]]

RULES: tuple[FileRule, ...] = (
    lambda file: diagnose_outputs(file.exported, file.declared.output_axes, file.declared.domain),
    lambda file: diagnose_differences(
        file.verdict, file.declared.domain, file.regions, drawing_lines=_drawing_lines(file)
    ),
    lambda file: diagnose_clock(file.verdict),
    lambda file: () if file.is_part else diagnose_refused_inside(file.verdict, file.declared.domain, file.explored),
    lambda file: diagnose_cond_sides(file.verdict),
)


def _drawing_lines(file: Judged) -> set[str]:
    nodes = file.exported.model.graph.all_nodes()
    return {node.metadata_props.get(_LINE, "") for node in nodes if node.op_type in _DRAWS}


def diagnose_file(file: Judged) -> tuple[Finding, ...]:
    """The findings of all rules."""
    return tuple(finding for rule in RULES for finding in rule(file))
