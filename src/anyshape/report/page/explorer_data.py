"""The data of the size explorer: the contract's own expressions as JSON, and what is known of sizes.

A number is a text (`"64"`), since JSON has no large integers; everything else is a list: `["dim", "seq"]`, `["//", a, b]`,
`["<=", a, b]`, `["all", c, ...]`, `["any", c, ...]`, `["not", c]`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from anyshape.domain import Condition, Dim, Domain, Expr, all_of, format_condition, format_expr, format_sizes
from anyshape.domain.condition import All, AnyOf, Compare, Not
from anyshape.domain.expr import Number, Op, Ref
from anyshape.findings import Severity
from anyshape.findings.finding import shown
from anyshape.records.contract import Rule, TensorPromise
from anyshape.records.runs import Benched, CostTable
from anyshape.records.verdict import Failure, Verdict
from anyshape.report.page.page_facts import PageFacts

_BITS = {"bool": 8, "complex64": 64, "complex128": 128}
_BEYOND = 2  # how many times the largest compared size a slider of an open dim reaches
_FAR = 64
_MOST_SIZES = 400
Json = dict[str, Any]


def explorer_data(facts: PageFacts) -> Json | None:
    """The JSON of the explorer; None where no dims are known."""
    domain = facts.domain
    if domain is None or not domain.dims:
        return None
    rules = () if facts.contract is None else facts.contract.rules
    verdict = facts.verdict or Verdict()
    refused = () if facts.contract is None else facts.contract.refused
    return {
        "standing": _standing(facts),
        "dims": [_dim(dim, facts) for dim in domain.dims],
        "rules": _rules(domain, rules),
        "refused": [_sizes(sizes) for sizes in (*refused, *(each.sizes for each in verdict.refused))],
        "regions": [
            {"text": format_condition(region.condition), "tree": condition_tree(region.condition)}
            for region in facts.regions
        ],
        "inputs": [tensor_data(tensor) for tensor in facts.inputs],
        "outputs": [tensor_data(tensor) for tensor in facts.outputs],
        "compared": [
            {"sizes": _sizes(each.sizes), "errors": list(map(_finite, each.errors.values()))}
            for each in verdict.compared[:_MOST_SIZES]
        ],
        "unit": verdict.unit,
        "failed": [*_found(facts), *map(_failure, _failures(verdict))],
        "costs": None if facts.run is None or facts.run.costs is None else _costs(facts.run.costs),
        "bench": _bench(facts.bench),
    }


def _standing(facts: PageFacts) -> str:
    """What is behind a size: the promise of a contract, comparisons alone, or nothing."""
    if facts.status in ("broken", "refused", "unverified"):
        return "nothing"
    return "promise" if facts.contract is not None and facts.contract.status == "kept" else "comparisons"


def tensor_data(tensor: TensorPromise) -> Json:
    """An input or output: its axes as trees, and the bits of an element, 0 where they are unknown."""
    return {
        "name": shown(tensor.name),
        "dtype": tensor.dtype,
        "bits": bits_of(tensor.dtype),
        "axes": None if tensor.any_rank else [None if axis is None else expr_tree(axis) for axis in tensor.axes],
        "text": "..." if tensor.any_rank else ", ".join(map(say_axis, tensor.axes)),
    }


def say_axis(axis: Any) -> str:
    """The expression of an axis; `?` where it follows none."""
    return "?" if axis is None else format_expr(axis)


def bits_of(dtype: str) -> int:
    """The bits of an element: `float16` has 16; 0 for a type whose size is unknown."""
    digits = "".join(character for character in dtype.partition("_")[0].partition("e")[0] if character.isdigit())
    return _BITS.get(dtype, int(digits) if digits else 0)


def say_failure(failure: Failure) -> str:
    """In a few words, what went wrong at some sizes."""
    if failure.difference is None:
        return failure.kind.value
    return f"{failure.difference.mismatch.value} of {failure.difference.output} differs"


def _failures(verdict: Verdict) -> list[Failure]:
    smallest = [] if verdict.smallest_failure is None else [verdict.smallest_failure]
    return [*smallest, *verdict.failures][:_MOST_SIZES]


def _failure(failure: Failure) -> Json:
    head = "The file is not right here"
    return {"sizes": _sizes(failure.sizes), "head": head, "what": shown(say_failure(failure))}


def _found(facts: PageFacts) -> list[Json]:
    """Sizes at which the findings against a model or a file show."""
    errors = [each for each in facts.findings if each.severity is Severity.ERROR and each.sizes]
    return [
        {"sizes": _sizes(each.sizes or {}), "head": f"{each.code} {each.name} shows here", "what": shown(each.what)}
        for each in errors
    ]


def _dim(dim: Dim, facts: PageFacts) -> Json:
    """The dim with the ends of its slider, and the size at which it starts."""
    largest = max((sizes[dim.name] for sizes in _known_sizes(facts) if dim.name in sizes), default=_FAR)
    reach = max(_BEYOND * largest, dim.smallest + _FAR * dim.multiple)
    high = (dim.largest_up_to(reach) or dim.smallest) if dim.max is None else (dim.largest_up_to(dim.max) or dim.max)
    start = _example(facts).get(dim.name, min(max(dim.smallest, 1), high))
    return {
        "name": dim.name,
        "min": str(dim.min),
        "max": None if dim.max is None else str(dim.max),
        "multiple": str(dim.multiple),
        "low": str(dim.smallest),
        "high": str(high),
        "start": str(start),
    }


def _known_sizes(facts: PageFacts) -> list[Mapping[str, int]]:
    tried = [] if facts.verdict is None else list(facts.verdict.tried)
    return [*tried, _example(facts)]


def _example(facts: PageFacts) -> Mapping[str, int]:
    if facts.run is not None:
        return facts.run.example
    return facts.verdict.tried[0] if facts.verdict is not None and facts.verdict.tried else {}


def _rules(domain: Domain, rules: Sequence[Rule]) -> list[Json]:
    """Every condition of the domain, with the origin of the rule that it comes from."""
    found: list[Json] = []
    for dim in domain.dims:
        conditions = dim.conditions()
        origin = _origin(conditions, rules, default="declared" if dim.declared else "")
        found += [_rule(condition, origin) for condition in conditions]
    for relation in domain.relations:
        found.append(_rule(relation, _origin([relation], rules, default="")))
    return found


def _rule(condition: Condition, origin: str) -> Json:
    return {"text": format_condition(condition), "tree": condition_tree(condition), "origin": origin}


def _origin(conditions: Sequence[Condition], rules: Sequence[Rule], *, default: str) -> str:
    """Who made the rule: the user, or the model at a line."""
    wanted = {*conditions, all_of(conditions)}
    for rule in rules:
        if rule.condition in wanted and rule.origin != "declared":
            line = f", {rule.source.file}:{rule.source.line}" if rule.source is not None else ""
            return shown(f"{rule.origin}{line}")
    return "declared" if any(rule.condition in wanted for rule in rules) else default


def _finite(error: float) -> float | None:
    return error if math.isfinite(error) else None


def _sizes(sizes: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(name, str(size)) for name, size in sizes.items()]


def _costs(table: CostTable) -> Json:
    def plain(counts: Any) -> Json:
        return {**asdict(counts), "computed": counts.computed}

    along = {name: [[size, plain(counts)] for size, counts in counted] for name, counted in table.along.items()}
    return {"base": plain(table.base), "along": along, "weights": table.weights, "rates": asdict(table.rates)}


def _bench(benched: Benched | None) -> list[Json]:
    rows = () if benched is None else benched.rows
    return [
        {"sizes": _sizes(row.sizes), "text": format_sizes(row.sizes), "ms": row.timing.ms, "mb": row.timing.peak_mb}
        for row in rows
        if row.timing is not None
    ]


Tree = str | list[Any]


def expr_tree(expr: Expr) -> Tree:
    """The expression as JSON."""
    if isinstance(expr, Number):
        return str(expr.value)
    if isinstance(expr, Ref):
        return ["dim", expr.name]
    if isinstance(expr, Op):
        return [expr.symbol, *map(expr_tree, expr.args)]
    raise TypeError(f"not an expression: {expr!r}")


def condition_tree(condition: Condition) -> Tree:
    """The condition as JSON."""
    if isinstance(condition, Compare):
        return [condition.op, expr_tree(condition.left), expr_tree(condition.right)]
    if isinstance(condition, (All, AnyOf)):
        return ["all" if isinstance(condition, All) else "any", *map(condition_tree, condition.parts)]
    if isinstance(condition, Not):
        return ["not", condition_tree(condition.part)]
    raise TypeError(f"not a condition: {condition!r}")
