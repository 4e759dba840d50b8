"""Compare two files of one model over the same sizes: each with the module, each with the other, and what each costs.

[ file checked as `check` does ] x 2 -> both run on the same inputs at each size -> both timed at a few -> record
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from anyshape.checking import BenchOptions, bench_file, choose_bench_sizes
from anyshape.checking.compare_file import Checked, check_file, compare_file
from anyshape.contract import Matched, find_contract, match_file, read_model
from anyshape.contract.build import describe_run
from anyshape.domain import Sizes
from anyshape.exporting.context import Tell
from anyshape.findings import Finding
from anyshape.inputs import Declared, flatten_outputs
from anyshape.inputs.making import promised_values
from anyshape.records.runs import Benched
from anyshape.records.verdict import Difference, Mismatch, Verdict
from anyshape.report.file_comparison import LETTERS, ErrorsAt, FilesCompared, FileSide
from anyshape.report.page.comparison_page import render_comparison, render_comparison_summary
from anyshape.runtime import ChildRunner, RunError
from anyshape.runtime.child_messages import Array
from anyshape.saving import write_atomically
from anyshape.saving.outputs import PAGE
from anyshape.verify import Reference, VerifyOptions
from anyshape.verify.compare import Comparison, OutputTolerance, compare_in_full
from anyshape.verify.noise import MEASURED_SIZES, NoiseFloor, Yardstick
from anyshape.verify.plan import spread
from anyshape.verify.reference import Answer
from anyshape.verify.request import file_bytes, graphs_of
from anyshape.verify.tensors import total_elements
from anyshape.verify.tolerance import Tolerance

if TYPE_CHECKING:
    import torch


_EACH = 2.0  # tolerances: each file may be one off, in either direction
Paths = tuple[Path, Path]


@dataclass(frozen=True, kw_only=True)
class ComparingOptions:
    """How both files are compared, and how they are measured; `bench` None measures nothing. `sizes`: at these alone."""

    verify: VerifyOptions
    bench: BenchOptions | None = None
    sizes: Sizes | None = None


def compare_files(
    paths: Paths,
    module: torch.nn.Module,
    declared: Declared,
    options: ComparingOptions,
    tell: Tell,
    spelled: str = "model.py",
) -> FilesCompared:
    """Whether each of the files is right, whether they agree, and what they cost. `spelled` is how the user named the model."""
    began = time.monotonic()
    for path in paths:
        read_model(
            path, needs_weights=True
        )  # raises for a file that is missing or broken, before minutes are spent on the other one
    first, second = (_check(path, module, declared, options, tell, spelled) for path in paths)
    sizes = list({tuple(each.items()): each for each in (*first.verdict.tried, *second.verdict.tried)}.values())
    failed = [failure.sizes for checked in (first, second) for failure in checked.verdict.failures]
    sizes += [dict(each) for each in failed if each not in sizes]
    why = _why_not_paired(paths)
    rows = () if why else _pair(paths, module, declared, options, sizes, tell, (first, second))
    one, other = (_side(path, checked) for path, checked in zip(paths, (first, second), strict=True))
    if options.bench is not None:
        chosen = _bench_sizes(paths, module, declared, options.bench)
        one = replace(one, benched=_bench(paths[0], module, declared, replace(options.bench, sizes=chosen), tell))
        other = replace(other, benched=_bench(paths[1], module, declared, replace(options.bench, sizes=chosen), tell))
    is_given = options.verify.rtol is not None or options.verify.atol is not None
    unit = "tolerances" if is_given else "noise floors"
    seconds = time.monotonic() - began
    return FilesCompared(sides=(one, other), rows=tuple(rows), unit=unit, not_paired=why, seconds=seconds)


def _check(
    path: Path, module: torch.nn.Module, declared: Declared, options: ComparingOptions, tell: Tell, spelled: str
) -> Checked:
    named = _naming(tell, path)

    def compare(over: Declared) -> tuple[Verdict, tuple[Finding, ...]]:
        return compare_file(path, module, over, options.verify, options.sizes, named, spelled)

    return check_file(path, declared, options.sizes, compare)


def _naming(tell: Tell, path: Path) -> Tell:
    return lambda stage, done, total: tell(f"{stage} {path.name}", done, total)


def _why_not_paired(paths: Paths) -> str:
    contracts = [contract for path in paths if (contract := find_contract(path)) is not None]
    if any(contract.random for contract in contracts):
        return "the model draws random numbers, so the files are compared with the model alone, as samples."
    if any(contract.state for contract in contracts):
        return "a file carries state from call to call, so the files are compared with the model alone."
    return ""


def _side(path: Path, checked: Checked) -> FileSide:
    model, contract = read_model(path), find_contract(path)
    return FileSide(
        path=str(path),
        bytes=file_bytes(str(path)),
        nodes=sum(len(graph.node) for graph in graphs_of(model)),
        opset=next((opset.version for opset in model.opset_import if opset.domain in ("", "ai.onnx")), 0),
        contract="none"
        if contract is None
        else f"{contract.status}, changed since"
        if checked.change
        else contract.status,
        verdict=checked.verdict,
        findings=checked.findings,
    )


def _bench_sizes(paths: Paths, module: torch.nn.Module, declared: Declared, options: BenchOptions) -> Sequence[Sizes]:
    """Sizes that both contracts have, from the least work to the most."""
    if options.sizes:
        return options.sizes
    contract = find_contract(paths[1])
    chosen = choose_bench_sizes(paths[0], module, declared, options)
    names = set(declared.domain.names)
    if contract is None or set(contract.domain.names) != names:
        return chosen
    return [sizes for sizes in chosen if contract.domain.contains(sizes)] or [dict(declared.example_sizes)]


def _bench(path: Path, module: torch.nn.Module, declared: Declared, options: BenchOptions, tell: Tell) -> Benched:
    return bench_file(path, module, declared, options, _naming(tell, path))


def _pair(
    paths: Paths,
    module: torch.nn.Module,
    declared: Declared,
    options: ComparingOptions,
    sizes: Sequence[Sizes],
    tell: Tell,
    checked: tuple[Checked, Checked],
) -> list[ErrorsAt]:
    """Both files on the same inputs at each of the sizes."""
    for path in paths:
        contract = find_contract(path)
        declared = promised_values(declared, contract.values) if contract is not None else declared
    are_right = all(not each.errors for each in checked)
    rows = []
    with Reference(module, flatten_outputs) as reference, _runners(paths, options.verify) as runners:
        pair = _Pair(paths, declared, reference, options.verify, runners, are_right)
        floor = pair.measure(sizes)
        for done, each in enumerate(sizes):
            tell("comparing the two files", done, len(sizes))
            row = pair.compare(each, floor)
            rows += [row] if row is not None else []
    return rows


@contextmanager
def _runners(paths: Paths, options: VerifyOptions) -> Iterator[tuple[ChildRunner, ChildRunner]]:
    limits = {"time_limit_s": options.run_limit_s, "memory_limit": options.memory_limit, "providers": options.providers}
    with ChildRunner(str(paths[0]), **limits) as one, ChildRunner(str(paths[1]), **limits) as other:  # type: ignore[arg-type]
        yield one, other


class _Pair:
    """The two files beside the module."""

    def __init__(
        self,
        paths: Paths,
        declared: Declared,
        reference: Reference,
        options: VerifyOptions,
        runners: tuple[ChildRunner, ChildRunner],
        are_right: bool,
    ) -> None:
        self.declared, self.reference, self.options, self.runners = declared, reference, options, runners
        self.matched: list[Matched] = [match_file(path, declared) for path in paths]
        self.are_right = are_right

    def measure(self, sizes: Sequence[Sizes]) -> NoiseFloor:
        if not sizes or self.options.rtol is not None or self.options.atol is not None:
            return NoiseFloor()
        samples = [self.declared.make(each, self.options.seed) for each in spread(sizes, MEASURED_SIZES)]
        return Yardstick(self.reference).measure(samples)

    def compare(self, sizes: Sizes, floor: NoiseFloor) -> ErrorsAt | None:
        """The errors at some sizes; None where the module itself refuses them."""
        inputs = self.declared.make(sizes, self.options.seed)
        answer = self.reference.recall(inputs)
        if not isinstance(answer, Answer):
            return None
        tolerances = self._tolerances(answer, floor, total_elements(inputs))
        feeds = self.declared.feeds(inputs)
        answers: list[list[Array] | None] = []
        unanswered: dict[str, str] = {}
        for letter, runner, matched in zip(LETTERS, self.runners, self.matched, strict=True):
            try:
                answers.append(runner.run(matched.rename(feeds)))
            except RunError as error:
                unanswered[letter] = str(error).strip()
                answers.append(None)
        one, other = answers
        compared = [None if each is None else compare_in_full(answer.arrays, each, tolerances) for each in answers]
        between = None if one is None or other is None else compare_in_full(one, other, tolerances)
        return ErrorsAt(
            sizes=dict(sizes),
            errors=(_error(compared[0], tolerances), _error(compared[1], tolerances)),
            between=_error(between, tolerances),
            beyond=(_is_beyond(compared[0]), _is_beyond(compared[1])),
            differs="" if between is None else self._said(between.difference),
            unanswered=unanswered,
        )

    def _tolerances(self, answer: Answer, floor: NoiseFloor, elements: int) -> tuple[OutputTolerance, ...]:
        own = self.matched[0].outputs
        names = own if len(own) == len(answer.paths) else answer.paths
        if self.options.rtol is None and self.options.atol is None:
            return floor.tolerances(names, answer, elements)
        tolerance = Tolerance(rtol=self.options.rtol, atol=self.options.atol)
        return tuple(
            OutputTolerance(name, tolerance, free) for name, free in zip(names, answer.python_floats, strict=True)
        )

    def _said(self, difference: Difference | None) -> str:
        """How the two differ; "" where each may be one tolerance off, or both are right on inputs that rounding decides."""
        if difference is None:
            return ""
        if difference.mismatch is Mismatch.VALUE and (difference.excess <= _EACH or self.are_right):
            return ""
        values = f"{_short(difference.expected)} and {_short(difference.actual)}"
        return f"{difference.mismatch.value} of {difference.output}: {values}"


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_beyond(compared: Comparison | None) -> bool:
    return compared is not None and compared.difference is not None


def _error(compared: Comparison | None, tolerances: Sequence[OutputTolerance]) -> float:
    """The worst error over all outputs in units of the noise floor; NaN where a file raised."""
    if compared is None:
        return math.nan
    return max(
        (excess * each.tolerance.allowed for excess, each in zip(compared.excess, tolerances, strict=False)),
        default=0.0,
    )


class ComparisonReporter:
    """The reporter of a comparison of two files."""

    def write(self, result: FilesCompared, path: Path, bench: Benched | None = None, *, command: str = "") -> None:
        """Write the page. Raises UsageError where it cannot be written, or a package is missing."""
        if bench is not None:
            raise TypeError("report() of a comparison takes no bench: both files are measured by compare(measure=4)")
        page = render_comparison(result, command=command).encode("utf-8")
        write_atomically(path, lambda stream: stream.write(page), PAGE)

    def summarize(self, result: FilesCompared) -> str | None:
        """The two files side by side as HTML."""
        return render_comparison_summary(result)


def with_page(compared: FilesCompared, declared: Declared, model: str, seed: int) -> FilesCompared:
    """The comparison as the user gets it: with what was declared, and with a page; `model` is the name of the model."""
    return replace(compared, run=describe_run(model, declared, seed), reporter=ComparisonReporter())
