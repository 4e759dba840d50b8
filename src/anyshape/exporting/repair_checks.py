"""Checks that reject edits of a module's source although the module answers with them at all sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyshape.domain import Sizes, format_sizes
from anyshape.exporting.module_evidence import answers_alike_in_a_row, is_same
from anyshape.findings import PromiseBroken
from anyshape.inputs import Declared
from anyshape.modules.frames import make_source
from anyshape.repair.source.axis_readings import Vector
from anyshape.repair.source.edit_search import Call, Found
from anyshape.repair.source.source_messages import example_too_small, source_readings, source_repair_differs
from anyshape.repair.source.source_sites import Site

if TYPE_CHECKING:
    import torch


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
        """Raise PromiseBroken where something speaks against the edits."""
        self._check_answered(best, original)
        for dim in self.followed(best):
            if self.sizes[0][dim] <= 1 and dim not in best.independent:
                raise PromiseBroken(example_too_small(dim, self.sizes[0][dim]))
        if not answers_alike_in_a_row(self.module, best.module, self.declared):
            site = next(iter(best.found.edits))
            why = f"the model keeps state: a second call answers otherwise than with {best.found.edits[site].text}."
            raise PromiseBroken(source_repair_differs(make_source(site.file, site.line), why))

    def evidence(self, confirmed: Confirmed) -> list[str]:
        """What speaks for the edits."""
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
