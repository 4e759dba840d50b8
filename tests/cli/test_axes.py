"""`anyshape axes`: a table that fits 80 columns, the same facts as JSON, and text that an export takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tests.pages import Reader

import anyshape
from anyshape.report import format_table

MODEL = """
import torch
class Pooled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.positions = torch.nn.Linear(8, 4), torch.nn.Embedding(16, 8)
    def forward(self, x, an_input_with_quite_a_long_name_that_fills_the_line):
        y = self.linear(x + self.positions(torch.arange(x.shape[1])))
        return y * an_input_with_quite_a_long_name_that_fills_the_line[:, :, None]
def model():
    return Pooled()
"""
EXAMPLE = "def inputs():\n    return torch.randn(3, 5, 8), torch.ones(3, 5)\n"
FUNCTION = "def inputs(batch=3, seq=5):\n    return torch.randn(batch, seq, 8), torch.ones(batch, seq)\n"


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "example.py").write_text(MODEL + EXAMPLE)
    (tmp_path / "function.py").write_text(MODEL + FUNCTION)
    return Reader(tmp_path)


def test_the_table_fits_80_columns_and_nothing_is_written(reader: Reader, tmp_path: Path) -> None:
    said = reader.run_console("anyshape axes example.py -q")
    assert reader.status == 0 and "4 of 5 axes can vary" in said and "1 to 16 (example.py:8)" in said
    table = said.partition("To paste")[0]
    assert max(map(len, table.splitlines())) <= 80
    assert sorted(path.name for path in tmp_path.glob("*.*")) == ["example.py", "function.py"]


def test_json_has_the_facts_and_the_declaration(reader: Reader) -> None:
    plain = json.loads(reader.run_console("anyshape axes function.py --json -q"))
    assert plain["kept"] and plain["declaration"]["where"] == ["1 <= seq <= 16"]
    assert [axis["expression"] for axis in plain["inputs"][0]["axes"]] == ["batch", "seq", "8"]
    assert plain["rules"][0]["rule"] == "seq <= 16" and plain["rules"][0]["line"] == 8


def test_pasted_text_declares_what_was_found(reader: Reader, tmp_path: Path) -> None:
    found = json.loads(reader.run_console("anyshape axes example.py --json -q"))
    (tmp_path / "pasted.py").write_text(f"{MODEL}{EXAMPLE}{found['paste']}\n")
    again = json.loads(reader.run_console("anyshape axes pasted.py --json -q"))
    assert again["declaration"] == found["declaration"] and again["inputs"] == found["inputs"]


def test_every_axis_is_tried_though_the_file_declares_others(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(
        "import torch\ndef model(x): return x.sum(1)\ndef inputs(n=3): return torch.ones(n, 4)"
    )
    declared = json.loads(reader.run_console("anyshape axes sums.py --json -q"))
    every = json.loads(reader.run_console("anyshape axes sums.py --every-axis --json -q"))
    assert declared["declaration"]["dynamic"] == {"x": "n 4"}
    assert every["declaration"]["dynamic"] == {"x": "x_0 x_1"}


def test_a_refused_promise_has_status_1_and_its_line(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "fixed.py").write_text(
        "import torch\ndef model(x): return x.view(3, 4)\ndef inputs(n=3): return torch.ones(n, 4)"
    )
    said = reader.run_console("anyshape axes fixed.py -q")
    assert reader.status == 1 and "3 only (fixed.py:2)" in said and "AS102 size-baked-in" in said


def test_inputs_that_raise_are_the_users_and_not_an_internal_error(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "raises.py").write_text(
        "import torch\ndef model(x): return x\ndef inputs(): return torch.ones(3) + '4'"
    )
    said = reader.run_console("anyshape axes raises.py -q")
    assert reader.status == 2 and "TypeError" in said and "AS901" not in said


def test_an_example_that_the_model_refuses_is_an_error() -> None:
    with pytest.raises(anyshape.AnyshapeError) as raised:
        anyshape.axes(torch.nn.Linear(4, 2), torch.randn(3, 5))
    assert raised.value.finding.code == "AS105"


def test_rules_that_are_not_found_are_said_so() -> None:
    class Odd(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.shape[0] in (4, 9, 11, 17, 18, 23):
                raise ValueError("not this one")
            return x * 2

    found = anyshape.axes(Odd(), lambda n=3: torch.ones(n))
    assert not found.is_explained and not found.is_kept and {"n": 4} in found.refused
    assert "rule    unknown: the model raises at n=4" in str(found)


def test_long_cells_are_wrapped_and_nothing_is_lost() -> None:
    lines = format_table(("name", "what"), [("a" * 50, "b " * 60), ("c", "d")], right=())
    assert max(map(len, lines)) <= 80
    assert sum(line.count("a") for line in lines[1:]) == 50 and sum(line.count("b") for line in lines) == 60
