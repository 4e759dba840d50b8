"""A contract as JSON text: one line, keys in a fixed order, the same bytes for equal contracts.

`from_json` is the exact inverse. What is written here is what `contract-v1.schema.json` describes: a new meaning of a key, or
a key that a reader must not ignore, is a new version. `needs`, `values`, `rule`, `refused`, `state`, `random`, `target`,
`digest` and `untried` are left out where there are none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from anyshape.domain import Expr, Number, format_condition, format_expr
from anyshape.findings import Finding, Source
from anyshape.records.contract import Contract, Opaque, Rule, TensorPromise, Tested

VERSION = 1

Json = dict[str, Any]


def format_contract(contract: Contract) -> str:
    """The contract as text; `parse_contract` gives it back."""
    return json.dumps(contract_as_plain(contract), allow_nan=False, separators=(",", ":"))


def contract_as_plain(contract: Contract) -> Json:
    """The contract as dicts, lists and plain values."""
    return {
        "version": VERSION,
        "status": contract.status,
        "dims": [asdict(dim) for dim in contract.domain.dims],
        "relations": [format_condition(relation) for relation in contract.domain.relations],
        "rules": [_rule(rule) for rule in contract.rules],
        "inputs": [_tensor(tensor) for tensor in contract.inputs],
        "outputs": [_tensor(tensor) for tensor in contract.outputs],
        "constants": [{"path": constant.path, "value": _value(constant.value)} for constant in contract.constants],
        "parameters": list(contract.parameters),
        **({"needs": list(contract.needs)} if contract.needs else {}),
        **({"values": _sorted(contract.values)} if contract.values else {}),
        **({"rule": "unknown", "refused": list(map(_sorted, contract.refused))} if contract.refused else {}),
        **(
            {"state": [{**asdict(state), "shape": list(state.shape)} for state in contract.state]}
            if contract.state
            else {}
        ),
        **({"random": True} if contract.random else {}),
        "tested": _tested(contract.tested),
        "strategy": contract.strategy,
        "opset": contract.opset,
        **({"target": contract.target} if contract.target else {}),
        "findings": [_finding(finding) for finding in contract.findings],
        "versions": _sorted(contract.versions),
        **({"digest": asdict(contract.digest)} if contract.digest else {}),
    }


def _rule(rule: Rule) -> Json:
    source = None if rule.source is None else asdict(rule.source)
    return {"condition": format_condition(rule.condition), "origin": rule.origin, "source": source}


def _tensor(tensor: TensorPromise) -> Json:
    axes = None if tensor.any_rank else [_axis(axis) for axis in tensor.axes]
    return {"name": tensor.name, "path": tensor.path, "dtype": tensor.dtype, "axes": axes}


def _axis(axis: Expr | None) -> int | str | None:
    """A fixed size is a number, any other a text, one that depends on values is null."""
    if axis is None:
        return None
    return axis.value if isinstance(axis, Number) else format_expr(axis)


def _value(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    opaque = as_opaque(value)
    return {"type": opaque.type, "text": opaque.text}


def as_opaque(value: Any) -> Opaque:
    """A value that JSON cannot hold, by its type and its text."""
    if isinstance(value, Opaque):
        return value
    kind = type(value)
    home = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return Opaque(home + kind.__qualname__, str(value))


def _tested(tested: Tested) -> Json:
    return {
        "sizes": [_sorted(sizes) for sizes in tested.sizes],
        "capture_proved": tested.capture_proved,
        "largest": _sorted(tested.largest),
        "worst_error": {name: _number(error) for name, error in sorted(tested.worst_error.items())},
        "against_guards": tested.against_guards,
        **(
            {"untried": [{"sizes": _sorted(each.sizes), "why": each.why} for each in tested.untried]}
            if tested.untried
            else {}
        ),
    }


def _number(value: float) -> float | str:
    """JSON has no infinity and no NaN: they are written as texts."""
    return float(value) if math.isfinite(value) else str(float(value))


def _finding(finding: Finding) -> Json:
    where = asdict(finding.where) if isinstance(finding.where, Source) else finding.where
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "what": finding.what,
        "excerpt": finding.excerpt,
        "where": where,
        "why": finding.why,
        "fix": finding.fix,
        "alternative": finding.alternative,
        "replay": finding.replay,
        "sizes": None if finding.sizes is None else _sorted(finding.sizes),
        **({"is_fix_untried": True} if finding.is_fix_untried else {}),
    }


def _sorted(mapping: Mapping[str, Any]) -> Json:
    """Mappings are equal in any order, so their text has one order."""
    return dict(sorted(mapping.items()))
