"""enforce_values=True: the file itself refuses values outside the bounds of its contract, declared or learned."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from onnxscript import opset18 as op

import anyshape


class Last(torch.nn.Module):
    def forward(self, x, lengths):
        return x[torch.arange(x.shape[0]), lengths - 1]


class Pick(torch.nn.Module):
    def forward(self, x, index):
        return x[index]


class Rest(torch.nn.Module):
    def forward(self, x, groups):
        return x * (groups % 4)


class Signed(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x - 1


def inputs(batch=3, seq=5):
    return {"x": torch.rand(batch, seq, 4), "lengths": torch.randint(1, seq + 1, (batch,))}


def refuses(path: Path, **feeds: Any) -> bool:
    """Whether plain onnxruntime refuses the call for its values; any other error goes through."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options)
    try:
        session.run(None, {name: np.asarray(value) for name, value in feeds.items()})
    except Exception as error:
        if "anyshape AS421" not in str(error):
            raise
        return True
    return False


def test_declared_values_are_refused_by_the_file_and_only_where_asked(tmp_path: Path) -> None:
    values = {"x": "0 <= x <= 1", "lengths": "1 <= lengths <= seq"}
    path = tmp_path / "m.onnx"
    x = np.random.default_rng(0).random((2, 3, 4), np.float32)
    assert anyshape.export(Last(), inputs, path, values=values, enforce_values=True).is_kept
    assert not refuses(path, x=x, lengths=[1, 3])
    assert refuses(path, x=x, lengths=[0, 3])  # the model answers with the last step
    assert refuses(path, x=x + 1, lengths=[1, 3])
    assert anyshape.check(path, Last(), inputs).passed
    anyshape.export(Last(), inputs, path, values=values)
    assert not refuses(path, x=x + 1, lengths=[0, 3])


def test_learned_values_are_refused_by_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    example = (torch.rand(5, 3), torch.tensor([0, 2, 4]))
    dynamic = {"x": "rows 3", "index": "n"}
    result = anyshape.export(Pick(), example, path, dynamic=dynamic, enforce_values=True)
    assert result.contract.values == {"index": "0 <= index < rows"}
    x = np.zeros((4, 3), np.float32)
    assert not refuses(path, x=x, index=[0, 3])
    assert refuses(path, x=x, index=[-1, 3]) and refuses(path, x=x, index=[4])


def test_a_lowest_integer_that_comparing_found_is_refused_by_the_file(tmp_path: Path) -> None:
    def remainder(number: Any, divisor: int) -> Any:
        return op.Mod(number, op.Constant(value_int=divisor), fmod=1)  # right for numbers that are not negative

    def groups(n=3):
        return {"x": torch.randn(n), "groups": torch.randint(2, 9, (n,))}

    path = tmp_path / "m.onnx"
    with anyshape.translation("aten::remainder", remainder):
        result = anyshape.export(Rest(), groups, path, enforce_values=True)
    assert result.contract.values == {"groups": "groups >= 2"} and result.verdict.passed
    x = np.ones(2, np.float32)
    assert refuses(path, x=x, groups=[1, 5]) and not refuses(path, x=x, groups=[2, 5])
    assert anyshape.load(path)(x=x, groups=np.array([2, 5])).shape == (2,)


def test_a_model_that_decides_by_values_is_checked_once_and_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    result = anyshape.export(
        Signed(), lambda n=3: torch.rand(n) - 0.5, path, values={"x": "-1 <= x <= 1"}, enforce_values=True
    )
    names = [node.name or "" for node in result.model.graph.all_nodes()]
    assert result.strategy == "decided" and sum("AS421" in name for name in names) == 1
    assert refuses(path, x=np.full(2, 1.5, np.float32)) and not refuses(path, x=np.full(2, -0.5, np.float32))


def test_sizes_may_be_left_to_load_while_values_are_not(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    anyshape.export(
        torch.nn.ReLU(), lambda n=3: torch.rand(n), path, values={"input": "input >= 0"}, where="n <= 8",
        enforce="load", enforce_values=True,
    )  # fmt: skip
    assert not refuses(path, input=np.zeros(9, np.float32)) and refuses(path, input=-np.ones(2, np.float32))


@pytest.mark.parametrize("values", [None, "given"])
def test_nothing_to_enforce_is_a_note(values: Any) -> None:
    result = anyshape.export(torch.nn.ReLU(), lambda n=3: torch.rand(n), values=values, enforce_values=True)
    assert [finding.code for finding in result.findings] == ["AS067"]


def test_the_command_line_takes_the_option(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import torch\n"
        "def model(): return torch.nn.ReLU()\n"
        "def inputs(n=3): return torch.rand(n)\n"
        "values = {'input': 'input >= 0'}\n"
    )
    command = [sys.executable, "-m", "anyshape", "export", "model.py", "-o", "m.onnx", "--enforce-values", "--quiet"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=300)
    assert refuses(tmp_path / "m.onnx", input=-np.ones(2, np.float32))
