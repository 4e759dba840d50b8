"""A module that answers at one size -> a copy with edited source that follows its sizes, confirmed by evidence, and its export.

    module, probes -> [ search of edits ] -> the only one that fits -> [ evidence ] -> exported as any module is

Where two sets of edits fit, evidence chooses; otherwise nothing is edited, and the findings show both.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from anyshape.contract.metadata import REPAIRED_KEY, write_contract
from anyshape.domain import Sizes
from anyshape.exporting import pipeline
from anyshape.exporting.context import Options, Tell
from anyshape.exporting.module_evidence import ModuleCalls, RowEvidence, is_same
from anyshape.findings import Finding, PromiseBroken, Severity
from anyshape.inputs import Declared
from anyshape.modules.frames import make_source
from anyshape.modules.user_code import user_functions
from anyshape.records.export import Export
from anyshape.records.repaired import SourceEdit, SourceRepair
from anyshape.repair.source.axis_readings import Vector
from anyshape.repair.source.edit_search import Call, EditSearch, Found
from anyshape.repair.source.inlined_tables import read_definitions
from anyshape.repair.source.other_readings import layer_numbers, other_readings
from anyshape.repair.source.repair_probes import probe_sizes
from anyshape.repair.source.source_messages import (
    example_too_small,
    module_repaired,
    not_repaired,
    source_readings,
    source_repair_differs,
)
from anyshape.repair.source.source_patch import unified_diff
from anyshape.repair.source.source_sites import Site, read_sources

if TYPE_CHECKING:
    import torch

_SEARCH_S = 90.0
_MOST_TRIED, _FEWEST_TRIED = 240, 12


def export_repaired(
    module: torch.nn.Module, declared: Declared, options: Options, tell: Tell, repaired: torch.nn.Module | None
) -> Export:
    """The export of the module, edited first where it answers at one size. Raises PromiseBroken."""
    tell("looking for a repair", 0, 0)
    try:
        found = repair_module(module, declared, repaired)
    except PromiseBroken as without:
        return _export_without(module, declared, options, tell, without)
    if found is None:
        return pipeline.export(module, declared, options, tell)
    edited, repair = found
    finding = module_repaired(repair)
    try:
        result = pipeline.export(edited, declared, options, tell)
    except PromiseBroken as broken:
        broken.add(finding)
        raise
    contract = replace(result.contract, findings=(*result.contract.findings, finding))
    write_contract(result.model, contract)
    result.model.metadata_props[REPAIRED_KEY] = json.dumps(repair.as_plain())
    return replace(result, findings=(*result.findings, finding), contract=contract, repair=repair)


def _export_without(
    module: torch.nn.Module, declared: Declared, options: Options, tell: Tell, without: PromiseBroken
) -> Export:
    """The export of the module as it is; the findings about its repair are added."""
    try:
        result = pipeline.export(module, declared, options, tell)
    except PromiseBroken as broken:
        for finding in without.findings:
            broken.add(finding)
        raise
    more = [replace(finding, severity=Severity.WARNING) for finding in without.findings]
    return replace(result, findings=(*result.findings, *more))


class _NothingFits(PromiseBroken):
    """No edits were found under which the module answers."""


def repair_module(
    module: torch.nn.Module, declared: Declared, repaired: torch.nn.Module | None = None
) -> tuple[torch.nn.Module, SourceRepair] | None:
    """The edited module and what was edited; None where the module answers. Raises PromiseBroken where nothing is sure.

    Where no edits are enough for all sizes, dims for which none are may have to be multiples of a number, as in a model
    that pools: they are tried at multiples of the example's size alone.
    """
    try:
        return ModuleRepair(module, declared, repaired, probe_sizes(declared.domain, declared.example_sizes)).find()
    except _NothingFits as nothing:
        probes = _loose_probes(module, declared)
        if not probes:
            raise
        try:
            found = ModuleRepair(module, declared, repaired, probes).find()
        except _NothingFits:
            raise nothing from None
        if found is None:
            raise
        return found


def _loose_probes(module: torch.nn.Module, declared: Declared) -> list[dict[str, int]]:
    """Sizes at which some dims are multiples of the example's; none if that is all dims, or none of them."""
    domain, own = declared.domain, declared.example_sizes
    loose = []
    for name in domain.names:
        try:
            ModuleRepair(module, declared, None, probe_sizes(domain, own, [name])).search()
        except _NothingFits:
            loose.append(name)
    return probe_sizes(domain, own, None, loose) if 0 < len(loose) < len(domain.names) else []


@dataclass(frozen=True)
class _Confirmed:
    """Edits, and the dims along which they equal the original in groups of rows."""

    found: Found
    module: torch.nn.Module
    independent: dict[str, list[int]]


class ModuleRepair:
    """Finds the edits of one module."""

    def __init__(
        self,
        module: torch.nn.Module,
        declared: Declared,
        repaired: torch.nn.Module | None,
        probes: Sequence[dict[str, int]],
    ) -> None:
        self._module = module
        self._declared = declared
        self._repaired = repaired
        self._own = declared.example_sizes
        self._sizes = [dict(self._own), *probes]
        self._rows = RowEvidence(module, declared)

    @cached_property
    def _calls(self) -> ModuleCalls:
        sources = read_sources(user_functions(self._module))
        return ModuleCalls(self._module, self._declared, sources, self._sizes)

    def find(self) -> tuple[torch.nn.Module, SourceRepair] | None:
        """The edited module and what was edited; None where the module answers. Raises PromiseBroken where nothing is sure."""
        searched = self.search()
        if searched is None:
            return None
        search, found = searched
        search.most *= 2  # for readings of other numbers
        if self._repaired is not None:
            chosen, evidence = self._like_repaired(search, found, self._repaired)
        else:
            chosen, evidence = self._only_one(search, found)
        return chosen.module, self._record(chosen.found, evidence)

    def search(self) -> tuple[EditSearch, list[Found]] | None:
        """Edits under which the module answers at all sizes; None where it does without. Raises _NothingFits."""
        began = time.monotonic()
        original = self._calls.calls_of(self._module, with_values=True) if len(self._sizes) > 1 else None
        if original is None or all(call.arrays is not None for call in original):
            return None
        most = int(_SEARCH_S / max(time.monotonic() - began, 1e-3))
        most = min(max(most, _FEWEST_TRIED), _MOST_TRIED)
        definitions = read_definitions(user_functions(self._module))
        search = EditSearch(self._calls.sources, self._calls.attempt, original, is_same, definitions, most)
        found = search.find()
        if not found:
            search.with_names = True
            found = search.find()
        if not found:
            raise _NothingFits(self._nothing_fits(search))
        return search, found

    def _nothing_fits(self, search: EditSearch) -> Finding:
        failed = next(call for call in search.original if call.arrays is None)
        where = make_source(*search.furthest) if search.furthest is not None else None
        ended = " The search was ended before all were tried." if search.is_ended else ""
        why = f"there it raises: {failed.message.splitlines()[0]}\nno number there follows a size.{ended}"
        return not_repaired(where, why)

    def _confirmed(self, found: Found) -> _Confirmed:
        edited = self._calls.edited(found.edits)
        assert edited is not None
        return _Confirmed(found, edited, self._rows.independent(edited))

    def _like_repaired(
        self, search: EditSearch, found: Sequence[Found], repaired: torch.nn.Module
    ) -> tuple[_Confirmed, list[str]]:
        """The edits under which the module answers as the user's repaired one does."""
        expected = self._calls.calls_of(repaired)
        if expected is None or any(call.arrays is None for call in expected):
            why = "`repaired` itself raises at sizes of the domain."
            raise PromiseBroken(source_repair_differs(None, why))
        wished = Found({}, expected)
        tried = list(found)
        tried += [other for each in found for _, other in self._others(search, each)]
        fitting = next((each for each in tried if search.is_equal(each, wished)), None)
        if fitting is None:
            site = next(iter(found[0].edits))
            why = "none of the edits under which the model answers has the answers of `repaired`."
            raise PromiseBroken(source_repair_differs(make_source(site.file, site.line), why))
        confirmed = self._confirmed(fitting)
        return confirmed, [*self._evidence(confirmed), f"equal to `repaired` at {len(expected)} sizes"]

    def _only_one(self, search: EditSearch, found: Sequence[Found]) -> tuple[_Confirmed, list[str]]:
        """The edits that fit, if evidence is against all others. Raises PromiseBroken."""
        confirmed = [self._confirmed(each) for each in found]
        sure = [each for each in confirmed if not self._guessed(each)]
        if not sure:
            raise PromiseBroken(self._is_guess(confirmed[0]))
        best = max(sure, key=lambda each: len(each.independent))
        self._check_answered(best, search.original)
        for other in sure:
            if other is not best and other.independent.keys() >= best.independent.keys():
                raise PromiseBroken(self._ambiguous(best.found, other.found))
        self._check_small(best)
        self._check_others(search, best)
        return best, self._evidence(best)

    def _guessed(self, confirmed: _Confirmed) -> list[Site]:
        """The sites whose reading is a guess, and follows a dim along which the rows are not independent."""
        return [
            site
            for site, reading in confirmed.found.edits.items()
            if reading.is_guess
            and not all(self._dim_of(vector) in confirmed.independent for vector in reading.follows)
        ]

    def _is_guess(self, confirmed: _Confirmed) -> Finding:
        site = self._guessed(confirmed)[0]
        text = confirmed.found.edits[site].text
        why = f"{site.text!r} has the example's size, and its values follow no pattern that goes on."
        return not_repaired(make_source(site.file, site.line), why, f"if the model means that: {site.text} -> {text}")

    def _dim_of(self, vector: Vector) -> str | None:
        """The dim that has these sizes in all calls."""
        for name in self._declared.domain.names:
            pairs = zip(self._sizes, vector, strict=True)
            if all(size is None or sizes[name] == size for sizes, size in pairs):
                return name
        return None

    def _check_answered(self, best: _Confirmed, original: Sequence[Call]) -> None:
        """Raise PromiseBroken where the user's module answers at other sizes, otherwise than the edited one.

        Rows that follow a dim may not become more or fewer with another one: `x.reshape(-1, 5 * 20)`, where there are ten
        frames in place of five, has two rows for each one, by accident of the number of elements.
        """
        for sizes, before, after in zip(self._sizes, original, best.found.calls, strict=True):
            if before.arrays is None or after.arrays is None or is_same(before.arrays, after.arrays):
                continue
            if self._has_other_rows(best, sizes, before, after, self._refused_alone(original)):
                continue
            site = next(iter(best.found.edits))
            shown = ", ".join(f"{name}={size}" for name, size in sizes.items())
            texts = [site.text, best.found.edits[site].text]
            why = f"at {shown} the model answers as it is, and otherwise with {texts[1]}."
            raise PromiseBroken(source_readings(make_source(site.file, site.line), site.text, texts, why))

    def _refused_alone(self, original: Sequence[Call]) -> set[str]:
        """The dims that the user's module refuses when they alone are larger by 1."""
        return {
            name
            for sizes, call in zip(self._sizes, original, strict=True)
            for name in self._declared.domain.names
            if sizes == {**self._own, name: self._own[name] + 1} and call.arrays is None
        }

    def _has_other_rows(
        self, best: _Confirmed, sizes: Sizes, before: Call, after: Call, refused: Collection[str]
    ) -> bool:
        """Whether the model has another number of rows there than the dim along which rows are independent.

        A dim has to differ from the example that the model refuses when it is larger by 1.
        """
        own = best.found.calls[0].arrays or ()
        for dim in best.independent:
            if not any(sizes[name] != self._own[name] for name in refused):
                continue
            for old, new, first in zip(before.arrays or (), after.arrays or (), own, strict=False):
                shapes = (old.shape, new.shape, first.shape) if old.ndim == new.ndim == first.ndim else ()
                rows = zip(*shapes, strict=True)
                if any(a != b == sizes[dim] and c == self._own[dim] for a, b, c in rows):
                    return True
        return False

    def _ambiguous(self, one: Found, other: Found) -> Finding:
        differing = [
            site
            for site in (*one.edits, *other.edits)
            if getattr(one.edits.get(site), "text", site.text) != getattr(other.edits.get(site), "text", site.text)
        ]
        site = differing[0]
        texts = [getattr(each.edits.get(site), "text", site.text) for each in (one, other)]
        why = "the model answers at all sizes with either, and not the same."
        return source_readings(make_source(site.file, site.line), site.text, texts, why)

    def _check_small(self, best: _Confirmed) -> None:
        for dim in self._followed(best):
            if self._own[dim] <= 1 and dim not in best.independent:
                raise PromiseBroken(example_too_small(dim, self._own[dim]))

    def _followed(self, best: _Confirmed) -> list[str]:
        """The dims that the edits follow; all of them where one follows something else."""
        found = [self._dim_of(vector) for reading in best.found.edits.values() for vector in reading.follows]
        return [*self._declared.domain.names] if None in found else [name for name in dict.fromkeys(found) if name]

    def _check_others(self, search: EditSearch, best: _Confirmed) -> None:
        """Raise PromiseBroken for a number that stays, and that may be a size as well as not."""
        for site, other in self._others(search, best.found):
            if self._confirmed(other).independent.keys() >= best.independent.keys():
                texts = [site.text, other.edits[site].text]
                why = "the model answers at all sizes with either, and not the same."
                raise PromiseBroken(source_readings(make_source(site.file, site.line), site.text, texts, why))
        for dim in self._followed(best):
            layers = layer_numbers(self._module, self._own[dim]) if dim not in best.independent else []
            if layers:
                site = next(iter(best.found.edits))
                why = f"{layers[0]} may be the size of {dim} as well."
                raise PromiseBroken(not_repaired(make_source(site.file, site.line), why))

    def _others(self, search: EditSearch, found: Found) -> list[tuple[Site, Found]]:
        """The same edits with one more number as a size, where every call answers, and some otherwise."""
        others = []
        for site, reading in other_readings(found.edits, search.original[0], found.calls):
            edits = {**found.edits, site: reading}
            calls = search.calls_under(edits)
            if calls is not None and all(call.arrays is not None for call in calls):
                other = Found(edits, calls)
                if not search.is_equal(found, other):
                    others.append((site, other))
        return others

    def _evidence(self, confirmed: _Confirmed) -> list[str]:
        told = ["equal to the model at the example's sizes"]
        for dim, counts in confirmed.independent.items():
            told.append(f"equal to the model in groups of rows at {dim} = {', '.join(map(str, counts))}")
        for dim in self._followed(confirmed):
            if dim not in confirmed.independent:
                told.append(f"the only reading of {dim} under which the model answers at {len(self._sizes)} sizes")
        return told

    def _record(self, found: Found, evidence: Sequence[str]) -> SourceRepair:
        texts = {site: reading.text for site, reading in found.edits.items()}
        edits = []
        for site, reading in sorted(found.edits.items(), key=lambda item: (item[0].file, item[0].line, item[0].start)):
            dims = [self._dim_of(vector) or reading.text for vector in reading.follows]
            reason = f"has the size of {', '.join(dict.fromkeys(dims))} in the example"
            edits.append(SourceEdit(make_source(site.file, site.line), site.text, reading.text, reason))
        diff, folder = unified_diff(texts)
        return SourceRepair(edits=tuple(edits), evidence=tuple(evidence), diff=diff, folder=folder)
