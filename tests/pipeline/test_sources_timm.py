"""`timm:` where torchvision is missing, and with the stand-ins of tests/stand_ins in its place."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.stand_ins import FOLDER

pytest.importorskip("numpy")
HAS_TIMM = importlib.util.find_spec("timm") is not None
HAS_TORCHVISION = importlib.util.find_spec("torchvision") is not None
needs_timm = pytest.mark.skipif(not HAS_TIMM, reason="timm is not installed")


def run(arguments: list[str], folder: Path, *, with_stand_ins: bool) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own: stand-ins must not be seen by other tests."""
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(FOLDER)] if with_stand_ins else [])
    environment = {**os.environ, **({"PYTHONPATH": path} if with_stand_ins else {}), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-W", "ignore", "-m", "anyshape", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@needs_timm
@pytest.mark.skipif(HAS_TORCHVISION, reason="torchvision is installed")
def test_what_to_install_is_said_where_torchvision_is_missing(tmp_path: Path) -> None:
    done = run(["export", "timm:resnet18", "-o", "m.onnx"], tmp_path, with_stand_ins=False)
    assert done.returncode == 2
    assert "AS521" in done.stderr and "pip install torchvision" in done.stderr


@needs_timm
def test_a_name_that_timm_does_not_have_is_answered_with_the_nearest(tmp_path: Path) -> None:
    done = run(["export", "timm:resnett18", "-o", "m.onnx"], tmp_path, with_stand_ins=not HAS_TORCHVISION)
    assert done.returncode == 2
    assert "AS524" in done.stderr and "resnet18" in done.stderr


@needs_timm
def test_a_model_is_exported_into_a_folder_with_its_data_config(tmp_path: Path) -> None:
    rules = ["-w", "batch <= 2", "-w", "height <= 192", "-w", "width <= 192"]
    arguments = [
        "export",
        "timm:test_efficientnet",
        "--config-only",
        "-o",
        "out",
        "--json",
        "--verify",
        "quick",
        *rules,
    ]
    done = run(arguments, tmp_path, with_stand_ins=not HAS_TORCHVISION)
    assert done.returncode == 0, done.stderr[-800:]
    result = json.loads(done.stdout)
    assert result["kept"] and Path(result["path"]) == Path("out/model.onnx")
    settings = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))
    assert settings["pretrained_cfg"]["input_size"] == [3, 160, 160]
