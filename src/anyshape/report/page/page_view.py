"""The words and rows of a page: what the templates show of its facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from anyshape.domain import Dim, format_condition, format_sizes, is_always
from anyshape.findings import Finding, Source
from anyshape.records.captured import Guard
from anyshape.records.contract import Contract
from anyshape.records.export import Attempt, describe_untried, describe_untried_values
from anyshape.records.runs import Run
from anyshape.records.verdict import Failure, Verdict
from anyshape.report.page.explorer_data import say_failure, tensor_data
from anyshape.report.page.page_facts import PageFacts, excerpt_of, fix_as_diff
from anyshape.report.text import say_evidence

Json = dict[str, Any]
_WORDS = {
    "kept": "Kept",
    "narrowed": "Kept on less",
    "unverified": "Not verified",
    "broken": "Broken",
    "refused": "Refused",
}
_SHOWN = 40


def verdict_view(facts: PageFacts) -> Json:
    """The verdict in one word, one sentence and a few figures."""
    return {"word": _WORDS[facts.status], "sentence": _sentence(facts), "figures": list(_figures(facts))}


def _sentence(facts: PageFacts) -> str:
    first = facts.findings[0].what if facts.findings else ""
    if facts.status == "refused":
        return f"No file was written. {capital(first)}"
    if facts.status == "broken":
        return f"The file is not right on all of its sizes. {capital(first)}"
    if facts.status == "unverified":
        return "The file was written and not compared with the model: nothing is known of its answers."
    if facts.is_check:
        count = len(facts.verdict.tried) if facts.verdict is not None else 0
        known = "" if facts.contract is not None else " It has no contract over these dims: nothing is promised."
        return f"The file answers as the model does at all {count} compared sizes.{known}"
    evidence = say_evidence(facts.contract.tested) if facts.contract is not None else ""
    domain = "less than was declared" if facts.status == "narrowed" else "every declared size"
    return f"The file promises {domain}: {evidence}."


def capital(text: str) -> str:
    """The text with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]


def _figures(facts: PageFacts) -> Iterator[tuple[str, str]]:
    verdict = facts.verdict
    if verdict is not None and not verdict.is_skipped:
        yield "sizes compared", str(len(verdict.tried))
        yield "comparisons", str(verdict.trials)
        if verdict.outputs and not verdict.failures:
            yield f"worst error, in {verdict.unit}s", f"{max(each.worst for each in verdict.outputs):.2g}"
        if verdict.failures:
            yield "failures", str(len(verdict.failures))
    if facts.seconds is not None:
        yield "seconds", f"{facts.seconds:.1f}"


def dims_view(facts: PageFacts) -> list[Json]:
    """Each dim: declared, obtained and compared."""
    obtained = {} if facts.contract is None else {dim.name: dim for dim in facts.contract.domain.dims}
    declared = {} if facts.run is None else {dim.name: dim for dim in facts.run.domain.dims}
    return [
        {
            "name": name,
            "declared": say_range(declared[name]) if name in declared else _declared_in(name, facts.contract),
            "obtained": say_range(obtained[name]) if name in obtained else "",
            "compared": _compared(name, facts.verdict),
        }
        for name in dict.fromkeys((*obtained, *declared))
    ]


def say_range(dim: Dim) -> str:
    """`1 to 64`, `32 and more, multiples of 32`."""
    steps = f", multiples of {dim.multiple}" if dim.multiple != 1 else ""
    return f"{dim.min} and more{steps}" if dim.max is None else f"{dim.min} to {dim.max}{steps}"


def _declared_in(name: str, contract: Contract | None) -> str:
    dims = () if contract is None else contract.domain.dims
    return next((say_range(dim) for dim in dims if dim.name == name and dim.declared), "any size")


def _compared(name: str, verdict: Verdict | None) -> str:
    sizes = sorted({each[name] for each in verdict.tried if name in each}) if verdict is not None else []
    if not sizes:
        return "not compared"
    return f"{len(sizes)} sizes, {sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else f"{sizes[0]} alone"


def rules_view(data: Json | None, facts: PageFacts) -> list[Json]:
    """The relations over several dims, and rules whose origin is the model."""
    if data is None or facts.domain is None:
        return []
    relations = {format_condition(relation) for relation in facts.domain.relations}
    return [rule for rule in data["rules"] if rule["text"] in relations or rule["origin"] not in ("", "declared")]


def extras_view(contract: Contract | None) -> list[tuple[str, str]]:
    """The rest of a contract: values, state, randomness, constants, custom operators."""
    if contract is None:
        return []
    rows = [(f"values of {name}", text) for name, text in contract.values.items()]
    rows += [("state", f"{each.output} of one call is {each.input} of the next") for each in contract.state]
    rows += [("random", "each call draws new numbers")] if contract.random else []
    rows += [("only for", contract.target)] if contract.target else []
    rows += [("needs the operator", name) for name in contract.needs]
    rows += [("fixed in the file", f"{each.path} = {each.value!r}") for each in contract.constants]
    rows += (
        [("model and file raise at", "; ".join(map(format_sizes, contract.refused[:3])))] if contract.refused else []
    )
    return rows


def evidence_view(facts: PageFacts) -> list[tuple[str, str]]:
    """What is proved and what is compared."""
    rows: list[tuple[str, str]] = []
    verdict, contract = facts.verdict, facts.contract
    if contract is not None and not facts.is_check:
        tested = contract.tested
        proved = "every condition of the capture follows from the declared sizes"
        unproved = (
            f"not every condition of the capture; {tested.against_guards} compared sizes are against such conditions"
        )
        rows.append(("Proved", proved if tested.capture_proved else unproved))
    rows += [("Chosen by values, not by sizes", line) for line in facts.decisions]
    if verdict is not None and verdict.tried:
        text = f"{len(verdict.tried)} sizes in {verdict.trials} comparisons, in {verdict.seconds:.1f} s"
        rows.append(("Compared", text))
    if verdict is not None:
        where = ", where it is right" if verdict.failures else ""
        rows += [
            (
                f"Error of {each.output}{where}",
                f"{each.worst:.2g} × its {each.unit}; up to {each.allowed:.2g} counts as equal",
            )
            for each in verdict.outputs
        ]
        rows += [("Noise floor", verdict.floor)] if verdict.floor else []
        rows += [
            (
                f"Rounding of {each.output}",
                f"{each.tolerances:.3g} tolerances at {format_sizes(each.sizes)}, equal in doubles",
            )
            for each in verdict.rounded
        ]
    return rows


def untried_view(verdict: Verdict | None) -> list[str]:
    """Sizes and values that were not compared, with the reason."""
    if verdict is None:
        return []
    found = [*describe_untried(verdict.untried), *describe_untried_values(verdict.untried_values)]
    refused = [f"the model raises at {format_sizes(each.sizes)}: {each.message}" for each in verdict.refused[:_SHOWN]]
    aside = [f"{count} comparison{'s' if count > 1 else ''} with {what}" for what, count in verdict.set_aside.items()]
    return [text.removeprefix("untried ") for text in found] + refused + aside


def findings_view(findings: tuple[Finding, ...]) -> list[Json]:
    """Findings with the lines around their place, and their fix as a diff."""
    return [_finding(finding) for finding in findings]


def _finding(finding: Finding) -> Json:
    source = finding.where if isinstance(finding.where, Source) else finding.source
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "what": finding.what,
        "excerpt_text": finding.excerpt,
        "where": _place(finding.where),
        "excerpt": None if source is None else excerpt_of(source),
        "sizes": "" if finding.sizes is None else format_sizes(finding.sizes),
        "why": finding.why,
        "fix": finding.fix,
        "diff": fix_as_diff(finding),
        "is_fix_untried": finding.is_fix_untried,
        "alternative": finding.alternative,
        "replay": finding.replay,
    }


def _place(where: Source | str | None) -> str:
    if isinstance(where, Source):
        return f"{where.file}:{where.line}" + (f", in {where.function}" if where.function else "")
    return where or ""


def failure_view(verdict: Verdict | None) -> Json | None:
    """The smallest failure, expected and actual side by side."""
    failure = None if verdict is None else verdict.smallest_failure
    if failure is None:
        return None
    difference = failure.difference
    return {
        "sizes": format_sizes(failure.sizes) or "no dims",
        "inputs": f"{failure.values} values, seed {failure.seed}",
        "expected": None if difference is None else str(difference.expected),
        "actual": None if difference is None else str(difference.actual),
        "words": _failed(failure),
    }


def _failed(failure: Failure) -> str:
    difference = failure.difference
    if difference is None:
        return failure.message or say_failure(failure)
    place = f" at index {list(difference.index)}" if difference.index is not None else ""
    count = f"; {difference.count} elements differ" if difference.count > 1 else ""
    return f"{capital(say_failure(failure))}{place}{count}."


def rungs_view(attempts: tuple[Attempt, ...]) -> list[Json]:
    """What each rung came to."""
    rows = []
    for attempt in attempts:
        finding = None if attempt.is_right or not attempt.findings else attempt.findings[0]
        said = "right" if attempt.is_right else "not right" if finding is None else f"{finding.code} {finding.what}"
        where = "" if finding is None else _place(finding.where)
        rows.append({"name": attempt.strategy, "seconds": f"{attempt.seconds:.1f}", "said": said, "where": where})
    return rows


def guards_view(guards: tuple[Guard, ...]) -> list[Mapping[str, str]]:
    """The conditions of the capture that say something, with who asked."""
    return [
        {
            "status": guard.status,
            "text": guard.text if guard.condition is None else format_condition(guard.condition),
            "asked": ("asked by your code" if guard.by_user else "asked by torch")
            + (f", {guard.source.file}:{guard.source.line}" if guard.source else ""),
        }
        for guard in guards
        if guard.condition is None or not is_always(guard.condition)
    ]


def tensors_view(facts: PageFacts) -> Json:
    """Inputs and outputs, with their shapes as expressions."""
    return {
        "inputs": [tensor_data(tensor) for tensor in facts.inputs],
        "outputs": [tensor_data(tensor) for tensor in facts.outputs],
    }


def run_rows(run: Run | None) -> list[tuple[str, str]]:
    """The model, the seed and the example's sizes."""
    if run is None:
        return []
    example = [("example", format_sizes(run.example))] if run.example else []
    return [("model", run.model), ("seed", str(run.seed)), *example]


def repeat_view(facts: PageFacts) -> list[tuple[str, str]]:
    """Versions, seed and digest: enough to do it again."""
    contract, run = facts.contract, facts.run
    rows = [("file", facts.path)] if facts.path else []
    rows += run_rows(run)
    rows += [("reference ran on", facts.device)] if facts.device else []
    if contract is not None:
        rows += [("strategy", contract.strategy)] if contract.strategy else []
        rows += [("opset", str(contract.opset))] if contract.opset else []
        digest = contract.digest
        rows += [("digest of the graph", digest.graph), ("digest of the weights", digest.weights)] if digest else []
    versions = contract.versions if contract is not None else run.versions if run is not None else {}
    return [*rows, *versions.items()]
