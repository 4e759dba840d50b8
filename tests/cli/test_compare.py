"""`anyshape compare`: two files of one model, right or wrong, with or without a contract."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
import torch
from tests.pages import Reader

from anyshape import files

MODEL = """
import torch
def model(x):
    return x * 2
def inputs(n=3, m=2):
    return dict(x=torch.randn(n, m))
where = ["1 <= n <= 9", "1 <= m <= 9"]
"""
GRAPHS = {
    "doubled": "(float[n, m] x) => (float[n, m] y) { y = Add (x, x) }",
    "multiplied": "(float[a, b] x) => (float[a, b] z) { two = Constant <value_float: float = 2.0> () z = Mul (x, two) }",
    "wrong": "(float[n, m] x) => (float[n, m] y) { three = Constant <value_float: float = 3.0> () y = Mul (x, three) }",
    "static": "(float[3, 2] x) => (float[3, 2] y) { y = Add (x, x) }",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    (folder / "model.py").write_text(MODEL)
    for name, graph in GRAPHS.items():
        text = f'<ir_version: 8, opset_import: ["" : 18]> g {graph}'
        onnx.save(onnx.parser.parse_model(text), folder / f"{name}.onnx")
    return folder


@pytest.fixture
def reader(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    monkeypatch.chdir(folder)
    return Reader(folder)


def compare(reader: Reader, other: str, *options: str) -> dict[str, object]:
    words = " ".join(("anyshape compare doubled.onnx", other, "--model model.py --json -q", *options))
    result: dict[str, object] = json.loads(reader.run_console(words))
    return result


def test_two_right_files_without_a_contract_agree_and_are_measured(reader: Reader) -> None:
    result = compare(reader, "multiplied.onnx", "--measure 2 --seconds 0.02s")
    assert reader.status == 0 and result["kept"] and result["agree"]
    for file in result["files"]:  # type: ignore[attr-defined]
        assert file["right"] and file["contract"] == "none" and file["bytes"] > 0
        assert [row["file"]["ms"] > 0 for row in file["bench"]["rows"]] == [True, True]
    assert all(row["errors"] == [0, 0] and row["between"] == 0 for row in result["sizes"])  # type: ignore[attr-defined]


def test_a_wrong_file_has_status_1_an_error_at_every_size_and_a_finding(reader: Reader) -> None:
    said = reader.run_console("anyshape compare doubled.onnx wrong.onnx --model model.py --measure 0 -q")
    assert reader.status == 1 and said.startswith("BROKEN: B is wrong, they differ")
    assert "AS305 wrong-values" in said and "value of y" in said
    assert max(map(len, said.partition("B wrong.onnx\n")[0].splitlines())) <= 80


def test_a_static_file_answers_at_its_own_sizes_alone(folder: Path) -> None:
    compared = files.compare(
        folder / "doubled.onnx",
        folder / "static.onnx",
        _double,
        lambda n=3, m=2: {"x": torch.randn(n, m)},
        where=["1 <= n <= 9", "1 <= m <= 9"],
        measure=0,
    )
    assert not compared.is_kept and [side.is_right for side in compared.sides] == [True, False]
    assert [dict(row.sizes) for row in compared.rows if row.agrees] == [{"n": 3, "m": 2}]
    assert all("B" in row.unanswered for row in compared.rows if not row.agrees)


def _double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def test_a_tolerance_makes_a_rough_file_right(reader: Reader) -> None:
    result = compare(reader, "wrong.onnx", "--measure 0 --rtol 0.6")
    assert reader.status == 0 and result["unit"] == "tolerances"
    assert all(0 < row["errors"][1] <= 1 for row in result["sizes"])  # type: ignore[attr-defined]


def test_the_page_has_the_verdict_and_the_command(reader: Reader) -> None:
    said = reader.run_console(
        "anyshape compare doubled.onnx multiplied.onnx --model model.py --measure 0 --report out.html"
    )
    assert reader.status == 0 and said.startswith("kept: both are right, they agree")
    page = Path("out.html").read_text(encoding="utf-8")
    assert ">Both right</span>" in page and "Both are right, they agree." in page
    assert "anyshape compare doubled.onnx multiplied.onnx --model model.py --measure 0 --report out.html" in page
    assert "Time and memory" not in page


def test_a_page_that_cannot_be_written_stops_before_the_comparison(reader: Reader) -> None:
    said = reader.run_console("anyshape compare doubled.onnx wrong.onnx --model model.py --report none/out.html")
    assert reader.status == 2 and "none/out.html" in said and "AS305" not in said


def test_a_file_that_is_not_there_is_named_before_anything_is_compared(reader: Reader) -> None:
    said = reader.run_console("anyshape compare doubled.onnx doubld.onnx --model model.py")
    assert reader.status == 2 and said.startswith("AS040 missing-file: there is no file 'doubld.onnx'")
