"""`anyshape bench`: figures at each size, charts, and what stops it."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.dom.minidom
from pathlib import Path

import pytest

import anyshape
from anyshape.findings import UsageError
from anyshape.report.benches import Labels, bar_chart, line_chart

MODEL = """
import torch
def model():
    return torch.nn.Linear(10, 5)
def inputs(batch=3):
    return torch.randn(batch, 10)
where = ["1 <= batch <= 64"]
"""


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anyshape", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bench")
    (folder / "model.py").write_text(MODEL)
    done = run("export", "model.py", "-o", "m.onnx", "-q", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_size_has_time_and_memory(folder: Path) -> None:
    done = run(
        "bench", "m.onnx", "--model", "model.py", "--seconds", "0.05s", "--count", "3", "--json", "-q", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["sizes"]["batch"] for row in rows] == sorted(row["sizes"]["batch"] for row in rows) and len(rows) == 3
    assert all(1 <= row["sizes"]["batch"] <= 64 for row in rows)
    for row in rows:
        assert 0 < row["file"]["ms"] <= row["file"]["median_ms"] and row["eager_ms"] > 0
        assert 10 < row["file"]["load_mb"] <= row["file"]["peak_mb"] < 2000


def test_given_sizes_are_measured_and_plotted(folder: Path) -> None:
    sizes = ("--sizes", "batch=2", "--sizes", "batch=5")
    done = run("bench", "m.onnx", "-m", "model.py", "--seconds", "0.05s", *sizes, "--plot", "m.html", "-q", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[2:]] == ["batch=2", "batch=5"]
    assert (folder / "m.html").read_text().count("<svg") == 2


def test_a_size_at_which_the_file_fails_is_status_1(folder: Path) -> None:
    (folder / "open.py").write_text(MODEL.replace("64", "200"))
    done = run("bench", "m.onnx", "-m", "open.py", "--seconds", "0.05s", "--sizes", "batch=100", "-q", cwd=folder)
    assert done.returncode == 1 and "failed" in done.stdout and "batch" in done.stdout


def test_an_unknown_provider_is_named(folder: Path) -> None:
    done = run("bench", "m.onnx", "-m", "model.py", "--provider", "CUDAExecution", cwd=folder)
    assert done.returncode == 2 and "AS422 unknown-provider" in done.stderr
    with pytest.raises(UsageError, match="AS422"):
        anyshape.load(folder / "m.onnx", providers=["NoSuchProvider"])
    assert anyshape.load(folder / "m.onnx", providers=["CPUExecutionProvider"]) is not None


@pytest.mark.parametrize("points", [[(1, 2.0), (8, 9.5)], [(0, 0.0)], []])
def test_a_line_chart_is_well_formed(points) -> None:
    text = line_chart(Labels(title="a < b & c", x="x", y="y"), {"one": points})
    assert xml.dom.minidom.parseString(text).documentElement.tagName == "svg"


def test_bars_are_as_long_as_their_values() -> None:
    page = xml.dom.minidom.parseString(bar_chart(Labels(title="t"), {"a": {"x": 1.0, "y": 2.0}, "b": {"x": 4.0}}))
    widths = [float(each.getAttribute("width")) for each in page.getElementsByTagName("rect")[1:]]
    assert widths[1] == pytest.approx(2 * widths[0], abs=0.2) and widths[2] == pytest.approx(4 * widths[0], abs=0.2)
