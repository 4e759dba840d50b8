"""A module that answers at one size -> the export of a copy with edited source, which follows its sizes.

module, probes -> [ search of edits ] -> the only one that fits -> [ evidence ] -> exported as any module is

Where two sets of edits fit and the evidence is for neither, nothing is edited, and the findings show both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from anyshape.contract import REPAIRED_KEY, write_contract
from anyshape.exporting import pipeline
from anyshape.exporting.context import Options, Tell
from anyshape.exporting.module_evidence import Confirmed, ModuleCalls, RepairChecks, RowEvidence, is_same
from anyshape.findings import Finding, PromiseBroken, Severity
from anyshape.inputs import Declared
from anyshape.modules.call_limits import OutOfTime, TimeLimit
from anyshape.modules.user_code import make_source, user_functions
from anyshape.records.export import Export
from anyshape.records.runs import SourceEdit, SourceRepair
from anyshape.repair.source import EditSearch, Found, layer_numbers, other_readings
from anyshape.repair.source.source_patch import (
    module_repaired,
    not_repaired,
    probe_sizes,
    source_readings,
    source_repair_differs,
    unified_diff,
)
from anyshape.repair.source.source_sites import Site, read_sources
from anyshape.repair.source.source_tables import read_definitions

if TYPE_CHECKING:
    import torch

_EITHER = "the model answers at all sizes with either, and not the same."


def export_repaired(
    module: torch.nn.Module, declared: Declared, options: Options, tell: Tell, repaired: torch.nn.Module | None
) -> Export:
    """The export of the module, edited first where it answers at one size. Raises PromiseBroken."""
    tell("looking for a repair", 0, 0)
    try:
        with TimeLimit(options.time_limit_s / 2):
            found = repair_module(module, declared, repaired)
    except OutOfTime:
        without = PromiseBroken(not_repaired(None, "the search took half of the time limit."))
        return _export_without(module, declared, options, tell, without)
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
    result = replace(result, findings=(*result.findings, finding), contract=contract, repair=repair)
    write_repair(result)
    return result


def write_repair(result: Export) -> None:
    """Put what was edited, and on what evidence, into the metadata of the model."""
    if result.repair is not None:
        result.model.metadata_props[REPAIRED_KEY] = json.dumps(result.repair.as_plain())


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


def repair_module(
    module: torch.nn.Module, declared: Declared, repaired: torch.nn.Module | None = None
) -> tuple[torch.nn.Module, SourceRepair] | None:
    """The edited module and what was edited; None where the module answers. Raises PromiseBroken where nothing is sure.

    Where no edits are enough for all sizes, the dims for which none are may have to be multiples of a number, as in a model
    that pools, or be no larger than in the example, where a table ends: then only such sizes are tried.
    """
    domain, own = declared.domain, declared.example_sizes
    try:
        return ModuleRepair(module, declared, repaired, probe_sizes(domain, own)).find()
    except NothingFits as nothing:
        limited = _limited_dims(module, declared)
        for probes in (
            probe_sizes(domain, own, multiples=limited) if len(limited) < len(domain.names) else [],
            probe_sizes(domain, own, smaller=limited),
        ):
            try:
                found = ModuleRepair(module, declared, repaired, probes).find() if probes and limited else None
            except NothingFits:
                continue
            if found is not None:
                return found
        raise nothing


def _limited_dims(module: torch.nn.Module, declared: Declared) -> list[str]:
    """The dims for which no edits are enough even if they alone vary."""
    domain, own = declared.domain, declared.example_sizes
    limited = []
    for name in domain.names:
        try:
            ModuleRepair(module, declared, None, probe_sizes(domain, own, [name])).search()
        except NothingFits:
            limited.append(name)
    return limited


class NothingFits(PromiseBroken):
    """No edits were found under which the module answers."""


class ModuleRepair:
    """One search, with the module called at the example's sizes and at `probes`."""

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
        self._sizes = [dict(declared.example_sizes), *probes]
        self._rows = RowEvidence(module, declared)
        self._checks = RepairChecks(module, declared, self._sizes)

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
        """Edits under which the module answers at all sizes; None where it does without. Raises NothingFits."""
        original = self._calls.calls_of(self._module, with_values=True) if len(self._sizes) > 1 else None
        if original is None or all(call.arrays is not None for call in original):
            return None
        definitions = read_definitions(user_functions(self._module))
        search = EditSearch(self._calls.sources, self._calls.attempt, original, is_same, definitions)
        found = search.find()
        search.with_names = True
        found += [each for each in search.find() if not any(search.is_equal(each, other) for other in found)]
        if not found or (search.is_ended and self._repaired is None):
            raise NothingFits(self._nothing_fits(search))
        return search, found

    def _nothing_fits(self, search: EditSearch) -> Finding:
        failed = next(call for call in search.original if call.arrays is None)
        where = make_source(*search.furthest) if search.furthest is not None else None
        why = "too many readings fit there." if search.is_ended else "no number there follows a size."
        return not_repaired(where, f"the model raises: {failed.message.partition(chr(10))[0]}\n{why}")

    def _confirmed(self, found: Found) -> Confirmed:
        edited = self._calls.edited(found.edits)
        assert edited is not None
        return Confirmed(found, edited, self._rows.independent(edited))

    def _like_repaired(
        self, search: EditSearch, found: Sequence[Found], repaired: torch.nn.Module
    ) -> tuple[Confirmed, list[str]]:
        """The edits under which the module answers as the user's repaired one does."""
        expected = self._calls.calls_of(repaired)
        if expected is None or any(call.arrays is None for call in expected):
            raise PromiseBroken(source_repair_differs(None, "`repaired` itself raises at sizes of the domain."))
        wished = Found({}, expected)
        tried = [*found, *(other for each in found for _, other in self._others(search, each))]
        fitting = next((each for each in tried if search.is_equal(each, wished)), None)
        if fitting is None:
            site = next(iter(found[0].edits))
            why = "none of the edits under which the model answers has the answers of `repaired`."
            raise PromiseBroken(source_repair_differs(make_source(site.file, site.line), why))
        confirmed = self._confirmed(fitting)
        return confirmed, [*self._checks.evidence(confirmed), f"equal to `repaired` at {len(expected)} sizes"]

    def _only_one(self, search: EditSearch, found: Sequence[Found]) -> tuple[Confirmed, list[str]]:
        """The edits that fit, if evidence is against all others. Raises PromiseBroken."""
        confirmed = [self._confirmed(each) for each in found]
        sure = [each for each in confirmed if not self._checks.guessed(each)]
        if not sure:
            raise PromiseBroken(self._is_guess(confirmed[0]))
        best = max(sure, key=lambda each: len(each.independent))
        self._checks.check(best, search.original)
        for other in sure:
            if other is not best and other.independent.keys() >= best.independent.keys():
                raise PromiseBroken(_ambiguous(best.found, other.found))
        self._check_others(search, best)
        self._check_larger(search, best.found)
        return best, self._checks.evidence(best)

    def _is_guess(self, confirmed: Confirmed) -> Finding:
        site = self._checks.guessed(confirmed)[0]
        text = confirmed.found.edits[site].text
        is_number = site.number is not None
        also = "and an axis that never varies has it too." if is_number else "and its values do not show what follows."
        why = f"{site.text!r} has the example's size, {also}"
        return not_repaired(make_source(site.file, site.line), why, f"if the model means that: {site.text} -> {text}")

    def _check_others(self, search: EditSearch, best: Confirmed) -> None:
        """Raise PromiseBroken for a number that stays, and that may be a size as well as not."""
        for site, other in self._others(search, best.found):
            if self._confirmed(other).independent.keys() >= best.independent.keys():
                texts = [site.text, other.edits[site].text]
                raise PromiseBroken(source_readings(make_source(site.file, site.line), site.text, texts, _EITHER))
        for dim in self._checks.followed(best):
            size = self._declared.example_sizes[dim]
            layers = layer_numbers(self._module, size) if dim not in best.independent else []
            if layers:
                site = next(iter(best.found.edits))
                why = f"{layers[0]} may be the size of {dim} as well."
                raise PromiseBroken(not_repaired(make_source(site.file, site.line), why))

    def _check_larger(self, search: EditSearch, found: Found) -> None:
        """Raise PromiseBroken for an edit that only smaller sizes need: `topk(5)` may be five of any number of frames."""
        for site, reading in found.edits.items():
            rest = {other: each for other, each in found.edits.items() if other != site}
            calls = search.calls_under(rest) if rest else search.original
            larger = [place for place in reading.changes_at if _is_not_smaller(self._sizes[place], self._sizes[0])]
            if calls is not None and larger and all(calls[place].arrays is not None for place in larger):
                texts = [site.text, reading.text]
                why = "the model answers at larger sizes with either, and not the same."
                raise PromiseBroken(source_readings(make_source(site.file, site.line), site.text, texts, why))

    def _others(self, search: EditSearch, found: Found) -> list[tuple[Site, Found]]:
        """The found edits with one more number as a size, where each call answers and some outputs change."""
        others = []
        for site, reading in other_readings(found.edits, search.original[0], found.calls):
            edits = {**found.edits, site: reading}
            calls = search.calls_under(edits)
            if calls is not None and all(call.arrays is not None for call in calls):
                other = Found(edits, calls)
                if not search.is_equal(found, other):
                    others.append((site, other))
        return others

    def _record(self, found: Found, evidence: Sequence[str]) -> SourceRepair:
        edits = []
        for site in sorted(found.edits, key=lambda site: (site.file, site.line, site.start)):
            reading = found.edits[site]
            dims = [self._checks.dim_of(vector) or reading.text for vector in reading.follows]
            reason = f"has the size of {', '.join(dict.fromkeys(dims))} in the example"
            edits.append(SourceEdit(make_source(site.file, site.line), site.text, reading.text, reason))
        diff, folder = unified_diff({site: reading.text for site, reading in found.edits.items()})
        return SourceRepair(edits=tuple(edits), evidence=tuple(evidence), diff=diff, folder=folder)


def _is_not_smaller(sizes: Mapping[str, int], own: Mapping[str, int]) -> bool:
    """Whether each dim has at least its size in the example."""
    return all(sizes[name] >= size for name, size in own.items())


def _ambiguous(one: Found, other: Found) -> Finding:
    """The first site at which two sets of edits differ, with both of its texts."""

    def text_in(found: Found, site: Site) -> str:
        return found.edits[site].text if site in found.edits else site.text

    site = next(site for site in (*one.edits, *other.edits) if text_in(one, site) != text_in(other, site))
    texts = [text_in(one, site), text_in(other, site)]
    return source_readings(make_source(site.file, site.line), site.text, texts, _EITHER)
