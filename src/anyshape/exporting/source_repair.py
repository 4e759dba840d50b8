"""A module that answers at one size -> the export of a copy with edited source, which follows its sizes.

module, probes -> [ search of edits ] -> the only one that fits -> [ evidence ] -> exported as any module is
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from anyshape.contract.metadata import REPAIRED_KEY, write_contract
from anyshape.exporting import pipeline
from anyshape.exporting.context import Options, Tell
from anyshape.exporting.module_repair import ModuleRepair, NothingFits
from anyshape.findings import PromiseBroken, Severity
from anyshape.inputs import Declared
from anyshape.modules.call_limits import OutOfTime, TimeLimit
from anyshape.records.export import Export
from anyshape.records.repaired import SourceRepair
from anyshape.repair.source.repair_probes import probe_sizes
from anyshape.repair.source.source_messages import module_repaired, not_repaired

if TYPE_CHECKING:
    import torch


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
