"""The pytest plug-in, as a project that uses it meets it: in a run of pytest of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

TESTS = """
import torch
import onnx

onnx.save(onnx.parser.parse_model('''
    <ir_version: 8, opset_import: ["" : 18]>
    g (float[batch, 10] input) => (float[batch, 10] y) { y = Relu(input) }
'''), "m.onnx")


def inputs(batch=3):
    return torch.randn(batch, 10)


def test_kept(anyshape):
    assert anyshape.check("m.onnx", torch.nn.ReLU(), inputs).passed


def test_broken(anyshape):
    anyshape.check("m.onnx", torch.nn.Sigmoid(), inputs)


def test_exported(anyshape):
    assert anyshape.export(torch.nn.ReLU(), inputs).is_kept


def test_missing(anyshape):
    anyshape.check("no.onnx", torch.nn.ReLU(), inputs)
"""


def run_pytest(folder: Path, *arguments: str) -> str:
    """What pytest says in a fresh process; the plug-in is loaded by its module, whether or not it is installed."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-m", "pytest", "-p", "anyshape.testing.plugin", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    return done.stdout + done.stderr


def test_the_fixture_passes_what_is_kept_and_fails_with_the_findings_own_text(tmp_path: Path) -> None:
    (tmp_path / "test_model.py").write_text(TESTS)
    said = run_pytest(tmp_path, "-q", "test_model.py")
    assert "2 failed, 2 passed" in said, said
    assert re.search(r"^AS305 wrong-values: output 'y' differs from PyTorch at batch=1", said, re.MULTILINE)
    assert re.search(r"^AS040 missing-file: ", said, re.MULTILINE)
    assert "Traceback" not in said and "plugin.py" not in said


def test_the_plugin_costs_a_run_that_does_not_use_it_nothing(tmp_path: Path) -> None:
    heavy = "{'torch', 'onnxruntime', 'onnx', 'z3', 'sympy', 'numpy'}"
    (tmp_path / "test_light.py").write_text(f"import sys\ndef test_light(): assert not {heavy} & set(sys.modules)\n")
    assert "1 passed" in run_pytest(tmp_path, "-q", "test_light.py")


def test_pytest_finds_the_plugin_by_itself_where_anyshape_is_installed() -> None:
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '[project.entry-points.pytest11]\nanyshape = "anyshape.testing.plugin"\n' in declared
