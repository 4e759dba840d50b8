"""What a file promises: dims, rules, inputs, outputs, and what stands behind the promise; and the same as JSON text.

The text is one line, its keys in a fixed order, the same bytes for equal contracts; `contract/from_json` is the exact inverse.
What is written here is what `contract-v1.schema.json` describes: a new meaning of a key, or a key that a reader must not
ignore, is a new version. `needs`, `values`, `rule`, `refused`, `state`, `random`, `target`, `digest` and `untried` are left
out where there are none.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from anyshape.domain import Condition, Domain, Expr, Number, format_condition, format_expr
from anyshape.domain.bounded_values import GIVEN, ValueBounds, parse_bounds
from anyshape.findings import Finding, Source
from anyshape.records.verdict import Untried

Origin = Literal["declared", "model", "found by trying", "compared"]
Status = Literal["kept", "broken", "unverified", "unknown"]
VERSION = 1
KEY = "anyshape.contract"  # of the metadata of a file


@dataclass(frozen=True)
class Rule:
    """A condition on the dims, and its origin.

        declared          the user wrote it
        model             an integer of the file leaves 64 bits elsewhere; or a guard of the capture, with accept_narrower
        found by trying   the module raised elsewhere
        compared          the comparisons end there

    `source` is a line of the user's code: of the computation, of the guard, or where the module raised; None if unknown.
    """

    condition: Condition
    origin: Origin
    source: Source | None = None


@dataclass(frozen=True)
class TensorPromise:
    """An input or an output: its name in the file, its path in the user's structure, its dtype and its axes.

    An axis of None follows no expression of the dims (it depends on values, or on a branch). Where even
    their number does, there are none and `any_rank` is True. `number` is what the value of an input is, where that is a whole
    number of the dims.
    """

    name: str
    path: str
    dtype: str
    axes: tuple[Expr | None, ...]
    any_rank: bool = False
    number: Expr | None = None

    def __str__(self) -> str:
        sizes = ["..."] if self.any_rank else ["?" if axis is None else str(axis) for axis in self.axes]
        return f"{self.name}: {self.dtype}[{', '.join(sizes)}]"


@dataclass(frozen=True)
class StatePromise:
    """A value that the model keeps from call to call: `output` of one call is `input` of the next.

    `shape` and `data` are its value before the first call: an axis that is a text follows that dim, and the value is the
    same all along it. `data` has the bytes as base64, and is empty where all are zero.
    """

    name: str
    input: str
    output: str
    dtype: str
    shape: tuple[int | str, ...]
    data: str = ""


@dataclass(frozen=True)
class Opaque:
    """A Python value that JSON cannot hold, by its type and its text: `torch.dtype`, `torch.float16`."""

    type: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Constant:
    """A Python value of the inputs that is baked into the file, and checked when the caller gives it.

    A bool, int, float, str, None, or an Opaque for everything else.
    """

    path: str
    value: Any


@dataclass(frozen=True)
class Tested:
    """What stands behind the promise: at how many sizes the file was compared, and whether its capture is proved.

    `worst_error` has the worst error of each output as a share of its tolerance: up to 1 counts as equal. It is empty where
    nothing compared equal, and for random files. `untried` are sizes that were proposed and not compared, with the reason.
    """

    sizes: tuple[Mapping[str, int], ...]
    capture_proved: bool
    largest: Mapping[str, int] = field(default_factory=dict)
    worst_error: Mapping[str, float] = field(default_factory=dict)
    against_guards: int = 0
    untried: tuple[Untried, ...] = ()


@dataclass(frozen=True)
class Digest:
    """What was verified, as `sha256:...`: the graph without the values of its weights, and these values."""

    graph: str
    weights: str


@dataclass(frozen=True, kw_only=True)
class Contract:
    """The whole promise of one file. `domain` holds dims with their final ranges; `rules` has the origin of each.

    `status` is unverified for a file that was not compared with its model, unknown for a file of another exporter: nobody
    promised anything. `parameters` are the names that arguments without a name are given to, in the order of the user's
    signature; empty if it is unknown. `needs` are the custom nodes, `mylib::Scale`, that a runtime must
    know. `state` is what the caller carries from call to call. `random`: the file draws random numbers, and was compared
    with the model by their distribution. `digest` is that of the model which was verified; None for a draft, for a file
    of another exporter, and in files of anyshape 0.1.0. `values` has the declared values of inputs: `0 <= ids < 1000`, or
    `given` where the file was compared on values of the user's function alone. `refused` are sizes of the domain at which
    the model raises and no rule is known that describes them: the file raises there as well. `target` is the only runtime
    that runs the file, "" for any.
    """

    status: Status
    domain: Domain
    rules: tuple[Rule, ...]
    inputs: tuple[TensorPromise, ...]
    outputs: tuple[TensorPromise, ...]
    constants: tuple[Constant, ...] = ()
    parameters: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[Mapping[str, int], ...] = ()
    state: tuple[StatePromise, ...] = ()
    random: bool = False
    tested: Tested = field(default_factory=lambda: Tested((), capture_proved=False))
    strategy: str = ""
    opset: int = 0
    target: str = ""
    findings: tuple[Finding, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    digest: Digest | None = None

    @property
    def input_axes(self) -> dict[str, tuple[Expr | None, ...]]:
        """The axes of each input, by its name in the file."""
        return {tensor.name: tensor.axes for tensor in self.inputs}

    @property
    def input_numbers(self) -> dict[str, Expr]:
        """What the value of each input is that is a whole number, by its name in the file."""
        return {tensor.name: tensor.number for tensor in self.inputs if tensor.number is not None}

    @property
    def value_bounds(self) -> dict[str, ValueBounds]:
        """The bounds of each input whose values have any, by its name in the file."""
        paths = {tensor.name: tensor.path for tensor in self.inputs}
        texts = {name: text for name, text in self.values.items() if text != GIVEN and name in paths}
        return {name: parse_bounds(text, (name, paths[name])) for name, text in texts.items()}


Json = dict[str, Any]
OWN_DIGEST = "contract"  # of the contract's text itself, in its `digest`; earlier files have none


def format_contract(contract: Contract) -> str:
    """The contract as text; `parse_contract` gives it back. Beside the digests of the model it has one of itself."""
    plain = contract_as_plain(contract)
    if contract.digest is not None:
        plain["digest"][OWN_DIGEST] = digest_contract(plain)
    return json.dumps(plain, allow_nan=False, separators=(",", ":"))


def digest_contract(plain: Json) -> str:
    """The digest of all of a contract but this digest; keys that only a newer anyshape reads are part of it."""
    others = {**plain, "digest": {key: text for key, text in plain["digest"].items() if key != OWN_DIGEST}}
    text = json.dumps(others, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


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
    plain = {"name": tensor.name, "path": tensor.path, "dtype": tensor.dtype, "axes": axes}
    return plain if tensor.number is None else {**plain, "number": format_expr(tensor.number)}


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
