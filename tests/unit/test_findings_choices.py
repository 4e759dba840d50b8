"""Options that take one of a few words."""

from __future__ import annotations

import pytest
import torch

import anyshape
from anyshape.findings import UsageError, check_choice


@pytest.mark.parametrize("value", ["grahp", "GRAPH", "", None, 3, ["graph"]])
def test_an_unknown_choice_is_a_usage_error_with_the_choices(value: object) -> None:
    with pytest.raises(UsageError, match="the choices are 'graph', 'load'") as caught:
        check_choice("enforce", value, ("graph", "load"))
    assert caught.value.finding.code == "AS060"
    assert ("did you mean 'graph'?" in str(caught.value)) == (value in ("grahp", "GRAPH"))


@pytest.mark.parametrize(
    ("option", "value"),
    [("budget", "60s"), ("budget", -1), ("time_limit", float("nan")), ("rtol", "1e-3"), ("atol", True), ("seed", "x"),
     ("seed", 1.5), ("opset", "18")],
)  # fmt: skip
def test_what_is_no_number_is_a_usage_error(option: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"{option} cannot be") as caught:
        anyshape.export(torch.nn.Linear(2, 2), object(), **{option: value})
    assert caught.value.finding.code == "AS066"


def test_a_known_choice_passes() -> None:
    check_choice("enforce", "load", ("graph", "load"))


@pytest.mark.parametrize(
    ("option", "word"), [("enforce", "did you mean 'load'?"), ("strategy", "did you mean 'symbolic'?")]
)
def test_export_refuses_an_unknown_choice_before_any_work(option: str, word: str) -> None:
    wrong = {"enforce": "laod", "strategy": "symbolc"}[option]
    with pytest.raises(UsageError) as caught:
        anyshape.export(torch.nn.Linear(2, 2), object(), **{option: wrong})
    assert word in str(caught.value)
