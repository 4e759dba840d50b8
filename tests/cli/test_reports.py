"""`--report out.html`: a page for what is kept, for what is refused, and for a file that was checked."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import anyshape
from anyshape.cli.main import app
from anyshape.findings import PromiseBroken, UsageError

MODEL = """
import torch
class Head(torch.nn.Module):
    def forward(self, x):
        return x.view({0}, 8)
def model():
    return Head()
def inputs(batch=3):
    return torch.randn(batch, 8)
where = ["1 <= batch <= 8"]
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run a command line in a folder with two models; errors come through."""
    (tmp_path / "right.py").write_text(MODEL.format("x.shape[0]"))
    (tmp_path / "baked.py").write_text(MODEL.format("3"))
    monkeypatch.chdir(tmp_path)
    # What draws charts has threads of its own once it was used: it hangs in a process forked from that of the tests.
    monkeypatch.setenv("ANYSHAPE_ISOLATE", "0")

    def run(*arguments: str) -> None:
        monkeypatch.setattr(sys, "argv", ["anyshape", *arguments])
        app(list(arguments), standalone_mode=False)

    return run


def test_kept_and_checked_have_pages(run: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    run("export", "right.py", "-o", "m.onnx", "--report", "out.html", "-q")
    page = Path("out.html").read_text(encoding="utf-8")
    assert ">Kept</span>" in page
    assert "anyshape export right.py -o m.onnx --report out.html -q" in page
    capsys.readouterr()
    run("check", "m.onnx", "--model", "right.py", "--report", "check.html", "--json", "--measure", "-q")
    assert json.loads(capsys.readouterr().out)["verdict"]["compared"][0]["errors"] == {"output": 0.0}
    page = Path("check.html").read_text(encoding="utf-8")
    assert "answers as the model does" in page
    assert "Latency over batch" in page and "Memory over batch" in page


def test_a_check_from_python_has_a_page_whether_it_passes_or_not(run: Callable[..., None]) -> None:
    run("export", "right.py", "-o", "m.onnx", "-q")
    inputs = lambda batch=3: torch.randn(batch, 8)  # noqa: E731
    verdict = anyshape.check("m.onnx", lambda x: x.view(x.shape[0], 8), inputs, where=["1 <= batch <= 8"])
    assert verdict.passed and verdict.path == Path("m.onnx") and verdict.findings == ()
    assert verdict.report("kept.html") == Path("kept.html")
    page = Path("kept.html").read_text(encoding="utf-8")
    assert ">Kept</span>" in page and "answers as the model does" in page and "float32[batch, 8]" not in page
    assert "Kept" in verdict._repr_html_() and "batch" in verdict._repr_html_()
    with pytest.raises(PromiseBroken, match="AS305") as caught:
        anyshape.check("m.onnx", lambda x: x.view(x.shape[0], 8) + 1, inputs, where=["1 <= batch <= 8"])
    assert caught.value.report("broken.html") == Path("broken.html")
    page = Path("broken.html").read_text(encoding="utf-8")
    assert ">Broken</span>" in page and "AS305" in page and "The smallest failing sizes" in page


def test_measuring_is_for_a_page(run: Callable[..., None]) -> None:
    with pytest.raises(Exception, match="--report"):
        run("check", "m.onnx", "--model", "right.py", "--measure")


def test_a_refused_export_has_a_page_and_no_file(run: Callable[..., None]) -> None:
    with pytest.raises(PromiseBroken, match="AS102"):
        run("export", "baked.py", "-o", "m.onnx", "--report", "out.html", "-q")
    assert not Path("m.onnx").exists()
    page = Path("out.html").read_text(encoding="utf-8")
    assert ">Refused</span>" in page
    assert "baked.py:5" in page


def test_a_page_that_cannot_be_written_stops_before_the_work(
    run: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match=r"none.out\.html"):
        run("export", "right.py", "-o", "m.onnx", "--report", "none/out.html")
    assert "capturing" not in capsys.readouterr().err
    assert not Path("m.onnx").exists()
