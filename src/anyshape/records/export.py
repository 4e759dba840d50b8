"""What translation gives, an ONNX model in the user's names, and what the user gets: contract, verdict and findings with
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from anyshape.domain import Sizes, format_sizes
from anyshape.findings import Finding, Reason, Severity, Source
from anyshape.records.captured import Captured, Guard, OutputTensor, RaisingRegion, Region
from anyshape.records.contract import Contract, Rule
from anyshape.records.runs import Reportable, Run, SourceRepair
from anyshape.records.verdict import FailureKind, Untried, Verdict

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

    from anyshape.inputs import Declared
    from anyshape.records.explored import Explored

_MOST_FAR = 2
_SHOWN = 3


@dataclass(frozen=True)
class Exported:
    """An ONNX model in memory: its inputs' names, its outputs' names with their dtypes and axes, its opset.

    `target` is the only runtime for which it is made; "" for any.
    """

    model: ir.Model
    input_names: tuple[str, ...]
    outputs: tuple[tuple[str, OutputTensor], ...]
    opset: int
    target: str = ""

    @property
    def output_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.outputs)


@dataclass(frozen=True)
class Untranslatable:
    """An operator without a translation, torch's stack text of its first use, and what its template needs.

    `tensors` and `others` are the names of its parameters, `outputs` counts what it returns. `body` is the error with which
    its Python body refused to be followed, and None where it has none. `mutates`: it changes its arguments.
    """

    operator: str
    stack: str | None
    tensors: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    outputs: int = 1
    body: BaseException | None = None
    mutates: bool = False


@dataclass(frozen=True)
class Attempt:
    """What one rung of the ladder came to: findings that stopped it, or a file and its verdict.

    `blamed` is the condition on sizes that stands in the way, `declared` the declaration that was worked with, `rules`
    what this rung added to it, `seconds` the time that it took.
    """

    strategy: str
    findings: tuple[Finding, ...]
    captured: Captured | None = None
    exported: Exported | None = None
    verdict: Verdict | None = None
    blamed: Guard | None = None
    declared: Declared | None = None
    rules: tuple[Rule, ...] = ()
    seconds: float = 0.0

    @property
    def is_right(self) -> bool:
        """Whether the rung gave a file without a finding against it."""
        broken = any(finding.severity is Severity.ERROR for finding in self.findings)
        return self.verdict is not None and self.verdict.passed and not broken

    @property
    def raising_regions(self) -> tuple[RaisingRegion, ...]:
        """Parts of the domain in which the module raises, as a capture has shown."""
        return self.captured.raising_regions if self.captured is not None else ()

    @property
    def refused_inside(self) -> tuple[Sizes, ...]:
        """Sizes of its contract that the module refused while the file was compared."""
        if self.verdict is None or self.declared is None:
            return ()
        return tuple(refusal.sizes for refusal in self.verdict.refused_in(self.declared.domain))

    @property
    def share_right(self) -> float:
        """Of the sizes at which its file was compared, how many it is right at: 0 without a file, 1 if at all of them."""
        if self.verdict is None or not self.verdict.tried:
            return 0.0
        return len(self.verdict.passed_sizes) / len(self.verdict.tried)

    @property
    def is_right_but_declared_otherwise(self) -> bool:
        """Whether all findings against the file are about the declaration: names of output axes, or ends that are too far."""
        found = {finding.reason for finding in self.findings if finding.severity is Severity.ERROR}
        is_declaration = bool(found) and found <= {Reason.END_NOT_COMPARED, Reason.OUTPUT_AXIS}
        return self.verdict is not None and self.verdict.passed and is_declaration

    @property
    def refuting_sizes(self) -> tuple[Sizes, ...]:
        """The smallest sizes at which the file was wrong, and a few of the largest."""
        if self.verdict is None or self.verdict.smallest_failure is None:
            return ()
        wrong = [failure.sizes for failure in self.verdict.failures if failure.kind is FailureKind.DIFFERS]
        far = sorted(wrong, key=lambda sizes: -sum(sizes.values()))[:_MOST_FAR]
        found = [self.verdict.smallest_failure.sizes, *far] if wrong else []
        return tuple(dict(key) for key in dict.fromkeys(tuple(sizes.items()) for sizes in found))

    @property
    def fails_at_empty_size(self) -> bool:
        """Whether the smallest sizes at which the file fails have a 0 among them."""
        failure = self.verdict.smallest_failure if self.verdict is not None else None
        return failure is not None and 0 in failure.sizes.values()

    def has(self, reason: Reason) -> bool:
        """Whether one of its findings was made for this reason."""
        return any(finding.reason is reason for finding in self.findings)


@dataclass(frozen=True, kw_only=True, repr=False)
class Export(Reportable):
    """The result of `anyshape.export`.

    `model` is the ONNX model in memory (an onnx_ir.Model; `model_proto` for onnx's own type), `path` the file that was
    written, or None; `attempts` what each rung of the ladder came to, `repair` what was edited in the source before,
    `run` how the result was made.
    """

    model: ir.Model = field(repr=False)
    contract: Contract
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    attempts: tuple[Attempt, ...] = field(default=(), repr=False)
    device: str = "cpu"
    seconds: float = 0.0
    path: Path | None = None
    repair: SourceRepair | None = None
    run: Run | None = field(default=None, repr=False)

    def __str__(self) -> str:
        head = f"{self.contract.status}: {self.path or 'in memory'} ({self.strategy})"
        tensors = [f"input  {tensor}" for tensor in self.contract.inputs]
        tensors += [f"output {tensor}" for tensor in self.contract.outputs]
        narrowed = [f"{found.code} {found.name}: {found.what}" for found in self.findings if found.narrows]
        return "\n  ".join([head, *tensors, *narrowed, *_untried(self.verdict)])

    __repr__ = __str__

    @property
    def strategy(self) -> str:
        """The rung that captured the model."""
        return self.contract.strategy

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The conditions under which the capture holds, with their lines."""
        return tuple(guard for region in self.regions for guard in region.guards)

    @property
    def regions(self) -> tuple[Region, ...]:
        """The programs of the capture, each with the condition under which it answers."""
        captured = self._captured()
        return captured.regions if captured is not None else ()

    @property
    def decisions(self) -> tuple[Source, ...]:
        """The lines at which the values of a call, not its sizes, choose what runs."""
        captured = self._captured()
        return captured.decisions if captured is not None else ()

    def _captured(self) -> Captured | None:
        return next((each.captured for each in self.attempts if each.strategy == self.strategy), None)

    @property
    def is_kept(self) -> bool:
        """Whether the promise is kept: the file was compared, and no finding is an error."""
        is_compared = self.contract.status != "unverified"
        return is_compared and all(finding.severity is not Severity.ERROR for finding in self.findings)

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model as onnx's own protobuf type."""
        import onnx_ir as ir

        return ir.to_proto(self.model)


def without_programs(result: Export | Attempt) -> Export | Attempt:
    """The result, or an attempt, without what stays in the process that made it: captured programs, other files.

    An `ExportedProgram` refers to the module by object, and the file of a strategy that did not succeed is not the user's.
    """
    if isinstance(result, Export):
        return replace(result, attempts=tuple(_without_programs(attempt) for attempt in result.attempts))
    return _without_programs(result)


def _without_programs(attempt: Attempt) -> Attempt:
    captured = attempt.captured
    if captured is not None:
        regions = tuple(replace(each, program=None, loops={}) for each in captured.regions)  # type: ignore[arg-type]
        captured = replace(captured, regions=regions)
    return replace(attempt, captured=captured, exported=None, declared=None)


def _untried(verdict: Verdict) -> list[str]:
    return [*describe_untried(verdict.untried), *describe_untried_values(verdict.untried_values)]


@dataclass(frozen=True)
class Judged:
    """A file with its verdict, and what it was exported from.

    `is_part`: it is a part of a larger file, for which numbers are made that may contradict each other.
    """

    exported: Exported
    verdict: Verdict
    declared: Declared
    explored: Explored
    regions: Sequence[Region] = ()
    is_part: bool = False


def describe_untried(untried: Iterable[Untried]) -> list[str]:
    """One line for each reason: the three largest sizes that were not compared for it, and how many others there are."""
    by_reason: dict[str, list[Sizes]] = {}
    for each in untried:
        by_reason.setdefault(each.why, []).append(each.sizes)
    return [f"untried {_some_of(sizes)}: {why}" for why, sizes in by_reason.items()]


def describe_untried_values(names: Sequence[str]) -> list[str]:
    """One line with the edge values that were left out; none if there are none."""
    if not names:
        return []
    shown = ", ".join(names[:_SHOWN])
    others = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return [f"untried values {shown}{others}: left out to keep the comparisons in proportion to the export"]


def _some_of(left_out: list[Sizes]) -> str:
    largest = sorted(left_out, key=lambda sizes: sum(sizes.values()), reverse=True)
    shown = "; ".join(format_sizes(sizes) for sizes in largest[:_SHOWN])
    others = len(largest) - _SHOWN
    return f"{shown} and {others} more" if others > 0 else shown
