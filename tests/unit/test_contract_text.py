"""A contract and its text are the same thing: nothing is lost, nothing is guessed."""

from __future__ import annotations

import json
import math
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
import torch
from contract_builder import contract
from hypothesis import given
from hypothesis import strategies as st

from anyshape.contract.from_json import contract_from_plain, parse_contract
from anyshape.domain import Compare, Dim, Domain, Expr, Number, Ref
from anyshape.findings import Finding, Severity, Source, UsageError
from anyshape.records.contract import (
    Constant,
    Contract,
    Digest,
    Opaque,
    Rule,
    TensorPromise,
    contract_as_plain,
    format_contract,
)
from anyshape.records.contract import Tested as Evidence

SCHEMA = json.loads(files("anyshape.contract").joinpath("contract-v1.schema.json").read_text(encoding="utf-8"))

NAMES = ("batch", "seq", "past")
texts = st.text(max_size=12)
sizes = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 2**40), max_size=3)
sources = st.builds(Source, texts, st.integers(0, 10**6), texts, texts)
exprs: st.SearchStrategy[Expr] = st.recursive(
    st.one_of(st.builds(Number, st.integers(-9, 99)), st.builds(Ref, st.sampled_from(NAMES))),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a, b: a // b, inner, inner),
    ),
    max_leaves=4,
)
conditions = st.builds(Compare, st.sampled_from(["<=", "<", "==", "!="]), exprs, exprs)
constants = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), texts, st.builds(Opaque, texts, texts)
)
tensors = st.builds(
    TensorPromise,
    texts,
    texts,
    st.sampled_from(["float32", "bool", "bfloat16"]),
    st.lists(st.one_of(st.none(), exprs), max_size=4).map(tuple),
)
findings = st.builds(
    Finding,
    code=st.just("AS301"),
    name=texts,
    what=texts,
    severity=st.sampled_from(list(Severity)),
    excerpt=texts,
    where=st.one_of(st.none(), texts, sources),
    why=texts,
    fix=texts,
    alternative=texts,
    replay=texts,
    sizes=st.one_of(st.none(), sizes),
    is_fix_untried=st.booleans(),
)


def tuples(of: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(of, max_size=3).map(tuple)


sums = st.text("0123456789abcdef", min_size=64, max_size=64).map("sha256:{}".format)
dims = st.tuples(*(st.builds(Dim, st.just(name), st.integers(0, 9), st.none(), st.integers(1, 9)) for name in NAMES))
contracts = st.builds(
    Contract,
    status=st.sampled_from(["kept", "broken", "unverified", "unknown"]),
    domain=st.builds(Domain, dims, tuples(conditions)),
    rules=tuples(
        st.builds(
            Rule, conditions, st.sampled_from(["declared", "model", "found by trying"]), st.one_of(st.none(), sources)
        )
    ),
    inputs=tuples(tensors),
    outputs=tuples(tensors),
    constants=tuples(st.builds(Constant, texts, constants)),
    parameters=tuples(texts),
    tested=st.builds(
        Evidence,
        tuples(sizes),
        st.booleans(),
        sizes,
        st.dictionaries(texts, st.floats(allow_nan=False), max_size=2),
        st.integers(0, 99),
    ),
    strategy=texts,
    opset=st.integers(0, 30),
    target=st.sampled_from(["", "onnxruntime"]),
    findings=tuples(findings),
    versions=st.dictionaries(texts, texts, max_size=2),
    digest=st.one_of(st.none(), st.builds(Digest, sums, sums)),
)


@given(contracts)
def test_parsing_is_the_inverse_of_formatting(made: Contract) -> None:
    assert parse_contract(format_contract(made)) == made


@given(contracts)
def test_every_contract_fits_the_published_schema(made: Contract) -> None:
    jsonschema.validate(contract_as_plain(made), SCHEMA)


def test_the_schema_is_itself_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


GOOD = contract("x: float32[batch, 3]", "1 <= batch <= 64", outputs="y: float32[batch]")


@pytest.mark.parametrize("key", sorted(contract_as_plain(GOOD)))
def test_a_contract_without_one_of_its_keys_is_refused_by_schema_and_parser(key: str) -> None:
    plain = contract_as_plain(GOOD)
    del plain[key]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(plain, SCHEMA)
    with pytest.raises(UsageError):
        contract_from_plain(plain)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("version", "1"),
        ("version", True),
        ("version", 0),
        ("status", "fine"),
        ("dims", {}),
        ("dims", ["batch"]),
        ("dims", [{"name": "batch", "min": 1, "max": 64, "multiple": 1}]),
        ("dims", [{"name": "batch", "min": True, "max": 64, "multiple": 1, "declared": True}]),
        ("dims", [{"name": "batch", "min": -1, "max": 64, "multiple": 1, "declared": True}]),
        ("relations", [3]),
        ("rules", [{"condition": "batch >= 1", "origin": "nobody", "source": None}]),
        ("inputs", [{"name": "x", "path": "x", "dtype": "float32", "axes": [1.5]}]),
        ("constants", [{"path": "scale"}]),
        ("constants", [{"path": "scale", "value": [1]}]),
        ("tested", None),
        ("opset", "18"),
        ("findings", [{"code": "AS301"}]),
        ("versions", {"torch": 2}),
        ("digest", {"graph": "sha256:" + 64 * "0"}),
        ("digest", None),
    ],
)
def test_a_contract_with_a_wrong_value_is_refused_by_schema_and_parser(key: str, value: Any) -> None:
    plain = {**contract_as_plain(GOOD), key: value}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(plain, SCHEMA)
    with pytest.raises(UsageError):
        contract_from_plain(plain)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", "[" * 100_000])
def test_a_text_that_is_no_contract_is_unreadable(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_contract(text)
    assert caught.value.finding.code == "AS046"


def test_a_relation_that_speaks_of_no_dim_is_unreadable() -> None:
    with pytest.raises(UsageError) as caught:
        contract_from_plain({**contract_as_plain(GOOD), "relations": ["seq <= 3"]})
    assert caught.value.finding.code == "AS046"


def test_equal_contracts_have_the_same_bytes_in_whatever_order_their_mappings_were_filled() -> None:
    one = contract("x: float32[a, b]", versions={"torch": "2", "onnx": "1"}, tested=Evidence(({"a": 1, "b": 2},), True))
    two = contract("x: float32[a, b]", versions={"onnx": "1", "torch": "2"}, tested=Evidence(({"b": 2, "a": 1},), True))
    assert one == two
    assert format_contract(one) == format_contract(two)


def test_different_contracts_have_different_bytes() -> None:
    assert format_contract(contract("x: float32[a]")) != format_contract(contract("x: float32[a]", "a <= 9"))


@pytest.mark.parametrize("error", [math.nan, math.inf, -math.inf])
def test_an_error_that_is_no_number_survives(error: float) -> None:
    made = contract("x: float32[a]", tested=Evidence((), False, {}, {"y": error}), constants={"scale": error})
    back = parse_contract(format_contract(made))
    assert str(back.tested.worst_error["y"]) == str(error)
    assert str(back.constants[0].value) == str(error)
    jsonschema.validate(contract_as_plain(made), SCHEMA)


def test_a_constant_that_json_cannot_hold_is_kept_by_its_type_and_text() -> None:
    made = contract("x: float32[a]", constants={"dtype": torch.float16})
    assert parse_contract(format_contract(made)).constants[0].value == Opaque("torch.dtype", "torch.float16")


def test_the_version_comes_first() -> None:
    assert format_contract(GOOD).startswith('{"version":1,')
