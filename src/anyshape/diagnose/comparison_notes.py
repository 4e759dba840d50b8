"""Notes about what comparing has shown, where the file is kept.

the runtime cannot load it, a copy was compared       ->  AS318, a warning with the operators at fault
it rounds worse than the model                        ->  a note, with its figure
it is wrong for integers below those of the inputs    ->  a note, with the bound
it answers otherwise for NaN in its inputs            ->  a note
a declared end that is too far to compare             ->  AS131, an error; a warning with accept_narrower
a dim without an upper end                            ->  AS132, a warning: the range ends at the largest compared size
a part of the module is compiled                      ->  AS161, a warning with the line that names it
the clock ended the comparisons                       ->  AS133, an error
the file answers at sizes where the module raises     ->  AS309, with the module's own message and line
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from anyshape.diagnose import first_line, replay_option, say_sizes
from anyshape.domain.bounded_values import lowest_text
from anyshape.findings import Finding, Reason, Remedy, Severity, Source
from anyshape.records.explored import End
from anyshape.records.verdict import Failure, Mismatch, Refusal, Verdict

_SHOWN = 3


def not_watched(name: str, line: Source | None) -> Finding:
    """A part of the module is compiled: what it does with sizes was not seen."""
    return Finding(
        code="AS161",
        name="code-not-watched",
        severity=Severity.WARNING,
        what=f"what {name!r} decides by sizes was not watched: its code is compiled.",
        where=line,
        why="the capture is not called proved, and each size is compared as far as the contract reaches.",
        fix=f"export with the Python code of {name!r} in its place, such as the module before torch.jit.script.",
    )


def diagnose_copy(verdict: Verdict) -> tuple[Finding, ...]:
    """A warning where the file was compared in a copy, since the runtime cannot load it."""
    if not verdict.is_of_copy:
        return ()
    operators = f" for {', '.join(verdict.no_kernels)}" if verdict.no_kernels else ""
    finding = Finding(
        code="AS318",
        name="no-kernels",
        severity=Severity.WARNING,
        what=f"{verdict.runtime} on the CPU cannot load the file: it has no bfloat16 kernel{operators}.",
        why="the file was compared in a copy that computes in float32 and rounds each result to bfloat16.",
        fix="export model.float() with inputs in float32: that file runs on the CPU.",
        alternative='load the file on a device with bfloat16: anyshape.load(path, providers=["CUDAExecutionProvider"]).',
    )
    return (finding,)


def diagnose_rounding(verdict: Verdict) -> tuple[Finding, ...]:
    """One note for each output that is more than one tolerance off and right in double precision."""
    return tuple(
        Finding(
            code="AS313",
            name="rounds-otherwise",
            severity=Severity.NOTE,
            what=f"output {each.output!r} is off by more than its tolerance, by rounding alone.",
            why=f"by {each.tolerances:.3g} tolerances at {say_sizes(each.sizes)}; in double precision file and model agree.",
            fix="nothing, if that does not matter to you; rtol= and atol= replace the tolerance by your own.",
            sizes=each.sizes,
        )
        for each in verdict.rounded
    )


def diagnose_lowest(verdict: Verdict) -> tuple[Finding, ...]:
    """One warning for each input whose integers are promised from a number on."""
    return tuple(
        Finding(
            code="AS314",
            name="integers-bounded",
            severity=Severity.WARNING,
            what=f"the file is right for values of {name!r} from {low} on; below, it answers otherwise than the model.",
            why=f"no value that the inputs gave is below {low}, and the contract promises none below it.",
            fix=f'declare which values occur: values={{"{name}": "{lowest_text(name, low)}"}}.',
            narrows=True,
        )
        for name, low in verdict.lowest.items()
    )


def diagnose_nan(verdict: Verdict) -> tuple[Finding, ...]:
    """One note for the first difference."""
    return tuple(
        Finding(
            code="AS159",
            name="nan-differs",
            severity=Severity.NOTE,
            what="for NaN in its inputs the file answers otherwise than the model.",
            why=f"at {say_sizes(failure.sizes)}: {_difference(failure, verdict.runtime)}",
            fix="look for NaN before the call, where it can occur.",
            sizes=dict(failure.sizes),
        )
        for failure in verdict.at_nan[:1]
    )


def _difference(failure: Failure, runtime: str) -> str:
    difference = failure.difference
    if difference is None:
        return f"the model answers, and {runtime} raises."
    if difference.mismatch is Mismatch.NAN:
        return f"NaN is at other places of output {difference.output!r}; ONNX leaves open what MaxPool and others do with it."
    return f"output {difference.output!r} differs; expected {difference.expected}, actual {difference.actual}."


def diagnose_ends(ends: Iterable[End], *, accept_narrower: bool) -> tuple[Finding, ...]:
    """What the ends of an extent mean for the declared domain."""
    found = [_end_not_compared(end, accept_narrower) for end in ends if end.is_short]
    return (*found, *(_open_range_ends(end) for end in ends if end.is_open))


def _end_not_compared(end: End, accepted: bool) -> Finding:
    thorough = "" if end.is_memory else ", or thorough=True (--thorough), which lifts the time limit"
    return Finding(
        code="AS131",
        name="end-not-compared",
        reason=Reason.END_NOT_COMPARED,
        about=(end.name,),
        severity=Severity.WARNING if accepted else Severity.ERROR,
        what=f"{end.name} is declared up to {end.declared}, and the file can be compared up to {end.largest} only.",
        why=f"the capture is not proved, so a size is promised only if the file was compared that far; {end.why}.",
        fix=f'where=["{end.name} <= {end.largest}"]',
        remedy=None if accepted else Remedy(where=(f"{end.name} <= {end.largest}",)),
        is_fix_untried=not accepted,
        alternative=f"accept_narrower=True writes the file for {end.name} <= {end.largest}{thorough}.",
        sizes={end.name: end.largest},
        narrows=accepted,
    )


def _open_range_ends(end: End) -> Finding:
    stopped = f"; {end.why}" if end.why else ""
    return Finding(
        code="AS132",
        name="open-range-ends",
        severity=Severity.WARNING,
        what=f"{end.name} has no declared upper end: the file answers up to {end.name} = {end.largest}.",
        why=f"the capture is not proved, so the range ends at the largest size that was compared{stopped}.",
        fix=""
        if end.farther is None
        else f'where=["{end.name} <= {end.farther}"], with the end that you need: it is then compared.',
        sizes={end.name: end.largest},
        narrows=True,
    )


def diagnose_clock(verdict: Verdict) -> tuple[Finding, ...]:
    """An error where the clock ended the comparisons before all planned sizes were compared."""
    if verdict.stopped_after is None:
        return ()
    left = [each.sizes for each in verdict.untried if each.is_out_of_time]
    some = "; ".join(say_sizes(sizes) for sizes in left[:_SHOWN])
    more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
    return (
        Finding(
            code="AS133",
            name="comparisons-out-of-time",
            what=f"{len(verdict.tried)} sizes were compared in {verdict.stopped_after:g} s, {len(left)} were not.",
            why=f"not compared: {some}{more}.",
            fix="give it more time: time_limit=1200 (--time-limit 20m).",
            is_fix_untried=True,
            alternative="declare smaller ends, so that fewer and smaller sizes have to be compared.",
        ),
    )


def diagnose_unpromised(refusals: Iterable[Refusal], replay: str) -> tuple[Finding, ...]:
    """One finding for all such sizes, the smallest of them named. `replay` is what `anyshape check` is given."""
    answered = [refusal for refusal in refusals if refusal.file_answers]
    if not answered:
        return ()
    smallest = min(answered, key=lambda refusal: prod(size + 1 for size in refusal.sizes.values()))
    others = f"; the same at {len(answered) - 1} other sizes" if len(answered) > 1 else ""
    option = f" --sizes {replay_option(smallest.sizes)}" if smallest.sizes else ""
    finding = Finding(
        code="AS309",
        name="answers-where-model-refuses",
        what=f"the file answers at {say_sizes(smallest.sizes)}, where the model itself refuses.",
        where=smallest.source,
        why=f"the model says: {first_line(smallest.message)}{others}.",
        fix="anyshape export writes a file that refuses there too.",
        replay=f"anyshape check {replay}{option}",
        sizes=smallest.sizes,
    )
    return (finding,)
