"""A file of one size -> a file of many: readings that fit, written, and confirmed by evidence.

    words, file -> [ followed through the graph ] -> edits -> a file to try -> [ evidence ] -> written, or refused by node

What is written is forced: each number that was replaced has one reading that fits, or several about dims along which the
file was confirmed row by row.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import onnx_ir as ir

from anyshape.checking.file_evidence import FilePair, broken_form, kinds_of, write_to_run
from anyshape.contract.file_messages import runtime_rejects
from anyshape.findings import Finding, PromiseBroken, UsageError
from anyshape.repair import RULES, SearchEnded, find_reading, next_decisions
from anyshape.repair.declared_words import DeclaredAxes
from anyshape.repair.followed_graph import Follower
from anyshape.repair.known_shapes import Axes, Choice, Contradiction, Known, is_same_on, name_of
from anyshape.repair.repair_findings import (
    find_suspects,
    may_be_size,
    reading_text,
    repair_differs,
    several_readings,
    size_of_one,
    stays_fixed,
    unknown_reading,
)
from anyshape.repair.written_sizes import with_edits
from anyshape.runtime import ChildRunner, RunError

_TOO_SMALL = 2
_MOST_TRIED = 24
_RUN_LIMIT_S = 60.0


@dataclass(frozen=True)
class Reading:
    """A reading of the whole graph: what was followed, and the axes of its outputs."""

    follower: Follower
    outputs: Mapping[str, Axes]


@dataclass(frozen=True)
class Repaired:
    """A reading that is confirmed. `independent` are the dims along which it equals the original in pieces."""

    reading: Reading
    independent: tuple[str, ...]
    evidence: tuple[str, ...] = field(default=())


class Repair:
    """Finds the reading of one file."""

    def __init__(self, model: ir.Model, path: Path, declared: DeclaredAxes, given_readings: Mapping[str, str]) -> None:
        self._model = model
        self._path = path
        self._declared = declared
        self._given_readings = given_readings
        self._constants: dict[ir.Value, Known] = {}
        self._kinds = kinds_of(model.graph)

    def find(self) -> Repaired:
        """The only reading. Raises PromiseBroken where there is none, or more than one."""
        with ChildRunner(self._path, time_limit_s=_RUN_LIMIT_S) as original:
            self._check_loads(original)
            fixed = self._chosen_readings(self._complete({}))
            repaired = self._confirmed(original, fixed)
            self._check_small(original, repaired)
            self._check_others(original, repaired, fixed)
            self._check_numbers(repaired)
            self._check_runs(original, repaired.reading)
        return repaired

    def _check_loads(self, original: ChildRunner) -> None:
        """Raise UsageError where the runtime does not take the original: only what it takes is followed."""
        try:
            original.load()
        except RunError as error:
            raise UsageError(runtime_rejects(str(self._path), str(error))) from error

    def _complete(self, fixed: Mapping[str, int]) -> Reading:
        try:
            return self._follow_all(fixed)
        except Contradiction as found:
            raise PromiseBroken(stays_fixed(found, self._declared.dims)) from found

    def _follow_all(self, fixed: Mapping[str, int]) -> Reading:
        """A reading that fits at all sizes, or else one that fits where dims are multiples of a number."""
        try:
            return self._follow(fixed, may_assume=False)
        except Contradiction as found:
            try:
                return self._follow(fixed, may_assume=True)
            except Contradiction:
                raise found from None

    def _follow(self, fixed: Mapping[str, int], *, may_assume: bool) -> Reading:
        outputs: dict[str, Axes] = {}

        def follow(decisions: Mapping[str, int]) -> Follower:
            follower = Follower(RULES, self._declared.sizes, decisions, self._constants, may_assume=may_assume)
            found = follower.follow(self._model.graph, self._declared.inputs)
            try:
                self._declared.check_outputs(self._model.graph, found)
            except Contradiction as error:
                error.choices = tuple(follower.choices)
                raise
            outputs.clear()
            outputs.update(found)
            return follower

        follower = find_reading(follow, fixed)
        return Reading(follower, dict(outputs))

    def _chosen_readings(self, reading: Reading) -> dict[str, int]:
        """The choices that the user made, by key."""
        known = {choice.key: [reading_text(each) for each in choice.readings] for choice in reading.follower.choices}
        fixed = {}
        for key, text in self._given_readings.items():
            if key in known and text in known[key]:
                fixed[key] = known[key].index(text)
        numbers = {suspect for suspect, _ in self._numbers(reading)}
        for key, text in self._given_readings.items():
            if key not in fixed and key not in numbers:
                raise UsageError(unknown_reading(key, text, known))
        return fixed

    def _numbers(self, reading: Reading) -> Iterator[tuple[str, Finding]]:
        for suspect in find_suspects(reading.follower, self._declared.dims):
            yield name_of(suspect.node), may_be_size(suspect)

    def _confirmed(self, original: ChildRunner, fixed: Mapping[str, int]) -> Repaired:
        """The first reading that equals the original at its own sizes, and in pieces along as many dims as any does."""
        best: Repaired | None = None
        why = ""
        decisions: Mapping[str, int] | None = fixed
        for _ in range(_MOST_TRIED):
            if decisions is None:
                break
            try:
                reading = self._follow_all(decisions)
            except Contradiction as found:
                if best is None and not why:
                    raise PromiseBroken(stays_fixed(found, self._declared.dims)) from found
                break
            with self._written(original, reading) as pair:
                difference = _own_sizes(pair, self._path)
                if difference is None:
                    tried = Repaired(reading, *self._independent(pair))
                    best = tried if best is None or len(tried.independent) > len(best.independent) else best
                    open_dims = frozenset(self._declared.dims) - set(tried.independent)
                else:
                    why, open_dims = difference, frozenset(self._declared.dims)
            decisions = next_decisions(tuple(reading.follower.choices), fixed, open_dims) if open_dims else None
            if best is not None and decisions is not None and not self._is_worth(reading, open_dims):
                break
        if best is None:
            raise PromiseBroken(repair_differs("the repaired file differs from the original at its own sizes.", why))
        return best

    def _is_worth(self, reading: Reading, open_dims: frozenset[str]) -> bool:
        """Whether another reading may be independent along a dim of size 1, which no other evidence confirms."""
        small = {name for name in open_dims if self._declared.sizes[name] <= 1}
        return any(choice.dims & small for choice in reading.follower.choices)

    @contextlib.contextmanager
    def _written(self, original: ChildRunner, reading: Reading) -> Iterator[FilePair]:
        """Both files, ready to run."""
        with tempfile.TemporaryDirectory(prefix="anyshape-") as folder:
            path = Path(folder) / "repaired.onnx"
            with self.edited(reading):
                write_to_run(self._model, path, str(self._path))
            self._check_form(path)
            with ChildRunner(path, time_limit_s=_RUN_LIMIT_S) as runner:
                yield FilePair(
                    original, runner, self._kinds, self._declared.inputs, reading.outputs, self._declared.sizes
                )

    def _check_form(self, path: Path) -> None:
        """Raise PromiseBroken where the file breaks a rule of ONNX that the original keeps."""
        why = broken_form(path)
        if why and not broken_form(self._path):
            raise PromiseBroken(repair_differs("the repaired file is no valid ONNX model.", why))

    @contextlib.contextmanager
    def edited(self, reading: Reading) -> Iterator[ir.Model]:
        """The model with the reading written into it, as long as the block runs."""
        with with_edits(self._model, reading.follower.edits, self._declared.inputs, reading.outputs) as model:
            yield model

    def _independent(self, pair: FilePair) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The dims along which the file equals the original in pieces, and the sizes at which that was seen."""
        found, told = [], ["equal to the original at its own sizes"]
        for dim in self._declared.dims:
            own = self._declared.sizes[dim]
            counts = sorted({1, 2 * own, 3 * own, own + 1, 5} - {own}) if own > 1 else [2, 3, 5]
            others = {name: 2 * size for name, size in self._declared.sizes.items() if name != dim}
            if all(pair.difference_in_pieces(dim, count, {}) is None for count in counts):
                found.append(dim)
                told.append(f"equal to the original in pieces at {dim} = {', '.join(map(str, counts))}")
                if others and pair.difference_in_pieces(dim, 2 * own + 1, others) is not None:
                    told[-1] += ", at its own sizes of other dims"
        return tuple(found), tuple(told)

    def _check_small(self, original: ChildRunner, repaired: Repaired) -> None:
        for dim, size in self._declared.sizes.items():
            if size <= _TOO_SMALL and dim not in repaired.independent:
                with self._written(original, repaired.reading) as pair:
                    why = pair.difference_in_pieces(dim, 2 * size, {}) or "its pieces differ."
                raise PromiseBroken(size_of_one(dim, size, why))

    def _check_others(self, original: ChildRunner, repaired: Repaired, fixed: Mapping[str, int]) -> None:
        """Raise PromiseBroken for a number that can be read otherwise, with evidence that is no worse."""
        confirmed = {dim: self._declared.sizes[dim] for dim in repaired.independent}
        for choice in repaired.reading.follower.choices:
            if choice.key in fixed:
                continue
            others = [
                reading
                for index, reading in enumerate(choice.readings)
                if index != choice.taken
                and not choice.is_settled(reading, {} if choice.acts else confirmed)
                and self._fits(original, repaired, choice, index, fixed)
            ]
            if others:
                raise PromiseBroken(several_readings(choice, others))

    def _fits(
        self, original: ChildRunner, repaired: Repaired, choice: Choice, index: int, fixed: Mapping[str, int]
    ) -> bool:
        taken = {
            each.key: each.taken for each in repaired.reading.follower.choices if each.dims <= set(repaired.independent)
        }
        try:
            assumed = bool(repaired.reading.follower.multiples)
            reading = self._follow({**taken, **fixed, choice.key: index}, may_assume=assumed)
        except SearchEnded:
            return True  # not known to contradict
        except Contradiction:
            return False
        multiples = reading.follower.multiples
        if all(map(partial(is_same_on, multiples=multiples), choice.readings[index], choice.readings[choice.taken])):
            return False  # both are the same wherever the other one fits
        with self._written(original, reading) as pair:
            try:
                if pair.difference_at_own_sizes() is not None:
                    return False
            except RunError:
                return False
            own = self._declared.sizes
            return choice.acts or all(
                pair.difference_in_pieces(dim, 3 * own[dim], {}) is None for dim in repaired.independent
            )

    def _check_numbers(self, repaired: Repaired) -> None:
        """Raise PromiseBroken for numbers of formulas that may be sizes, unless the user answered."""
        found = [
            may_be_size(suspect)
            for suspect in find_suspects(repaired.reading.follower, self._declared.dims, repaired.independent)
            if name_of(suspect.node) not in self._given_readings
        ]
        if found:
            raise PromiseBroken(*found)

    def _check_runs(self, original: ChildRunner, reading: Reading) -> None:
        """Raise PromiseBroken where the file runs at no larger size, or gives other shapes than it declares."""
        sizes = self._declared.sizes
        with self._written(original, reading) as pair:
            for dim, own in sizes.items():
                step = reading.follower.multiples.get(dim, 1)
                tried = [pair.difference_of_shapes({**sizes, dim: size}) for size in (2 * own, own + step, 3 * own)]
                wrong = [each for each in tried if each is not None and each.startswith("shape of ")]
                if wrong or None not in tried:
                    what = f"the repaired file does not run at other sizes of {dim!r}."
                    raise PromiseBroken(repair_differs(what, next(each for each in (*wrong, *tried) if each)))


def _own_sizes(pair: FilePair, path: Path) -> str | None:
    try:
        return pair.difference_at_own_sizes()
    except RunError as error:
        fix = "the original has to run: a repair is compared with it."
        raise UsageError(runtime_rejects(str(path), str(error), "cannot run {} at its own sizes.", fix)) from error
