"""Results as plain text, the most important first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from anyshape.domain import Dim, dims_of, format_condition, format_sizes, is_always
from anyshape.findings import Finding, Severity, render_all
from anyshape.findings.finding import shown
from anyshape.records.contract import Contract, Tested
from anyshape.records.export import Attempt, Export, describe_untried, describe_untried_values
from anyshape.records.verdict import Untried, Verdict


def describe_export(result: Export) -> str:
    """What was written, what it promises, what stands behind it; findings last."""
    head = "kept" if result.is_kept else "UNVERIFIED" if result.contract.status == "unverified" else "BROKEN"
    where = f" {result.path}" if result.path is not None else ""
    lines = [f"{head}:{where} {say_evidence(result.contract.tested)}, in {result.seconds:.1f} s"]
    lines += describe_contract(result.contract)
    lines += _errors(result.verdict)
    lines += _untried(result.verdict.untried)
    lines += [f"  {line}" for line in describe_untried_values(result.verdict.untried_values)]
    if result.device != "cpu":
        lines.append(f"  reference ran on {result.device}, onnxruntime on the CPU")
    return _with_findings(lines, result.findings)


def describe_ladder(result: Export) -> str:
    """What each rung came to, and the conditions under which the capture holds, with their lines."""
    lines = describe_attempts(result.attempts)
    lines += [f"  decides by values: {line}" for line in result.decisions]
    conditions = [region.condition for region in result.regions if len(result.regions) > 1]
    lines += [f"  region  {format_condition(condition)}" for condition in conditions if not is_always(condition)]
    for guard in result.guards:
        if guard.condition is None or is_always(guard.condition):
            continue
        asked = "your code" if guard.by_user else "torch"
        where = f"   {guard.source}" if guard.source else ""
        against = f" (not at {_sizes(guard.counterexample)})" if guard.counterexample else ""
        lines.append(f"  guard   {guard.status}: {format_condition(guard.condition)}{against}, asked by {asked}{where}")
    return _with_findings(lines, ())


def describe_attempts(attempts: Iterable[Attempt]) -> list[str]:
    """The outcome of each rung of the ladder, with its line."""
    lines = []
    for attempt in attempts:
        if attempt.is_right or not attempt.findings:
            lines.append(f"  rung    {attempt.strategy}: {'right' if attempt.is_right else 'not right'}")
            continue
        finding = attempt.findings[0]
        where = f"   {finding.where}" if finding.where else ""
        lines.append(f"  rung    {attempt.strategy}: {finding.code} {finding.what}{where}")
    return lines


def describe_check(verdict: Verdict, findings: Sequence[Finding], path: str, signed: bool = False) -> str:
    """Whether an existing file keeps its promise; `signed`: its contract is about the file as it is now."""
    kept = not any(finding.severity is Severity.ERROR for finding in findings)
    lines = [f"{'kept' if kept else 'BROKEN'}: {path} {_count(len(verdict.tried), 'size')} compared"]
    lines += [f"  runtime {verdict.runtime}"] if verdict.runtime != "onnxruntime" else []
    lines += [f"  the model refuses {_sizes(refusal.sizes)}: not compared" for refusal in verdict.refused[:3]]
    lines += _errors(verdict)
    lines += ["  signed  its contract is about the file as it is now"] if signed else []
    lines += _untried(verdict.untried)
    return _with_findings(lines, findings)


def describe_contract(contract: Contract) -> list[str]:
    """Dims, rules, inputs and outputs, one a line."""
    lines = [f"  dim     {_dim(dim, contract.tested)}" for dim in contract.domain.dims]
    lines += [f"  rule    {format_condition(relation)}" for relation in contract.domain.relations]
    lines += _unknown_rule(contract.refused)
    lines += [f"  input   {tensor}" for tensor in contract.inputs]
    lines += [f"  output  {tensor}" for tensor in contract.outputs]
    lines += [f"  values  {name}: {text}" for name, text in contract.values.items()]
    lines += [
        f"  state   {state.name}: {state.output} of one call is {state.input} of the next" for state in contract.state
    ]
    lines += ["  random  each call draws new numbers"] if contract.random else []
    lines += [f"  target  {contract.target} alone runs the file"] if contract.target else []
    lines += [f"  needs   {operator}, which onnxruntime does not have" for operator in contract.needs]
    lines += [f"  baked   {constant.path} = {constant.value!r}" for constant in contract.constants]
    return lines


def _unknown_rule(refused: Sequence[Mapping[str, int]]) -> list[str]:
    if not refused:
        return []
    some = "; ".join(map(_sizes, refused[:3]))
    more = f" and {len(refused) - 3} more" if len(refused) > 3 else ""
    return [f"  rule    unknown: model and file raise at {some}{more}"]


def describe_inspection(contract: Contract, path: str, has_contract: bool, change: Finding | None = None) -> str:
    """What a file promises; `change` is the finding where it was changed after it was verified."""
    if not has_contract:
        return _with_findings([f"{path}: no contract; what its graph declares:", *describe_contract(contract)], ())
    made = f"opset {contract.opset}, strategy {contract.strategy}"
    status = f"{contract.status}, changed since" if change else contract.status
    lines = [f"{status}: {path} {say_evidence(contract.tested)} ({made})", *describe_contract(contract)]
    lines += [f"  behind  {dim.name}: {_provenance(dim, contract)}" for dim in contract.domain.dims]
    for rule in contract.rules:
        source = f", {rule.source.file}:{rule.source.line}" if rule.source else ""
        lines.append(f"  because {format_condition(rule.condition)}   ({rule.origin}{source})")
    lines += [f"  error   {name}: {error:.2g} of its tolerance" for name, error in contract.tested.worst_error.items()]
    lines += _untried(contract.tested.untried)
    lines.append("  made by " + ", ".join(f"{name} {version}" for name, version in contract.versions.items()))
    return _with_findings(lines, [*contract.findings, *([change] if change else [])])


def say_evidence(tested: Tested) -> str:
    """`capture proved, file tested at 34 sizes`."""
    if not tested.sizes:
        return f"capture {'proved' if tested.capture_proved else 'not proved'}, file not compared"
    count = _count(len(tested.sizes), "size")
    if tested.capture_proved:
        return f"capture proved, file tested at {count}"
    against = f", {tested.against_guards} of them against guards" if tested.against_guards else ""
    return f"tested at {count}{against}"


def _with_findings(lines: list[str], findings: Sequence[Finding]) -> str:
    return "\n".join(map(shown, lines)) + ("\n\n" + render_all(findings) if findings else "")


def _provenance(dim: Dim, contract: Contract) -> str:
    """What the user declared of a dim, what the file keeps of it, and what stands behind that."""
    written = [
        format_condition(rule.condition)
        for rule in contract.rules
        if rule.origin == "declared" and dims_of(rule.condition) == (dim.name,)
    ]
    found = [
        format_condition(rule.condition)
        for rule in contract.rules
        if rule.origin != "declared" and dims_of(rule.condition) == (dim.name,)
    ]
    declared = " and ".join(written) if written else "any size"
    obtained = f", obtained {' and '.join(found)}" if found else ", obtained all of it"
    largest = contract.tested.largest.get(dim.name)
    behind = "capture proved" if contract.tested.capture_proved else "capture not proved"
    return f"declared {declared}{obtained}; {behind}, file tested up to {largest}"


def _dim(dim: Dim, tested: Tested) -> str:
    steps = f", multiples of {dim.multiple}" if dim.multiple != 1 else ""
    largest = tested.largest.get(dim.name)
    if dim.max is not None:
        return f"{dim.name} {dim.min}..{dim.max}{steps}"
    return f"{dim.name} {dim.min} and more{steps}" + (f" (tested up to {largest})" if largest is not None else "")


def _errors(verdict: Verdict) -> Iterator[str]:
    for each in verdict.rounded:
        yield f"  rounds  {each.output}: {each.tolerances:.3g} tolerances off at {_sizes(each.sizes)}, right in doubles"
    for output in verdict.outputs:
        allowed = f"up to {output.allowed:.2g} is equal"
        yield f"  error   {output.output}: {output.worst:.2g} x its {output.unit} ({allowed})"


def _untried(untried: Sequence[Untried]) -> list[str]:
    return [f"  {line}" for line in describe_untried(untried)]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _sizes(sizes: Mapping[str, int]) -> str:
    return format_sizes(sizes)
