"""Calls of a module under edits of its source: evidence that the edits are right, and checks that reject them.

At the example's sizes the outputs have to be those of the user's own module. Along a dim on which the module acts independently
(a batch), the outputs at n rows have to be those of the user's own module for these rows in groups of the example's size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from anyshape.domain import Sizes, dims_of, format_sizes
from anyshape.findings import PromiseBroken
from anyshape.inputs import Declared, Inputs, flatten_outputs
from anyshape.modules.module_forms import edited_copy
from anyshape.modules.structural_copy import working_copy
from anyshape.modules.user_code import make_source
from anyshape.repair.known_shapes import multiple_of, places_of_group
from anyshape.repair.source import Array, Call, Edits, Found
from anyshape.repair.source.axis_readings import Vector
from anyshape.repair.source.source_patch import example_too_small, line_edits, source_readings, source_repair_differs
from anyshape.repair.source.source_sites import Site, Sources
from anyshape.repair.source.traced_calls import follow_call
from anyshape.verify import Reference, Refused
from anyshape.verify.compare import OutputTolerance, compare_outputs
from anyshape.verify.reference import quiet
from anyshape.verify.tensors import map_tensors, to_array


def is_same(expected: Sequence[Array], actual: Sequence[Array]) -> bool:
    """Whether two lists of outputs are equal within the noise of floats."""
    tolerances = [OutputTolerance(str(index)) for index in range(len(expected))]
    return len(expected) == len(actual) and compare_outputs(expected, actual, tolerances) is None


@dataclass
class ModuleCalls:
    """Calls of one module and of its edited copies, at the example's sizes and at probes."""

    module: torch.nn.Module
    declared: Declared
    sources: Sources
    sizes: Sequence[Sizes]
    _inputs: list[Inputs] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._inputs = [self.declared.make(sizes, 0) for sizes in self.sizes]

    def edited(self, edits: Edits) -> torch.nn.Module | None:
        """A copy of the module with the edits; None where they cannot be made."""
        return edited_copy(self.module, line_edits({site: reading.text for site, reading in edits.items()}))

    def attempt(self, edits: Edits, places: Sequence[int]) -> Sequence[Call] | None:
        """The calls under some edits at some of the sizes; None where they cannot be made, or the first is refused."""
        edited = self.edited(edits)
        return None if edited is None else self.calls_of(edited, places)

    def calls_of(
        self, module: torch.nn.Module, places: Sequence[int] | None = None, *, with_values: bool = False
    ) -> Sequence[Call] | None:
        """A call at each of the sizes, or at some of them; None where the first is refused."""
        calls: list[Call] = []
        with Reference(module, flatten_outputs) as reference:
            for place in range(len(self.sizes)) if places is None else places:
                calls.append(self._call(reference, self._inputs[place], with_values=with_values and not calls))
                if calls[0].arrays is None:
                    return None
        return calls

    def _call(self, reference: Reference, inputs: Inputs, *, with_values: bool) -> Call:
        answers: list[Any] = []
        followed = follow_call(lambda: answers.append(reference.run(inputs)), self.sources, with_values=with_values)
        if not answers or isinstance(answers[0], Refused):
            return Call(followed, None, answers[0].message if answers else "")
        return Call(followed, answers[0].arrays)


@dataclass(frozen=True)
class RowEvidence:
    """Compares an edited module with the user's own in groups of rows."""

    original: torch.nn.Module
    declared: Declared

    def independent(self, edited: torch.nn.Module) -> dict[str, list[int]]:
        """The dims along which the edited module equals the original in groups, with the sizes at which that was seen."""
        own = self.declared.example_sizes
        found = {}
        with Reference(self.original, flatten_outputs) as one, Reference(edited, flatten_outputs) as other:
            for dim in self.declared.domain.names:
                wished = sorted({1, own[dim] - 1, own[dim] + 1, 2 * own[dim], 2 * own[dim] + 1, 5} - {0, own[dim]})
                counts = [count for count in wished if self.declared.domain.contains({**own, dim: count})]
                if counts and all(self._is_equal(_runner(one), _runner(other), dim, count) for count in counts):
                    found[dim] = counts
        return found

    def _is_equal(self, original: _Run, edited: _Run, dim: str, count: int) -> bool:
        own = self.declared.example_sizes
        inputs = self.declared.make({**own, dim: count}, count)
        actual = edited(inputs)
        pieces = [self._piece(inputs, dim, count, index) for index in range(-(-count // own[dim]))]
        if actual is None or None in pieces:
            return False
        answers = [original(piece) for piece in pieces if piece is not None]
        if None in answers:
            return False
        parts = list(zip(*(answer for answer in answers if answer is not None), strict=True))
        if len(parts) != len(actual):
            return False
        expected = [_joined(each, array, own[dim], count) for each, array in zip(parts, actual, strict=True)]
        return all(each is not None for each in expected) and is_same([e for e in expected if e is not None], actual)

    def _piece(self, inputs: Inputs, dim: str, count: int, index: int) -> Inputs | None:
        """One group of rows; the last one is filled with copies of its first row. None where rows cannot be taken."""
        own = self.declared.example_sizes
        values = self.declared.flat(inputs)
        for place, leaf in enumerate(self.declared.leaves):
            if leaf.number is not None and dim in dims_of(leaf.number):
                return None
            for axis, expr in enumerate(leaf.axes):
                if dim not in dims_of(expr):
                    continue
                width = multiple_of(expr, dim, own)
                if width is None:
                    return None
                places = places_of_group(index, own[dim], count, width)
                values[place] = values[place].index_select(axis, torch.tensor(places))
        return self.declared.rebuild(values)


def answers_alike_in_a_row(original: torch.nn.Module, edited: torch.nn.Module, declared: Declared) -> bool:
    """Whether three calls in a row at the example's sizes, with what they keep, have the same outputs."""
    copies = [working_copy(original), working_copy(edited)]
    if copies[0] is original or copies[1] is edited:
        return False
    for seed in range(3):
        answers = []
        for copy in copies:
            inputs = map_tensors(declared.make(declared.example_sizes, seed), torch.clone)
            torch.manual_seed(seed)
            with torch.no_grad(), quiet():
                outputs = declared.call(copy.eval(), inputs)
            answers.append([to_array(leaf) for _, leaf in flatten_outputs(outputs) if leaf is not None])
        if not is_same(*answers):
            return False
    return True


_Run = Callable[[Inputs], Sequence[Array] | None]


def _runner(reference: Reference) -> _Run:
    def run(inputs: Inputs) -> Sequence[Array] | None:
        answer = reference.run(inputs)
        return None if isinstance(answer, Refused) else answer.arrays

    return run


def _joined(parts: Sequence[Array], actual: Array, own: int, count: int) -> Array | None:
    """The outputs of the groups side by side along the axis that follows the rows; None where there is none such."""
    if parts[0].ndim != actual.ndim:
        return None
    axes = [axis for axis in range(actual.ndim) if parts[0].shape[axis] != actual.shape[axis]]
    if not axes:
        return parts[0]
    if len(axes) > 1 or actual.shape[axes[0]] * own != parts[0].shape[axes[0]] * count:
        return None
    whole: Array = np.concatenate(parts, axes[0]).take(range(actual.shape[axes[0]]), axes[0])
    return whole


@dataclass(frozen=True)
class Confirmed:
    """Edits with the edited module, and the dims along which it equals the original in groups of rows, at which sizes."""

    found: Found
    module: torch.nn.Module
    independent: Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class RepairChecks:
    """Checks of one repair; `sizes` are those of the calls, the example's first."""

    module: torch.nn.Module
    declared: Declared
    sizes: Sequence[Sizes]

    def check(self, best: Confirmed, original: Sequence[Call]) -> None:
        """Raise PromiseBroken where a check rejects the edits."""
        self._check_answered(best, original)
        for dim in self.followed(best):
            if self.sizes[0][dim] <= 1 and dim not in best.independent:
                raise PromiseBroken(example_too_small(dim, self.sizes[0][dim]))
        if not answers_alike_in_a_row(self.module, best.module, self.declared):
            site = next(iter(best.found.edits))
            why = f"the model keeps state: a second call answers otherwise than with {best.found.edits[site].text}."
            raise PromiseBroken(source_repair_differs(make_source(site.file, site.line), why))

    def evidence(self, confirmed: Confirmed) -> list[str]:
        """The evidence for the edits."""
        told = ["equal to the model at the example's sizes"]
        for dim, counts in confirmed.independent.items():
            told.append(f"equal to the model in groups of rows at {dim} = {', '.join(map(str, counts))}")
        others = [dim for dim in self.followed(confirmed) if dim not in confirmed.independent]
        told += [f"the only reading of {dim} with which the model answers at {len(self.sizes)} sizes" for dim in others]
        return told

    def followed(self, confirmed: Confirmed) -> list[str]:
        """The dims that the edits follow; all of them where one follows something else."""
        found = [self.dim_of(vector) for reading in confirmed.found.edits.values() for vector in reading.follows]
        known = [name for name in dict.fromkeys(found) if name is not None]
        return known if None not in found else list(self.declared.domain.names)

    def dim_of(self, vector: Vector) -> str | None:
        """The dim that has these sizes in all calls."""
        for name in self.declared.domain.names:
            if all(size in (None, sizes[name]) for sizes, size in zip(self.sizes, vector, strict=True)):
                return name
        return None

    def guessed(self, confirmed: Confirmed) -> list[Site]:
        """The sites whose reading is a guess, and follows a dim along which the rows are not independent."""
        return [
            site
            for site, reading in confirmed.found.edits.items()
            if reading.is_guess and not all(self.dim_of(vector) in confirmed.independent for vector in reading.follows)
        ]

    def _check_answered(self, best: Confirmed, original: Sequence[Call]) -> None:
        """Raise PromiseBroken where the user's module answers at other sizes, otherwise than the edited one.

        Rows that follow a dim may not become more or fewer by accident: `x.reshape(-1, 5 * 20)` has two rows for each one
        where there are ten frames in place of five.
        """
        calls = zip(self.sizes, original, best.found.calls, strict=True)
        for place, (sizes, before, after) in enumerate(calls):
            if before.arrays is None or after.arrays is None or is_same(before.arrays, after.arrays):
                continue
            if self._has_other_rows(best, sizes, before, after) and self._is_accident(sizes, original):
                continue
            edits = best.found.edits
            site = next((site for site in edits if place in edits[site].changes_at), next(iter(edits)))
            texts = [site.text, edits[site].text]
            why = f"at {format_sizes(sizes)} the model answers as it is, and otherwise with {texts[1]}."
            raise PromiseBroken(source_readings(make_source(site.file, site.line), site.text, texts, why))

    def _is_accident(self, sizes: Sizes, original: Sequence[Call]) -> bool:
        """Whether the user's module refuses a dim, which differs from the example here, when that alone is larger by 1."""
        own = self.sizes[0]
        refused = {
            name
            for each, call in zip(self.sizes, original, strict=True)
            for name in own
            if each == {**own, name: own[name] + 1} and call.arrays is None
        }
        return any(sizes[name] != own[name] for name in refused)

    def _has_other_rows(self, best: Confirmed, sizes: Sizes, before: Call, after: Call) -> bool:
        """Whether the user's module has another number of rows than a dim along which rows are independent."""
        own = best.found.calls[0].arrays or ()
        for old, new, first in zip(before.arrays or (), after.arrays or (), own, strict=False):
            if not old.ndim == new.ndim == first.ndim:
                continue
            rows = list(zip(old.shape, new.shape, first.shape, strict=True))
            if any(a != b == sizes[dim] and c == self.sizes[0][dim] for dim in best.independent for a, b, c in rows):
                return True
        return False
