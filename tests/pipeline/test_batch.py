"""Batches of real processes: failures are rows, a kill loses nothing, and what is done is not done again.

`benchmarks/batch` does the same with forty models and on a Ray cluster.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from anyshape.batch import Batch, export_many

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills by signals")

SLEEP = "SLEEP = 'import time; time.sleep(1000)'\n"
NOTE = 'with open("runs.txt", "a") as runs:\n    runs.write("{name} ")\n'
LINEAR = """
import torch
import layer
def model(): return torch.nn.Linear(layer.WIDTH, 3)
def inputs(batch=3): return torch.randn(batch, layer.WIDTH)
"""
MODELS = {
    "crashing": "import os\nos.abort()",
    "hanging": SLEEP
    + "import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', SLEEP, __file__])\ntime.sleep(1000)",
    "hungry": "held = []\nwhile True: held.append(bytearray(10**7))",
    "undefined": "def model(): pass",
    "raising": "raise RuntimeError('no weights here')",
    "linear": LINEAR,
}
OUTCOMES = ["crashed", "hung", "out of memory", "refused", "refused", "kept"]
CODES = ["AS541", "AS542", "AS543", "AS034", "AS034", None]


@pytest.fixture
def manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "layer.py").write_text("WIDTH = 4\n")
    tables = ['[defaults]\nverify = "quick"\nmemory_limit = "1GB"\n']
    for name, text in MODELS.items():
        (tmp_path / f"{name}.py").write_text(NOTE.format(name=name) + text)
        limit = "15s" if name == "hanging" else "100s"
        tables.append(f'[[model]]\nsource = "{name}.py"\ntime_limit = "{limit}"\n')
    path = tmp_path / "models.toml"
    path.write_text("\n".join(tables))
    return path


def start(manifest: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "anyshape", "batch", manifest.name, "-o", "out", "--jobs", "2", "--json"]
    return subprocess.Popen(command, cwd=manifest.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for_rows(process: subprocess.Popen[bytes], count: int) -> None:
    deadline = time.monotonic() + 120
    while len(list(Path("out").glob("*/row.json"))) < count:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)


def runs() -> Counter[str]:
    return Counter(Path("runs.txt").read_text().split())


def is_any_left() -> bool:
    """Whether a process of these models, or one that they started, still runs."""
    lines = subprocess.run(["ps", "-eo", "stat,args"], capture_output=True, text=True, check=True).stdout.splitlines()
    here = str(Path.cwd())
    return any(here in line and not line.startswith("Z") for line in lines)


def wait_until_none_is_left() -> None:
    deadline = time.monotonic() + 20
    while is_any_left():
        assert time.monotonic() < deadline, "processes are left"
        time.sleep(0.1)


@pytest.mark.slow
def test_a_killed_batch_goes_on_and_every_failure_is_a_row(manifest: Path) -> None:
    for number, count, status in ((signal.SIGKILL, 1, -9), (signal.SIGINT, 2, 130)):
        process = start(manifest)
        wait_for_rows(process, count)
        process.send_signal(number)
        process.communicate()
        assert process.returncode == status
        wait_until_none_is_left()
        assert not list(Path("out").rglob(".anyshape-*"))
    done, before = {each.parent.name for each in Path("out").glob("*/row.json")}, runs()
    process = start(manifest)
    printed, said = process.communicate()
    assert process.returncode == 2, said  # the worst: a model file without inputs
    assert not any((runs() - before)[name] for name in done), "what was done was done again"
    rows = json.loads(printed)["rows"]
    assert [row["name"] for row in rows] == list(MODELS)
    assert [row["outcome"] for row in rows] == OUTCOMES
    assert [(row["finding"] or {}).get("code") for row in rows] == CODES
    assert [json.loads(line) for line in Path("out/results.jsonl").read_text().splitlines()] == rows
    assert Path("out/linear/model.onnx").is_file() and not Path("out/hungry/model.onnx").exists()
    assert [each.name for each in Path("out/.work").iterdir()] == ["lock"]
    assert "hanging.py:6, in <module>" in Path("out/summary.md").read_text()
    assert not is_any_left()
    _check_what_is_done_again(manifest)


def _check_what_is_done_again(manifest: Path) -> None:
    """Nothing that is as it was; a failure if it is asked for, or gets more time."""
    before = runs()
    assert export_many(manifest, "out").reused == len(MODELS)
    read = json.loads(Path("out/linear/row.json").read_text())["read"]
    assert {Path(each).name for each in read} == {"linear.py", "layer.py"}
    given = {"verify": "quick", "memory_limit": "1GB"}
    assert export_many(["crashing.py"], "out", time_limit="100s", **given).reused == 1
    assert runs() == before
    assert export_many(["crashing.py"], "out", time_limit="100s", retry_failed=True, **given).reused == 0
    assert export_many(["undefined.py"], "out", time_limit="101s", **given).reused == 0
    assert runs() - before == Counter(crashing=1, undefined=1)


@pytest.mark.thorough
def test_a_ray_cluster_gives_the_same_rows(manifest: Path) -> None:
    ray = pytest.importorskip("ray")
    here: Batch = export_many(manifest, "here", jobs=2)
    try:
        there = export_many(manifest, "there", ray="local")
    finally:
        ray.shutdown()
    assert [row.outcome for row in there.rows] == [row.outcome for row in here.rows] == OUTCOMES
    assert Path("here/linear/model.onnx").read_bytes() == Path("there/linear/model.onnx").read_bytes()
    assert export_many(manifest, "there", jobs=2).reused == len(MODELS)


@pytest.mark.thorough
def test_comparisons_on_a_ray_cluster_give_the_same_verdict(manifest: Path) -> None:
    pytest.importorskip("ray")
    command = [sys.executable, "-m", "anyshape"]
    subprocess.run([*command, "export", "linear.py", "-o", "m.onnx", "-q", "--verify", "quick"], check=True)
    check = [*command, "check", "m.onnx", "--model", "linear.py", "--json", "-q"]
    here, there = (
        json.loads(subprocess.run([*check, *more], capture_output=True, check=True).stdout)["verdict"]
        for more in ([], ["--ray", "local"])
    )
    assert {**here, "seconds": 0} == {**there, "seconds": 0}
