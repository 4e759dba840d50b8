"""The table of torch's features: its page has all cases, and its judge sees wrong files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def features() -> Iterator[Any]:
    """The module that runs the cases, with all cases listed."""
    sys.path.insert(0, str(BENCHMARKS))
    from features import run

    yield run
    sys.path.remove(str(BENCHMARKS))


def test_the_page_has_every_case_once_and_no_other(features: Any) -> None:
    from features.page import read_names

    names = [feature.name for feature in features.FEATURES]
    assert len(set(names)) == len(names) >= 100
    assert sorted(read_names()) == sorted(names)


def test_no_case_on_the_page_is_wrong_or_an_error(features: Any) -> None:
    from features.page import PAGE

    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert not [row for row in rows if " | wrong | " in row or " | error | " in row]


@pytest.mark.parametrize(
    "name",
    [
        "`torch.cond` with two outputs, a parameter and a tensor of the closure",
        "`EncoderDecoderCache`, the flat form",
        "`ShapesCollection`",
        "`AdditionalInputs`",
        "a plain function",
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_case_is_right(features: Any, name: str) -> None:
    (feature,) = [each for each in features.FEATURES if each.name == name]
    assert features.run(feature.make())["status"] == "right"


@pytest.mark.filterwarnings("ignore")
def test_a_file_of_another_model_is_seen(features: Any, tmp_path: Path) -> None:
    import anyshape

    anyshape.export(torch.nn.ReLU(), torch.randn(3, 4), tmp_path / "m.onnx", dynamic=({0: "batch"},))
    x = torch.full((5, 4), -1.0)
    wrong = features.Case(torch.nn.Tanh(), (x,))
    right = features.Case(torch.nn.ReLU(), (x,))
    assert "differs from eager" in features.differs(wrong, tmp_path / "m.onnx")
    assert features.differs(right, tmp_path / "m.onnx") == ""
