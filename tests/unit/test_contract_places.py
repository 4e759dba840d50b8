"""Dims are found from axes wherever axes determine them, and nowhere else."""

from __future__ import annotations

import pytest
from contract_builder import contract

from anyshape.domain import Ref, parse_condition, substitute
from anyshape.graphs import on_places, places_of, readings_of

TABLE = [
    ("x: float32[batch, seq]", (), {"batch": "x0", "seq": "x1"}),
    ("x: float32[batch]; y: float32[batch]", (), {"batch": "x0"}),
    ("x: float32[2*n]; y: float32[n]", (), {"n": "y0"}),
    ("ids: float32[seq]; mask: float32[past + seq]", (), {"seq": "ids0", "past": "mask0 - ids0"}),
    ("x: float32[2*n]", (), {"n": "x0//2"}),
    ("x: float32[2*n + 1]", (), {"n": "(x0 - 1)//2"}),
    ("x: float32[9 - n]", (), {"n": "9 - x0"}),
    ("x: float32[a + b]; y: float32[a - b]", (), {"a": "(x0 + y0)//2", "b": "(x0 - y0)//2"}),
    (
        "x: float32[a + b]; y: float32[b + c]; z: float32[a + c]",
        (),
        {
            "a": "(x0 + z0 - y0)//2",
            "b": "(x0 + y0 - z0)//2",
            "c": "(y0 + z0 - x0)//2",
        },
    ),
    ("x: float32[n]; y: float32[n*m]", (), {"n": "x0", "m": "y0//x0"}),
    ("x: float32[n]; y: float32[n*m + n + 1]", (), {"n": "x0", "m": "(y0 - x0 - 1)//x0"}),
    ("x: float32[n]; y: float32[n//2 + m]", (), {"n": "x0", "m": "y0 - x0//2"}),
    ("x: float32[a]; y: float32[b]", ("a == b + c",), {"a": "x0", "b": "y0", "c": "x0 - y0"}),
    ("x: float32[a]; y: float32[b]", ("a == b + c and c <= 9",), {"a": "x0", "b": "y0", "c": "x0 - y0"}),
    ("x: float32[a + b]", (), {}),
    ("x: float32[(t + 1)//2]", (), {}),
    ("x: float32[n*n]", (), {}),
    ("x: float32[a + b]; y: float32[2*a + 2*b]", (), {}),
    ("x: float32[min(n, 9)]", (), {}),
    ("x: float32[?, 3, n]", (), {"n": "x2"}),
]


@pytest.mark.parametrize(("inputs", "where", "expected"), TABLE, ids=[row[0] + " ".join(row[1]) for row in TABLE])
def test_how_dims_are_read(inputs: str, where: tuple[str, ...], expected: dict[str, str]) -> None:
    promised = contract(inputs, *where)
    places = places_of(promised.input_axes)
    spoken = {place.key: f"{place.input}{place.axis}" for place in places}
    found = {}
    for reading in readings_of(promised.domain, places):
        text = str(reading.value)
        for key in sorted(spoken, key=len, reverse=True):
            text = text.replace(key, spoken[key])
        found[reading.dim] = text
    assert found == expected


def test_a_place_reads_like_a_place() -> None:
    assert [str(place) for place in places_of(contract("x: float32[3, n]").input_axes)] == ["'x' axis 1"]


@pytest.mark.parametrize(
    "text, written, condition",
    [
        ("x: float32[min(n, 9)]", "min(n, 9) == 9", "x0 == 9"),
        ("x: float32[a + b]; y: float32[n]", "2*a + 2*b + 1 < n", "2*x0 + 1 < y0"),
        ("x: float32[t//2 + 1]", "t//2 > 4 or 3*(t//2) == 6", "x0 - 1 > 4 or 3*x0 - 3 == 6"),
        ("x: float32[a + b]", "a > b", "a > b"),
    ],
)
def test_a_condition_on_what_an_axis_is_made_of_is_one_on_the_axis(text: str, written: str, condition: str) -> None:
    promised = contract(text)
    places = places_of(promised.input_axes)
    names = {place.key: Ref(f"{place.input}{place.axis}") for place in places}
    found = on_places(parse_condition(written), places, readings_of(promised.domain, places))
    assert str(substitute(found, names)) == condition
