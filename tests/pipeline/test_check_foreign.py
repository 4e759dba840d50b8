"""`check` on files of other exporters: what they answer where the model refuses, which node is wrong, what GitHub sees."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch

import anyshape
from anyshape.domain import declare_domain, sizes_near

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'
EVEN_PART = """g (float[batch, seq] x) => (float[batch, half] y) {
    zero = Constant <value_ints = [0]> () one = Constant <value_ints = [1]> () two = Constant <value_ints = [2]> ()
    n = Shape <start = 1, end = 2> (x) odd = Mod (n, two) left = Sub (n, odd)
    even = Slice (x, zero, left, one) split = Constant <value_ints = [0, -1, 2]> ()
    pairs = Reshape (even, split) y = ReduceSum <keepdims = 0> (pairs, two) }"""


class Pairs(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.shape[0], -1, 2).sum(2)


def inputs(batch: int = 3, seq: int = 8) -> torch.Tensor:
    return torch.randn(batch, seq)


def written(text: str, folder: Path) -> Path:
    onnx.save(onnx.parser.parse_model(HEAD + text), folder / "m.onnx")
    return folder / "m.onnx"


def findings(path: Path, **options: Any) -> tuple[Any, ...]:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.check(path, Pairs(), inputs, **options)
    return broken.value.findings


def test_a_file_that_answers_where_the_model_refuses_is_flagged(tmp_path: Path) -> None:
    (found,) = findings(written(EVEN_PART, tmp_path))
    assert found.code == "AS309"
    assert found.sizes["seq"] % 2 == 1
    assert "is invalid for input of size" in found.why
    assert found.where.text == "return x.view(x.shape[0], -1, 2).sum(2)"


def test_so_it_is_at_those_sizes_alone_and_not_at_others(tmp_path: Path) -> None:
    path = written(EVEN_PART, tmp_path)
    (found,) = findings(path, sizes={"batch": 2, "seq": 3})
    assert (found.code, found.sizes) == ("AS309", {"batch": 2, "seq": 3})
    assert anyshape.check(path, Pairs(), inputs, sizes={"batch": 2, "seq": 4}).passed


def test_our_own_files_refuse_there_or_do_not_promise_it(tmp_path: Path) -> None:
    for enforce in ("graph", "load"):
        anyshape.export(Pairs(), inputs, tmp_path / "m.onnx", enforce=enforce)
        assert anyshape.check(tmp_path / "m.onnx", Pairs(), inputs).passed


def test_a_frozen_shape_is_named_with_the_users_line_by_a_file_of_torchs(tmp_path: Path) -> None:
    text = "g (float[batch, seq] x) => (float[batch, half] y) { split = Constant <value_ints = [3, 4, 2]> ()"
    text += (
        " two = Constant <value_ints = [2]> () pairs = Reshape (x, split) y = ReduceSum <keepdims = 0> (pairs, two) }"
    )
    (found,) = [found for found in findings(written(text, tmp_path)) if found.code != "AS309"]
    assert found.where.startswith("node pairs (Reshape) holds the constant shape [3, 4, 2] (from ")
    assert found.source.text == "return x.view(x.shape[0], -1, 2).sum(2)"


def test_sizes_near_an_example_stay_in_the_domain() -> None:
    domain = declare_domain(["a", "b"], ["1 <= a <= 3", "b >= 5"])
    assert sizes_near(domain, {"a": 3, "b": 5}) == ({"a": 3, "b": 5}, {"a": 2, "b": 5}, {"a": 3, "b": 6})


def test_github_is_told_of_a_broken_check(tmp_path: Path) -> None:
    written(EVEN_PART, tmp_path)
    (tmp_path / "model.py").write_text(
        "import torch\n\n\nclass Pairs(torch.nn.Module):\n    def forward(self, x):\n"
        "        return x.view(x.shape[0], -1, 2).sum(2)\n\n\ndef model():\n    return Pairs()\n\n\n"
        "def inputs(batch=3, seq=8):\n    return torch.randn(batch, seq)\n"
    )
    environment = {**os.environ, "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    command = [sys.executable, "-m", "anyshape", "check", "m.onnx", "--model", "model.py", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert done.stderr.startswith("::error file=model.py,line=6,title=AS309 answers-where-model-refuses::")
    assert (tmp_path / "summary.md").read_text().startswith("### anyshape check m.onnx: BROKEN\n")
