"""Lines of the user's code in files, errors and reports: relative paths, or none at all with strip_source."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import onnx
import pytest

import anyshape
from anyshape.contract import find_contract
from anyshape.findings import Finding
from anyshape.findings.finding import quoted, shorten, shorten_paths
from anyshape.records.contract import contract_as_plain
from anyshape.report import export_as_plain

# Both are the user's: one file in the working folder, one far from it, as an installed package is.
MODEL = """
import torch
import farlib

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)
    def forward(self, x, mask):
        halves = x.reshape(x.shape[0], -1, 2, 8).sum(2)      # refuses an odd seq
        return farlib.pool(self.linear(halves)) * mask[:, None]

class Raising(torch.nn.Module):
    def forward(self, x, mask):
        raise RuntimeError(f"see {__file__} and {farlib.__file__}, line 3")

class Baked(torch.nn.Module):
    def forward(self, x, mask):
        return farlib.fixed(x * mask[:, None, None])

def inputs(batch=2, seq=4):
    return {"x": torch.randn(batch, seq, 8), "mask": torch.ones(batch)}
"""
FAR = """
def pool(x):
    return x.mean(1)

def fixed(x):
    return x.reshape(2, 4, 8)
"""
WHERE = ["1 <= batch <= 8"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    near, far = tmp_path_factory.mktemp("near"), tmp_path_factory.mktemp("far")
    (near / "mynet.py").write_text(MODEL)
    (far / "farlib.py").write_text(FAR)
    patch = pytest.MonkeyPatch()
    patch.chdir(near)
    patch.syspath_prepend(str(far))
    spec = importlib.util.spec_from_file_location("mynet", near / "mynet.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    patch.undo()


def is_clean(content: bytes | str) -> bool:
    """Whether no absolute path is in it: neither of the two folders, nor of torch, nor of this project."""
    data = content if isinstance(content, bytes) else content.encode()
    folders = [Path.cwd().parent, Path.home() / "", Path(anyshape.__file__).parent, Path(os.__file__).parent]
    return not any(str(folder).encode() in data for folder in folders if len(str(folder)) > 5)


@pytest.mark.parametrize("strategy", [None, "generalized", "legacy"])
def test_a_file_has_relative_paths_only(model: ModuleType, strategy: str | None) -> None:
    result = anyshape.export(
        model.Net(), model.inputs, "m.onnx", where=WHERE, strategy=strategy, force=strategy == "legacy"
    )
    content = Path("m.onnx").read_bytes()
    assert is_clean(content)
    assert b"mynet.py" in content
    assert is_clean(json.dumps(export_as_plain(result, contract_as_plain(result.contract))))
    assert is_clean("x" + str(Path.cwd().parent)) is False  # the check can fail


def test_strip_source_leaves_every_line_out(model: ModuleType) -> None:
    result = anyshape.export(model.Net(), model.inputs, "m.onnx", where=WHERE, strip_source=True)
    printed = json.dumps(export_as_plain(result, contract_as_plain(result.contract)))
    for content in (Path("m.onnx").read_bytes(), printed.encode()):
        assert b".py" not in content and b"reshape(x" not in content
    assert result.contract.rules  # the rule itself stays, without its line
    assert find_contract("m.onnx") == result.contract
    assert not any(
        entry.key == "anyshape.source" for node in onnx.load("m.onnx").graph.node for entry in node.metadata_props
    )
    anyshape.load("m.onnx")  # the digest is that of the file without its lines


def test_errors_name_files_by_relative_paths(model: ModuleType) -> None:
    for net in (model.Baked(), model.Raising()):
        with pytest.raises(anyshape.AnyshapeError) as caught:
            anyshape.export(net, model.inputs, where=WHERE)
        assert is_clean(str(caught.value)), str(caught.value)
        assert "mynet.py" in str(caught.value) or "farlib.py:6" in str(caught.value)


def test_force_says_where_it_had_nothing_to_force(model: ModuleType) -> None:
    with pytest.raises(anyshape.PromiseBroken) as caught:
        anyshape.export(model.Baked(), model.inputs, "forced.onnx", where=WHERE, force=True)
    assert caught.value.finding.code != "AS061"
    assert [finding.code for finding in caught.value.findings][-1] == "AS061"
    assert "there is no file" in str(caught.value)
    assert not Path("forced.onnx").exists()


def test_paths_in_messages_are_shortened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inside = tmp_path / "sub" / "net.py"
    assert shorten(str(inside)) == "sub/net.py"
    assert shorten("/home/somebody/net.py") == "net.py"
    text = f'File "{inside}", line 3; see /home/somebody/net.py:7, C:\\Users\\me\\net.py and https://x.org/a/b.py'
    shown = 'File "sub/net.py", line 3; see net.py:7, net.py and https://x.org/a/b.py'
    assert shorten_paths(text) == shown
    assert (quoted("m.onnx"), quoted("my model.onnx")) == ("m.onnx", '"my model.onnx"')
    finding = Finding(code="AS110", name="capture-refused", what="it stops.", why=text, where=f"{inside}:3")
    assert finding.why == shown and finding.where == "sub/net.py:3"
