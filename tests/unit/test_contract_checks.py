"""A call passes if it keeps the contract, and is refused with the right code if it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contract_builder import contract, zeros
from hypothesis import given, settings
from hypothesis import strategies as st
from size_contracts import LARGEST, allows, contracts

from anyshape.findings import ContractBroken
from anyshape.loading.call_checks import CallChecker
from anyshape.records.contract import Contract

DECODER = contract(
    "ids: int64[batch, seq]; mask: int64[batch, past + seq];"
    "k: float32[batch, 4, past, 16]; v: float32[batch, 4, past, 16]",
    "1 <= batch <= 64",
    "past >= 0",
    "past + seq <= 4096",
    "seq % 2 == 0",
)
GOOD = {"batch": 3, "seq": 4, "past": 2}


def code(promised: Contract, feeds: dict[str, Any]) -> str:
    with pytest.raises(ContractBroken) as caught:
        CallChecker.of(promised).check(feeds)
    return caught.value.finding.code


@pytest.mark.parametrize(
    "sizes",
    [GOOD, {**GOOD, "past": 0}, {**GOOD, "batch": 1}, {**GOOD, "batch": 64}, {"batch": 1, "seq": 4094, "past": 2}],
    ids=str,
)
def test_a_call_inside_the_contract_gives_its_sizes(sizes: dict[str, int]) -> None:
    assert CallChecker.of(DECODER).check(zeros(DECODER, **sizes)) == sizes


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({**GOOD, "batch": 0}, "AS402"),
        ({**GOOD, "batch": 65}, "AS402"),
        ({**GOOD, "seq": 0}, "AS402"),
        ({**GOOD, "seq": 5}, "AS403"),
        ({"batch": 1, "seq": 4094, "past": 3}, "AS405"),
    ],
)
def test_sizes_outside_the_domain_are_refused(sizes: dict[str, int], expected: str) -> None:
    assert code(DECODER, zeros(DECODER, **sizes)) == expected


@pytest.mark.parametrize(
    ("name", "array", "expected"),
    [
        ("mask", np.zeros((3, 7), np.int64), "AS404"),
        ("mask", np.zeros((3, 5), np.int64), "AS404"),
        ("mask", np.zeros((4, 6), np.int64), "AS401"),
        ("v", np.zeros((3, 4, 3, 16), np.float32), "AS401"),
        ("v", np.zeros((3, 4, 2, 17), np.float32), "AS406"),
        ("v", np.zeros((3, 5, 2, 16), np.float32), "AS406"),
        ("v", np.zeros((3, 4, 2), np.float32), "AS407"),
        ("v", np.zeros((), np.float32), "AS407"),
        ("v", np.zeros((3, 4, 2, 16), np.float64), "AS408"),
        ("v", np.zeros((3, 4, 2, 16), ">f4"), "AS408"),
        ("ids", np.zeros((3, 4), np.int32), "AS408"),
        ("ids", np.zeros((3, 4), bool), "AS408"),
        ("ids", np.full((3, 4), "a"), "AS408"),
        ("extra", np.zeros(3), "AS410"),
    ],
)
def test_one_wrong_input_is_enough(name: str, array: Any, expected: str) -> None:
    assert code(DECODER, {**zeros(DECODER, **GOOD), name: array}) == expected


@pytest.mark.parametrize("name", ["ids", "mask", "k", "v"])
def test_a_missing_input_is_refused(name: str) -> None:
    feeds = zeros(DECODER, **GOOD)
    del feeds[name]
    assert code(DECODER, feeds) == "AS409"


def test_a_dim_that_stands_in_an_expression_only_is_solved_for() -> None:
    promised = contract("ids: int64[seq]; mask: int64[past + seq]", "past >= 0")
    feeds = {"ids": np.zeros(4, np.int64), "mask": np.zeros(7, np.int64)}
    assert CallChecker.of(promised).check(feeds) == {"seq": 4, "past": 3}
    assert code(promised, {**feeds, "mask": np.zeros(3, np.int64)}) == "AS402"


def test_a_dim_that_nothing_determines_must_only_exist() -> None:
    promised = contract("x: float32[(t + 1)//2]", "t <= 20")
    assert CallChecker.of(promised).check({"x": np.zeros(10, np.float32)}) == {}
    assert code(promised, {"x": np.zeros(11, np.float32)}) == "AS415"
    assert code(promised, {"x": np.zeros(0, np.float32)}) == "AS415"


def test_axes_that_no_whole_numbers_fit_are_refused() -> None:
    promised = contract("x: float32[2*n]")
    assert CallChecker.of(promised).check({"x": np.zeros(6, np.float32)}) == {"n": 3}
    assert code(promised, {"x": np.zeros(7, np.float32)}) == "AS415"


def test_a_product_with_nothing_says_nothing_about_its_other_factor() -> None:
    promised = contract("x: float32[n]; y: float32[n*m]", "n >= 0", "1 <= m <= 9")
    assert CallChecker.of(promised).check({"x": np.zeros(0, np.float32), "y": np.zeros(0, np.float32)}) == {"n": 0}
    assert code(promised, {"x": np.zeros(0, np.float32), "y": np.zeros(1, np.float32)}) == "AS415"


def test_an_axis_that_depends_on_values_may_have_any_size() -> None:
    promised = contract("x: float32[?, n]", "n <= 3")
    assert CallChecker.of(promised).check({"x": np.zeros((77, 2), np.float32)}) == {"n": 2}


def test_texts_are_strings_in_all_their_forms() -> None:
    promised = contract("x: string[n]")
    for array in (np.array(["a", "b"]), np.array(["a", "b"], object)):
        assert CallChecker.of(promised).check({"x": array}) == {"n": 2}


@settings(deadline=None, max_examples=300)
@given(contracts, st.data())
def test_a_call_passes_exactly_where_some_sizes_of_the_domain_fit(promised: Contract, data: st.DataObject) -> None:
    axes = {tensor.name: data.draw(st.integers(0, 2 * LARGEST), label=tensor.name) for tensor in promised.inputs}
    feeds = {name: np.zeros(size, np.float32) for name, size in axes.items()}
    try:
        sizes = CallChecker.of(promised).check(feeds)
    except ContractBroken:
        assert not allows(promised, axes)
    else:
        assert allows(promised, axes)
        assert set(sizes) <= set(promised.domain.names)
