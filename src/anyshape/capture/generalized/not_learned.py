"""Why a module could not be learned from traces: one finding a reason, each with the user's line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anyshape.capture.generalized.trace import ANSWER, Step
from anyshape.domain import Sizes, format_sizes
from anyshape.findings import Finding, PromiseBroken, Reason, Source
from anyshape.modules.user_code import source_of_error, source_of_stack_text


class NotCaptured(PromiseBroken):
    """A rung that learns from traces cannot capture this module. `seen`: the values of the number without a rule, by sizes."""

    seen: Sequence[tuple[Sizes, Any]] = ()


def where(step: Step | None) -> Source | None:
    """The user's line of a step."""
    return source_of_stack_text(step.stack) if step is not None else None


def name_of(step: Step | None) -> str:
    """The operator as a person calls it."""
    if step is None:
        return "nothing more"
    if step.target == ANSWER:
        return "the answer"
    return str(getattr(step.target, "_opname", None) or step.target)


def at(sizes: Sizes) -> str:
    """`batch=3, seq=5`."""
    return format_sizes(sizes)


def number_without_rule(step: Step, seen: list[tuple[Sizes, Any]]) -> NotCaptured:
    shown = "; ".join(f"{_spoken(value)} at {at(point)}" for point, value in seen[:4])
    error = NotCaptured(
        Finding(
            code="AS120",
            name="number-without-rule",
            reason=Reason.NUMBER_WITHOUT_RULE,
            what=f"a number in {name_of(step)} follows no rule of the sizes that anyshape knows.",
            where=where(step),
            why=f"it was {shown}.",
            fix="compute it from x.shape with + - * // % min max, or sqrt and log for floats.",
        )
    )
    error.seen = seen
    return error


def value_asked(source: Source | None, asked: str) -> NotCaptured:
    return NotCaptured(
        Finding(
            code="AS121",
            name="value-asked",
            reason=Reason.VALUES_DECIDE,
            what="Python asks for a value that depends on the values of the inputs.",
            where=source,
            why=f"{asked.strip('_')}() of a tensor decides what runs; a trace would bake in what one input gave.",
            fix="compute with tensors instead: torch.where for a choice, a mask for a length.",
        )
    )


def traces_differ(first: Step | None, second: Step | None, sizes: Sizes, others: Sizes) -> NotCaptured:
    step = second or first
    return NotCaptured(
        Finding(
            code="AS122",
            name="path-depends-on-size",
            reason=Reason.PATH_DEPENDS_ON_SIZES,
            what=f"the model does other things at {at(sizes)} than at {at(others)}.",
            where=where(step),
            why=f"one runs {name_of(first)}, the other {name_of(second)}.",
            fix="let the same operations run at all sizes, or declare a domain on which they do.",
            sizes=dict(sizes),
        )
    )


def constant_without_rule(step: Step | None) -> NotCaptured:
    return NotCaptured(
        Finding(
            code="AS123",
            name="constant-without-rule",
            what="a tensor made from Python values changes with the sizes by no rule that anyshape knows.",
            where=where(step),
            why="it is neither arange, full, triangular, diagonal nor an outer combination of these.",
            fix="make it with torch operations on x.shape: torch.arange, torch.full, torch.tril.",
        )
    )


def not_traceable(error: BaseException, sizes: Sizes) -> NotCaptured:
    first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return NotCaptured(
        Finding(
            code="AS124",
            name="not-traceable",
            what=f"the model cannot be run step by step at {at(sizes)}.",
            where=source_of_error(error),
            why=f"{type(error).__name__}: {first_line[:200]}",
            fix="keep to torch operations; what numpy or other libraries do with values of tensors is not seen.",
            sizes=dict(sizes),
        )
    )


def not_predicted(step: Step | None, rounds: int) -> NotCaptured:
    return NotCaptured(
        Finding(
            code="AS125",
            name="rule-not-found",
            what=f"the rule for a number changed with every new trace, {rounds} times over.",
            where=where(step),
            why="what explains the traces so far does not predict the next ones.",
            fix="declare a smaller domain, or compute the number from x.shape in torch.",
        )
    )


def dim_unreadable(name: str) -> NotCaptured:
    return NotCaptured(
        Finding(
            code="AS126",
            name="dim-unreadable",
            what=f"no input tells the size of dim {name!r} when the file runs.",
            why="no axis of an input can be solved for it.",
            fix=f"give an input an axis of size {name!r}.",
        )
    )


def edge_without_rule(step: Step) -> NotCaptured:
    return NotCaptured(
        Finding(
            code="AS127",
            name="argument-without-rule",
            what=f"what {name_of(step)} takes comes from another place at every size or repetition.",
            where=where(step),
            why="it is neither the value of the repetition before nor one of a list that the loop collects.",
            fix="carry one value from step to step, or collect one value in every step.",
        )
    )


def number_only(step: Step, formula: str) -> NotCaptured:
    return NotCaptured(
        Finding(
            code="AS128",
            name="number-only",
            what=f"{name_of(step)} takes a number of Python where the file would compute {formula}.",
            where=where(step),
            why="ONNX has no form of it in which that number is computed.",
            fix="multiply or add a tensor instead.",
        )
    )


def write_in_loop(step: Step) -> NotCaptured:
    return NotCaptured(
        Finding(
            code="AS129",
            name="write-in-loop",
            what=f"{name_of(step)} writes into a tensor through a view, in a model with a loop.",
            where=where(step),
            why="which later steps see what it wrote cannot be told for this kind of view.",
            fix="collect the values in a list and stack it, or write by x[:, t] = value.",
        )
    )


def _spoken(number: Any) -> str:
    return "decided by values" if number is None else f"{number:g}"
