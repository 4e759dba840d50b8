"""The stages in order, on one screen: the only place where they meet.

declared -> explored -> captured -> exported -> verified -> contract, and findings from each that stop it or go along.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from anyshape.capture.symbolic import capture_symbolically
from anyshape.capture.trace_sizes import choose_trace_sizes
from anyshape.contract.build import build_contract
from anyshape.contract.defend import defend
from anyshape.contract.metadata import write_contract
from anyshape.diagnose.captures import diagnose_capture_error, diagnose_translation_error, diagnose_untranslatable
from anyshape.diagnose.differences import diagnose_differences
from anyshape.diagnose.outputs import diagnose_outputs
from anyshape.diagnose.refusals import diagnose_refusals
from anyshape.domain import choose_sizes
from anyshape.explore import explore
from anyshape.findings import Finding, PromiseBroken, Severity
from anyshape.inputs import Declared, flatten_outputs
from anyshape.modules.reference import Reference, Refused
from anyshape.optimize import optimize
from anyshape.records.captured import Captured, Guard
from anyshape.records.export import Export
from anyshape.records.exported import Exported
from anyshape.records.verdict import Refusal, Verdict
from anyshape.saving import save_model
from anyshape.translate.program import translate
from anyshape.translate.registry import Translator
from anyshape.verify import VerifyOptions, VerifyRequest, verify

if TYPE_CHECKING:
    import torch

Tell = Callable[[str, int, int], None]
Sizes = Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to export: what of the file, what of the checking."""

    opset: int = 18
    enforce: str = "graph"
    force: bool = False
    sizes: int = 34
    verify: VerifyOptions = VerifyOptions()


def export(module: torch.nn.Module, declared: Declared, options: Options, tell: Tell) -> Export:
    """A model that keeps its promise. Raises PromiseBroken with the findings that speak against it."""
    began = time.monotonic()
    with Reference(module, flatten_outputs, declared.call) as reference:
        tell("trying the model", 0, 0)
        explored = explore(declared, _trying(declared, reference), seed=options.verify.seed)
        findings = [*declared.notes, *diagnose_refusals(declared, explored)]
        _stop_at_errors(findings)
        narrowed = replace(declared, domain=explored.domain)
        captured, exported = _first_rung(module, narrowed, reference, options, tell)
        findings += diagnose_outputs(exported, declared.output_axes, declared.domain)
        draft = build_contract(narrowed, explored, captured, exported)
        if options.enforce == "graph":
            defend(exported.model, draft)
        verdict = _verified(exported, narrowed, reference, captured.guards, options, tell)
    findings += diagnose_differences(verdict, narrowed.domain, captured.guards)
    if not options.force:
        _stop_at_errors(findings)
    contract = build_contract(narrowed, explored, captured, exported, verdict, findings)
    write_contract(exported.model, contract)
    return Export(
        model=exported.model,
        contract=contract,
        verdict=verdict,
        findings=tuple(findings),
        guards=captured.guards,
        strategy=captured.strategy,
        device=reference.device,
        seconds=time.monotonic() - began,
    )


def _first_rung(
    module: torch.nn.Module, declared: Declared, reference: Reference, options: Options, tell: Tell
) -> tuple[Captured, Exported]:
    """Capture and translate. Raises PromiseBroken with the line that torch cannot follow."""
    translator = Translator(options.opset)
    trying = _trying(declared, reference)
    sizes = choose_trace_sizes(declared, lambda tried: trying(tried) is None)
    tell("capturing", 0, 0)
    try:
        captured = capture_symbolically(module, declared, sizes, translator.decompose)
    except Exception as error:
        raise PromiseBroken(diagnose_capture_error(error)) from error
    missing = [found for region in captured.regions for found in translator.find_untranslatable(region.program).items()]
    if missing:
        raise PromiseBroken(*(diagnose_untranslatable(operator, stack) for operator, stack in missing))
    tell("translating", 0, 0)
    try:
        exported = translate(captured, translator, declared.open_names, declared.name_outputs(captured.answer_paths))
    except Exception as error:
        raise PromiseBroken(diagnose_translation_error(error)) from error
    return captured, optimize(exported)
