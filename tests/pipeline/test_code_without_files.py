"""Models whose code has no file: `exec`, `python -c`, a pipe, TorchScript. What decides by sizes is watched nevertheless."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import anyshape

MODELS = {
    "a number": ("int(n) == 77", [77]),
    "a computed number": ("int(n) + 13 == K + 10", [77]),
    "a number in a nested function": ("(lambda m: m in (57, 88))(int(n))", [57, 88]),
    "a text": ("f'{n:04d}'.startswith('003')", [30, 39]),
    "a text backwards": ("str(n)[::-1] == '77'", [77]),
    "digits": ("sum(map(int, str(n))) == 16", [79, 88, 97]),
    "bits": ("int(n) & 31 == 31", [31, 63, 95]),
    "a key": ("int(n) in T", [77]),
    "a square": ("math.isqrt(int(n)) ** 2 == 81", [81, 99]),
    "rounded": ("round(int(n), -1) == 80", [75, 78, 85]),
    "a pair": ("(int(n), int(w)) in P", [40]),
    "a text of a pair": ("f'{n}-{w}' == '40-56'", [40]),
}
TEXT = """
import math
import torch
K, T, P = 80, {{77: 1}}, {{(40, 56): 1}}

def forward(x):
    n, w = x.shape
    return x * 2 if {condition} else x

class Model(torch.nn.Module):
    def forward(self, x):
        return forward(x)
"""


def made(condition: str) -> nn.Module:
    space: dict[str, Any] = {}
    exec(compile(TEXT.format(condition=condition), "<string>", "exec"), space)
    module: nn.Module = space["Model"]()
    return module


def inputs(n: int = 6, w: int = 8) -> torch.Tensor:
    return torch.rand(n, w)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.long_table
def test_a_branch_in_code_without_a_file_is_right_or_refused_with_its_line(name: str, tmp_path: Path) -> None:
    condition, sizes = MODELS[name]
    module = made(condition)
    try:
        anyshape.export(module, inputs, tmp_path / "m.onnx", where=["1 <= n <= 100", "1 <= w <= 60"])
    except anyshape.PromiseBroken as broken:
        assert "<string>:8" in str(broken)
        return
    loaded = anyshape.load(tmp_path / "m.onnx")
    for n in (1, 6, 29, 80, 100, *sizes):
        x = torch.rand(n, 56)
        torch.testing.assert_close(loaded(x), module(x), atol=1e-5, rtol=1e-4)


class Switched(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] == 77:
            return x * 2
        return x


class WithCompiledPart(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.jit.script(Switched())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) + 1  # type: ignore[no-any-return]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_compiled_part_is_named_and_never_called_proved(tmp_path: Path) -> None:
    module = WithCompiledPart()
    result = anyshape.export(module, inputs, tmp_path / "m.onnx", where=["1 <= n <= 100", "1 <= w <= 60"])
    (finding,) = result.findings
    assert finding.code == "AS161" and "torch.jit.script(Switched())" in str(finding.where)
    assert not result.contract.tested.capture_proved
    loaded = anyshape.load(tmp_path / "m.onnx")
    for n in (6, 76, 77, 78):
        x = torch.rand(n, 8)
        torch.testing.assert_close(loaded(x), module(x), atol=1e-5, rtol=1e-4)


SCRIPT = """
import torch, anyshape
class Model(torch.nn.Module):
    def forward(self, x):
        n = x.shape[0]
        return x * 2 if int(n) == 777 else x
def inputs(n=3): return torch.rand(n, 2)
anyshape.export(Model(), inputs, "m.onnx")
x = inputs(777)
assert torch.allclose(anyshape.load("m.onnx")(x), 2 * x)
print("right")
"""


@pytest.mark.parametrize("way", ["-", "-c"])
def test_a_program_without_a_file_is_exported_right(way: str, tmp_path: Path) -> None:
    given = {"input": SCRIPT} if way == "-" else {}
    command = [sys.executable, way, *([SCRIPT] if way == "-c" else [])]
    source = str(Path(anyshape.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": source}
    done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, env=environment, check=False, **given)
    assert done.stdout.strip().endswith("right"), done.stderr
