"""The stages in order, on one screen: the only place where they meet.

declared -> explored -> captured -> exported -> verified -> contract, and findings from each that stop it or go along.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyshape.capture.symbolic import capture_symbolically
from anyshape.capture.trace_sizes import choose_trace_sizes
from anyshape.contract.build import build_contract
from anyshape.contract.defend import defend
from anyshape.contract.matching import match_file
from anyshape.contract.metadata import write_contract
from anyshape.diagnose.captures import diagnose_capture_error, diagnose_translation_error, diagnose_untranslatable
from anyshape.diagnose.differences import diagnose_differences
from anyshape.diagnose.outputs import diagnose_outputs
from anyshape.diagnose.refusals import diagnose_refusals
from anyshape.domain import choose_sizes
from anyshape.explore import explore
from anyshape.findings import Finding, PromiseBroken, Severity
from anyshape.inputs import Declared, flatten_outputs
from anyshape.optimize import optimize
from anyshape.records.captured import Captured, Guard
from anyshape.records.export import Export
from anyshape.records.exported import Exported
from anyshape.records.verdict import Refusal, Verdict
from anyshape.saving import save_model
from anyshape.translate.program import translate
from anyshape.translate.registry import Translator
from anyshape.verify import Reference, Refused, VerifyOptions, VerifyRequest, verify

if TYPE_CHECKING:
    import torch

Tell = Callable[[str, int, int], None]
Sizes = Mapping[str, int]

_SIZES = 30


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to export: what of the file, what of the checking."""

    opset: int = 18
    translations: Mapping[Any, Callable[..., Any]] = field(default_factory=dict)
    optimize: bool = True
    enforce: str = "graph"
    force: bool = False
    verify: VerifyOptions = VerifyOptions()


def export(module: torch.nn.Module, declared: Declared, options: Options, tell: Tell) -> Export:
    """A model that keeps its promise. Raises PromiseBroken with the findings that speak against it."""
    began = time.monotonic()
    with Reference(module, flatten_outputs) as reference:
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
        sizes = _sizes_to_verify(narrowed, captured.guards, options.verify.seed)
        with tempfile.TemporaryDirectory(prefix="anyshape-") as folder:
            path = Path(folder) / "model.onnx"
            save_model(exported.model, path)
            request = _request(path, exported.output_names, narrowed, reference)
            verdict = verify(replace(request, sizes=sizes, options=_telling(options.verify, tell)))
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
        device=_device(module),
        seconds=time.monotonic() - began,
    )


def check(
    path: Path, module: torch.nn.Module, declared: Declared, options: VerifyOptions, sizes: Sizes | None, tell: Tell
) -> tuple[Verdict, tuple[Finding, ...]]:
    """How an existing file compares with its module over the domain, or at the given sizes alone."""
    matched = match_file(path, declared)
    with Reference(module, flatten_outputs) as reference:
        tried = [dict(sizes)] if sizes is not None else _sizes_to_verify(declared, (), options.seed)
        request = _request(path, matched.outputs, declared, reference)
        verdict = verify(
            replace(
                request,
                sizes=tried,
                options=_telling(options, tell),
                feeds=lambda inputs: _renamed(declared.feeds(inputs), matched.inputs),
            )
        )
    return verdict, diagnose_differences(verdict, declared.domain, file=str(path))


def _first_rung(
    module: torch.nn.Module, declared: Declared, reference: Reference, options: Options, tell: Tell
) -> tuple[Captured, Exported]:
    """Capture and translate. Raises PromiseBroken with the line that torch cannot follow."""
    translator = Translator(options.opset, options.translations)
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
    input_names = [leaf.name for leaf in declared.open_leaves]
    output_names = declared.name_outputs([answer.path for answer in captured.answers])
    try:
        exported = translate(captured, translator, input_names, output_names)
    except Exception as error:
        raise PromiseBroken(diagnose_translation_error(error)) from error
    return captured, optimize(exported) if options.optimize else exported


def _trying(declared: Declared, reference: Reference) -> Callable[[Sizes], Refusal | None]:
    """The module's refusal at some sizes, or None where it answers."""

    def try_sizes(sizes: Sizes) -> Refusal | None:
        answer = reference.run(declared.make(sizes, 0))
        return Refusal(dict(sizes), answer.message, answer.source) if isinstance(answer, Refused) else None

    return try_sizes


def _sizes_to_verify(declared: Declared, guards: Iterable[Guard], seed: int) -> list[dict[str, int]]:
    """The most telling sizes first: those that break a guard which the domain does not imply."""
    open_guards = [guard for guard in guards if guard.status != "proved" and guard.condition is not None]
    chosen = choose_sizes(
        declared.domain,
        example=declared.example_sizes,
        conditions=[guard.condition for guard in open_guards if guard.condition is not None],
        cost=declared.elements,
        limit=_SIZES,
        seed=seed,
    )
    against = [dict(guard.counterexample) for guard in open_guards if guard.counterexample]
    return [dict(point) for point in {tuple(sizes.items()): sizes for sizes in (*against, *chosen)}]


def _request(model: Path, names: Iterable[str], declared: Declared, reference: Reference) -> VerifyRequest:
    return VerifyRequest(
        model=model,
        output_names=tuple(names),
        reference=reference,
        make=declared.make,
        feeds=declared.feeds,
        domain=declared.domain,
        sizes=(),
    )


def _renamed(feeds: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The feeds by the file's own names; what the file does not take is left out."""
    return {names[leaf]: array for leaf, array in feeds.items() if leaf in names}


def _telling(options: VerifyOptions, tell: Tell) -> VerifyOptions:
    return replace(options, progress=lambda done, total, sizes: tell("comparing", done, total))


def _stop_at_errors(findings: Iterable[Finding]) -> None:
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        raise PromiseBroken(*errors)


def _device(module: torch.nn.Module) -> str:
    parameter = next(iter(module.parameters()), None)
    return "cpu" if parameter is None else str(parameter.device)
