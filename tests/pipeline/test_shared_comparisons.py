"""Comparisons in shares: a plan travels, shares are made with the source loaded anew, and give the verdict of the whole."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.pages import Reader

from anyshape.batch import ray_cluster
from anyshape.batch.model_files import Travelling

MODEL = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.seed()  # other weights each time
        self.head = torch.nn.Linear(8, 5)
        self.register_buffer("scale", torch.rand(5), persistent=False)
    def forward(self, ids, x):
        return self.head(x) * self.scale + ids[..., None]
def model():
    return Net()
def inputs(batch=3, seq=5):
    return dict(ids=torch.randint(0, 9, (batch, seq)), x=torch.randn(batch, seq, 8))
where = ["1 <= batch <= 64"]
"""
SHARES = 3


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(MODEL)
    return Reader(tmp_path)


@pytest.fixture
def spread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """In place of a cluster: shares in a folder with the files that travel, one after the other. Gives their verdicts."""
    verdicts: list[Any] = []

    def run(address: str, travelling: Travelling, function: Callable[..., Any], call: Any, **_: Any) -> list[Any]:
        folder = tmp_path / f"worker{len(verdicts)}"
        for name, path in travelling.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / name)
        call = pickle.loads(pickle.dumps(call))
        with monkeypatch.context() as there:
            there.chdir(folder)
            made = [function(call, (place, SHARES)) for place in range(SHARES)]
        verdicts.extend(made)
        return made

    monkeypatch.setattr(ray_cluster, "spread", run)
    return verdicts


def export(reader: Reader, more: str = "") -> dict[str, Any]:
    return json.loads(reader.run_console(f"anyshape export net.py -o m.onnx --verify quick --json -q {more}"))


def test_an_export_is_compared_in_shares_with_the_weights_that_it_has(reader: Reader, spread: list[Any]) -> None:
    here = export(reader)
    assert spread == []
    there = export(reader, "--ray local")
    assert reader.status == 0 and len(spread) == SHARES
    assert all(share.passed and share.trials for share in spread)
    assert there["verdict"]["trials"] == here["verdict"]["trials"] == sum(share.trials for share in spread)
    assert there["verdict"]["tried"] == here["verdict"]["tried"]
    assert there["contract"]["dims"] == here["contract"]["dims"]


def test_a_worker_that_has_another_model_decides_nothing(
    reader: Reader, spread: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anyshape.cli.late_options._put_weights", lambda module, path: None)
    there = export(reader, "--ray local")
    assert reader.status == 0 and there["kept"]
    assert spread and not any(share.passed for share in spread)
    assert there["verdict"]["trials"] and not there["verdict"]["failures"]


def test_an_edited_model_is_compared_here_where_it_is(reader: Reader, spread: list[Any]) -> None:
    assert export(reader, "--ray local --repair")["kept"]
    assert spread == []


def test_a_check_in_shares_has_the_same_verdict(reader: Reader, spread: list[Any]) -> None:
    Path("net.py").write_text(MODEL.replace("torch.seed()", "torch.manual_seed(0)"))
    export(reader)
    check = "anyshape check m.onnx --model net.py --json -q"
    here, there = (json.loads(reader.run_console(f"{check} {more}"))["verdict"] for more in ("", "--ray local"))
    assert len(spread) == SHARES
    assert {**here, "seconds": 0} == {**there, "seconds": 0}


@pytest.mark.thorough
def test_an_export_on_a_real_ray_cluster(reader: Reader) -> None:
    pytest.importorskip("ray")
    command = [sys.executable, "-m", "anyshape", "export", "net.py", "-o", "m.onnx", "--verify", "quick", "--json"]
    here, there = (
        subprocess.run([*command, *more], capture_output=True, check=True, text=True)
        for more in ([], ["--ray", "local"])
    )
    assert "comparing on the cluster" in there.stderr and "comparing on the cluster" not in here.stderr
    assert "anyshape: comparing 0/" not in there.stderr  # nothing was compared here
    verdicts = [json.loads(each.stdout)["verdict"] for each in (here, there)]
    assert verdicts[0]["tried"] == verdicts[1]["tried"] and verdicts[0]["trials"] == verdicts[1]["trials"]
