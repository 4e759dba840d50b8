"""Models of one size, exported by torch, made dynamic again and compared with eager: some of `make repair`."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

REPAIR = Path(__file__).parents[2] / "benchmarks" / "repair"

RIGHT = (
    ("resnet", "dynamo"),
    ("unet-size", "legacy"),
    ("unet-scale", "dynamo"),
    ("detector", "legacy"),
    ("convnext", "dynamo"),
    ("encoder", "dynamo"),
    ("encoder-equal", "legacy"),
    ("causal", "dynamo"),
    ("positions", "legacy"),
    ("masked", "dynamo"),
    ("cross-attention", "legacy"),
    ("vit-batch-2", "dynamo"),
    ("windows", "legacy"),
    ("lstm", "dynamo"),
    ("gru-both-ways", "legacy"),
)
REFUSED = (
    ("sum-pool", "dynamo", "may be a size"),
    ("mixer", "legacy", "stands in the way"),
    ("trap-linspace", "legacy", "stands in the way"),
    ("trap-fixed-size", "dynamo", "readings that fit"),
    ("trap-adaptive-two", "legacy", "stands in the way"),
)


@pytest.fixture(scope="module")
def trips() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPAIR))
        yield importlib.import_module("round_trip")


@pytest.mark.parametrize(("name", "exporter"), RIGHT)
@pytest.mark.long_table
def test_a_file_made_dynamic_equals_eager_at_other_sizes(name: str, exporter: str, trips: Any) -> None:
    assert trips.judge(trips.find_row(name), exporter)[0] == "right"


@pytest.mark.parametrize(("name", "exporter", "words"), REFUSED)
def test_a_size_that_the_file_does_not_show_is_refused(name: str, exporter: str, words: str, trips: Any) -> None:
    verdict, _ = trips.judge(trips.find_row(name), exporter)
    assert verdict.startswith("refused") and words in verdict


def test_a_wrong_file_is_noticed(trips: Any, tmp_path: Path) -> None:
    row = trips.find_row("mean-pool")
    module = trips.export_static(row, tmp_path / "static.onnx", dynamo=False)
    assert trips.compare(row, module, tmp_path / "static.onnx").startswith(("FAILS", "WRONG"))
