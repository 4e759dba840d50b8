"""JSON text as a contract: the exact inverse of `format_contract`, and a finding about a text that is none.

Nothing is guessed: a key that is missing, or a value of the wrong kind, makes the contract unreadable.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Any, cast

from anyshape.domain import Condition, Dim, Domain, Expr, Number, parse_condition, parse_expr
from anyshape.findings import DeclarationError, Finding, Severity, Source, UsageError
from anyshape.records.contract import (
    VERSION,
    Constant,
    Contract,
    Digest,
    Opaque,
    Origin,
    Rule,
    StatePromise,
    Status,
    TensorPromise,
    Tested,
)
from anyshape.records.verdict import Untried

Json = dict[str, Any]

_STATUSES = ("kept", "broken", "unverified", "unknown")
_KINDS = {"str": str, "int": int, "bool": bool}
_BITS = 63
_LONGEST = 60  # characters of a value in a message
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_ORIGINS = ("declared", "model", "found by trying", "compared")


def parse_contract(text: str) -> Contract:
    """The contract in the text. Raises UsageError if it is none (AS046), or of a newer version (AS045)."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(unreadable_contract(f"it is not JSON: {error}")) from error
    return contract_from_plain(data)


def contract_from_plain(data: Any) -> Contract:
    """The contract from dicts, lists and plain values, as `contract_as_plain` makes them."""
    version = data.get("version") if isinstance(data, dict) else None
    if type(version) is not int or version < 1:
        raise UsageError(unreadable_contract("it has no version."))
    if version > VERSION:
        raise UsageError(newer_contract(version, data.get("versions")))
    try:
        return _contract(data)
    except _UnreadableError as error:
        raise UsageError(unreadable_contract(str(error))) from error
    except DeclarationError as error:
        raise UsageError(unreadable_contract(error.finding.what)) from error


def _contract(data: Json) -> Contract:
    return Contract(
        status=cast(Status, _one_of(data, "status", _STATUSES)),
        domain=Domain(
            tuple(_flat(Dim, item) for item in _list(data, "dims")),
            tuple(_condition(item, "relations") for item in _list(data, "relations")),
        ),
        rules=tuple(_rule(item) for item in _list(data, "rules")),
        inputs=tuple(_tensor(item) for item in _list(data, "inputs")),
        outputs=tuple(_tensor(item) for item in _list(data, "outputs")),
        constants=tuple(_constant(item) for item in _list(data, "constants")),
        parameters=tuple(_is(item, str, "parameters") for item in _list(data, "parameters")),
        needs=tuple(_is(item, str, "needs") for item in (_list(data, "needs") if "needs" in data else ())),
        values=_mapping(_get(data, "values", dict), str, "values") if "values" in data else {},
        refused=tuple(_mapping(item, int, "refused") for item in (_list(data, "refused") if "refused" in data else ())),
        state=tuple(_state(item) for item in (_list(data, "state") if "state" in data else ())),
        random="random" in data and _get(data, "random", bool),
        tested=_tested(_get(data, "tested", dict)),
        strategy=_get(data, "strategy", str),
        opset=_get(data, "opset", int),
        target=_get(data, "target", str) if "target" in data else "",
        findings=tuple(_finding(item) for item in _list(data, "findings")),
        versions=_mapping(_get(data, "versions", dict), str, "versions"),
        digest=_digest(_get(data, "digest", dict)) if "digest" in data else None,
    )


def _digest(data: Any) -> Digest:
    digest: Digest = _flat(Digest, data)
    for text in (digest.graph, digest.weights):
        if not _DIGEST.fullmatch(text):
            raise _UnreadableError(f"'digest' cannot be {shown(text)}")
    return digest


def _flat(kind: Any, data: Any) -> Any:
    """A record whose fields are texts, numbers and truth values, each under its own name."""
    types = {each.name: str(each.type).partition(" | ") for each in fields(kind)}
    return kind(**{name: _get(data, name, _KINDS[own], none=bool(other)) for name, (own, _, other) in types.items()})


def _rule(data: Any) -> Rule:
    source = _get(data, "source", dict, none=True)
    return Rule(
        _condition(_get(data, "condition", str), "rules"),
        cast(Origin, _one_of(data, "origin", _ORIGINS)),
        None if source is None else _flat(Source, source),
    )


def _condition(text: Any, key: str) -> Condition:
    return parse_condition(_is(text, str, key))


def _tensor(data: Any) -> TensorPromise:
    any_rank = isinstance(data, dict) and data.get("axes", ()) is None
    axes = () if any_rank else tuple(_axis(axis) for axis in _list(data, "axes"))
    number = parse_expr(_get(data, "number", str)) if "number" in data else None
    name, path, dtype = (_get(data, key, str) for key in ("name", "path", "dtype"))
    return TensorPromise(name, path, dtype, axes, any_rank, number)


def _state(data: Any) -> StatePromise:
    shape = tuple(size if type(size) is int else _is(size, str, "shape") for size in _list(data, "shape"))
    texts = ("name", "input", "output", "dtype", "data")
    return StatePromise(**{key: _get(data, key, str) for key in texts}, shape=shape)


def _axis(axis: Any) -> Expr | None:
    if axis is None:
        return None
    return Number(axis) if type(axis) is int else parse_expr(_is(axis, str, "axes"))


def _constant(data: Any) -> Constant:
    path = _get(data, "path", str)
    if "value" not in data:
        raise _UnreadableError("'value' is missing")
    return Constant(path, _value(data["value"]))


def _value(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict) and "float" in value:
        return _float(value["float"])
    return Opaque(_get(value, "type", str), _get(value, "text", str))


def _tested(data: Json) -> Tested:
    return Tested(
        sizes=tuple(_mapping(item, int, "sizes") for item in _list(data, "sizes")),
        capture_proved=_get(data, "capture_proved", bool),
        largest=_mapping(_get(data, "largest", dict), int, "largest"),
        worst_error={name: _float(error) for name, error in _get(data, "worst_error", dict).items()},
        against_guards=_get(data, "against_guards", int),
        untried=tuple(
            Untried(_mapping(_get(item, "sizes", dict), int, "untried"), _get(item, "why", str))
            for item in (_list(data, "untried") if "untried" in data else ())
        ),
    )


def _float(value: Any) -> float:
    if isinstance(value, str) and value in ("nan", "inf", "-inf"):
        return float(value)
    if type(value) is float or (type(value) is int and value.bit_length() <= _BITS):
        return float(value)
    raise _UnreadableError(f"{shown(value)} is not a number")


def _finding(data: Any) -> Finding:
    where, sizes = _get(data, "where", (dict, str), none=True), _get(data, "sizes", dict, none=True)
    severity = _one_of(data, "severity", tuple(severity.value for severity in Severity))
    texts = ("code", "name", "what", "excerpt", "why", "fix", "alternative", "replay")
    return Finding(
        **{key: _get(data, key, str) for key in texts},
        severity=Severity(severity),
        where=_flat(Source, where) if isinstance(where, dict) else where,
        sizes=None if sizes is None else _mapping(sizes, int, "sizes"),
        is_fix_untried=data.get("is_fix_untried") is True,
    )


class _UnreadableError(Exception):
    """Something in the data is not what a contract has there."""


def _get(data: Any, key: str, kind: type | tuple[type, ...], none: bool = False) -> Any:
    if not isinstance(data, dict):
        raise _UnreadableError(f"{shown(data)} stands where a table with {key!r} belongs")
    if key not in data:
        raise _UnreadableError(f"{key!r} is missing")
    return data[key] if none and data[key] is None else _is(data[key], kind, key)


def _is(value: Any, kind: type | tuple[type, ...], key: str) -> Any:
    # True is an int in Python, and is none here.
    is_kind = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if is_kind and not (type(value) is int and value.bit_length() > _BITS):
        return value
    raise _UnreadableError(f"{key!r} cannot be {shown(value)}")


def _list(data: Any, key: str) -> list[Any]:
    return cast("list[Any]", _get(data, key, list))


def _mapping(data: Any, kind: type, key: str) -> dict[str, Any]:
    return {name: _is(value, kind, key) for name, value in _is(data, dict, key).items()}


def _one_of(data: Any, key: str, choices: tuple[str, ...]) -> str:
    value: str = _get(data, key, str)
    if value not in choices:
        raise _UnreadableError(f"{key!r} cannot be {shown(value)}")
    return value


def shown(value: Any) -> str:
    """A value in a message, not longer than a line."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def unreadable_contract(why: str) -> Finding:
    """The finding for a contract that is damaged."""
    return Finding(
        code="AS046",
        name="unreadable-contract",
        what="the contract in the file's metadata cannot be read.",
        why=why if why.endswith(".") else f"{why}.",
        fix="export the model again; the graph itself may still be well.",
    )


def newer_contract(version: int, versions: Any) -> Finding:
    """The finding for a contract that a newer anyshape wrote."""
    writer = versions.get("anyshape") if isinstance(versions, dict) else None
    return Finding(
        code="AS045",
        name="newer-contract",
        what=f"the file's contract has version {version}, and this anyshape reads up to version {VERSION}.",
        why=f"it was written by anyshape {writer}." if writer else "it was written by a newer anyshape.",
        fix="pip install --upgrade anyshape",
        is_fix_untried=True,
    )
