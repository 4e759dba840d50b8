"""Stdout has the result and nothing else: JSON in every case with --json, whatever the model prints."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

import anyshape
from anyshape.cli.main import app
from anyshape.contract import write_contract
from anyshape.contract.graph_rules import contract_of_foreign
from anyshape.findings import Finding

LOUD = """
import os, sys, warnings
import torch
print("printed at import")
sys.__stdout__.write("written past sys.stdout\\n")
os.write(1, b"written to the handle\\n")
class Net(torch.nn.Module):
    def forward(self, x):
        print("printed in forward")
        return x * 2
def model():
    print("printed by model()")
    return Net()
def inputs(batch=3):
    print("printed by inputs()")
    return torch.randn(batch, 10)
where = ["1 <= batch <= 8"]
def raising():
    raise RuntimeError("no weights here")
def leaving():
    sys.exit(4)
def deep_inputs(batch=3):
    return torch.randn(batch, 10)
def deep():
    import anyshape.exporting.module_trials
    anyshape.exporting.module_trials.explore = None     # a fault of our own, as far as the command line can see
    return Net()
"""


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anyshape", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("output")
    (folder / "loud.py").write_text(LOUD)
    (folder / "text.onnx").write_text("no ONNX file")
    return folder


def test_prints_of_the_model_go_to_stderr(folder: Path) -> None:
    done = run("export", "loud.py", "-o", "loud.onnx", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kept"] is True
    for printed in ("at import", "in forward", "by model()", "by inputs()"):
        assert f"printed {printed}" in done.stderr
    assert "written past sys.stdout" in done.stderr and "written to the handle" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["export", "loud.py", "--json"], 2, "AS036"),
        (["exprot", "loud.py", "--json"], 2, "AS036"),
        (["export", "loud.py", "-o", "x.onnx", "--json", "--opset", "many"], 2, "AS036"),
        (["export", "loud.py:raising", "-o", "x.onnx", "--json"], 2, "AS034"),
        (["export", "loud.py:leaving", "-o", "x.onnx", "--json"], 2, "AS062"),
        (["export", "loud.py:deep", "-o", "x.onnx", "--json"], 3, "AS901"),
        (["export", "loud.py", "-o", "x.onnx", "--json", "--enforce", "grahp"], 2, "AS060"),
        (["inspect", "text.onnx", "--json"], 2, "AS041"),
        (["check", "none.onnx", "-m", "loud.py", "--json"], 2, "AS040"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_json_is_printed_whatever_happens(folder: Path, arguments: list[str], status: int, code: str) -> None:
    done = run(*arguments, cwd=folder)
    assert done.returncode == status, done.stderr
    printed = json.loads(done.stdout)
    assert (printed["kept"], printed["status"], printed["findings"][0]["code"]) == (False, status, code)
    assert printed["error"].startswith(code)
    assert not (folder / "x.onnx").exists()


def test_a_reader_that_has_gone_is_no_error(folder: Path) -> None:
    command = f"{sys.executable} -m anyshape explain AS102 | true"
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_version_is_that_of_the_metadata_and_costs_no_torch(folder: Path) -> None:
    from importlib import metadata

    assert anyshape.__version__ == metadata.version("anyshape")
    assert run("--version", cwd=folder).stdout == f"anyshape {anyshape.__version__}\n"
    code = "import sys, anyshape; anyshape.__version__; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize("command", ["export", "check", "inspect", "explain"])
def test_the_help_of_every_command_has_an_example(folder: Path, command: str) -> None:
    assert f"anyshape {command} " in run(command, "--help", cwd=folder).stdout.partition("Arguments")[0]


def test_explain_takes_names(folder: Path) -> None:
    assert run("explain", "size-baked-in", cwd=folder).stdout.startswith("# AS102 size-baked-in")
    assert run("explain", "Wrong_Dtype", cwd=folder).stdout.count("\n# AS") == 1  # two findings have that name
    wrong = run("explain", "size-baked", cwd=folder)
    assert wrong.returncode == 2 and "did you mean AS102 size-baked-in?" in wrong.stderr


def test_names_from_a_file_are_printed_without_control_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = "x\x1b]0;owned\x07\x9b31m\u202e\nkept: other.onnx"
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[n] x) => (float[n] y) { y = Neg(x) }'
    )
    proto.graph.input[0].name = proto.graph.node[0].input[0] = hostile
    proto.graph.output[0].name = proto.graph.node[0].output[0] = hostile[::-1]
    onnx.save(proto, tmp_path / "m.onnx")
    promised = contract_of_foreign(proto)
    signed = replace(promised, versions={hostile: hostile}, status="broken")
    finding = Finding(code="AS301", name="wrong-shape", what=hostile, why=hostile)
    write_contract(proto, replace(signed, findings=(finding,)))
    onnx.save(proto, tmp_path / "signed.onnx")
    for name in ("m.onnx", "signed.onnx"):
        for more in ([], ["--json"]):
            app(["inspect", str(tmp_path / name), *more], standalone_mode=False)
            printed = capsys.readouterr().out
            assert [each for each in printed if each != "\n" and unicodedata.category(each) in ("Cc", "Cf")] == []
            assert "owned" in printed
            assert not any(line.startswith("kept: other.onnx") for line in printed.splitlines())


def test_what_a_parser_refuses_is_printed_without_control_characters(folder: Path) -> None:
    done = run("inspect", "a\x1b[31m.onnx", "b\x1b[31m", cwd=folder)
    assert done.returncode == 2 and "\x1b" not in done.stderr
    done = run("inspect", "a\x1b[31m.onnx", cwd=folder)
    assert done.returncode == 2 and "\x1b" not in done.stderr
