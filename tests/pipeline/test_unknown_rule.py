"""Refusals of the model: a rule, no rule, values; and what the contract and the file make of them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import anyshape
from anyshape.contract import find_contract
from anyshape.report.text import describe_inspection


class Cube(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        side = round(x.shape[0] ** (1 / 3))
        return x.view(side, side, side)


def numbers(n: int = 8) -> torch.Tensor:
    return torch.randn(n)


def quiet_session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options)


def test_without_a_rule_model_and_file_raise_at_the_sizes_that_the_contract_names(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    result = anyshape.export(Cube(), numbers, path)
    assert [finding.code for finding in result.findings][:1] == ["AS142"]
    contract = find_contract(path)
    assert contract is not None and {"n": 9} in contract.refused
    session = quiet_session(path)
    for sizes in contract.refused:
        with pytest.raises(Exception, match=r"[Rr]eshape"):
            session.run(None, {"x": np.zeros(sizes["n"], np.float32)})
    assert session.run(None, {"x": np.zeros(27, np.float32)})[0].shape == (3, 3, 3)
    assert "rule    unknown: model and file raise at n=2" in describe_inspection(contract, "m.onnx", True)


def test_a_square_is_a_rule(tmp_path: Path) -> None:
    class Square(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            side = round(x.shape[0] ** 0.5)
            return x.view(side, side)

    result = anyshape.export(Square(), lambda n=9: torch.randn(n), tmp_path / "m.onnx")
    assert "isqrt(n)*isqrt(n) == n" in [str(relation) for relation in result.contract.domain.relations]
    session = quiet_session(tmp_path / "m.onnx")
    assert session.run(None, {"x": np.zeros(16, np.float32)})[0].shape == (4, 4)
    with pytest.raises(Exception, match=r"anyshape"):
        session.run(None, {"x": np.zeros(15, np.float32)})


def test_a_bound_of_values_is_learned_and_no_size_is_called_refused(tmp_path: Path) -> None:
    class Bounded(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if (x > 2.5).any():
                raise ValueError("too large")
            return x * 2

    torch.manual_seed(0)
    result = anyshape.export(Bounded(), lambda n=5: torch.randn(n), tmp_path / "m.onnx")
    assert result.contract.values == {"x": "x <= 2.5"}
    assert not result.contract.refused


def test_a_table_of_one_size_is_named(tmp_path: Path) -> None:
    class Patches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pos = nn.Parameter(torch.randn(16, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.avg_pool2d(x, 4).flatten(2).transpose(1, 2) + self.pos

    with pytest.raises(anyshape.PromiseBroken, match=r"'pos', which the model holds with shape \[16, 3\]"):
        anyshape.export(Patches(), lambda h=16, w=16: torch.randn(1, 3, h, w), tmp_path / "m.onnx")


def test_a_declared_range_is_a_promise_also_with_one_end(tmp_path: Path) -> None:
    class Pairs(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.view(-1, 4).sum(1)

    with pytest.raises(anyshape.PromiseBroken, match="answers only where n % 4 == 0"):
        anyshape.export(Pairs(), lambda n=8: torch.randn(n), tmp_path / "m.onnx", where=["n >= 4"])


def test_what_accept_narrower_leaves_out_the_file_refuses_as_well(tmp_path: Path) -> None:
    class Head(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.view(3, -1) * 2

    path = tmp_path / "m.onnx"
    result = anyshape.export(Head(), lambda n=6: torch.randn(n), path, where=["1 <= n <= 60"], accept_narrower=True)
    session = quiet_session(path)
    for n in range(1, 20):
        if result.contract.domain.contains({"n": n}):
            assert session.run(None, {"x": np.zeros(n, np.float32)})[0].shape == (3, n // 3)
        else:
            with pytest.raises(Exception, match="anyshape"):
                session.run(None, {"x": np.zeros(n, np.float32)})


class RefusesAt(nn.Module):
    """Refuses sizes below 4, and one more by an index, which is no condition of a capture."""

    def __init__(self, called: list[int], refused: int | None = None) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 4)
        self.register_buffer("index", torch.zeros(100_000, dtype=torch.int64))
        if refused is not None:
            self.index[refused] = 5
        self.note = called.append  # a bound method is no state

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_compiling():
            self.note(int(x.shape[-1]))
        size = torch.ones(1)[self.index[x.shape[-1]].reshape(1)]
        return self.conv(x) * size


def stages_of(module: nn.Module, called: list[int]) -> tuple[list[str], dict[str, int]]:
    """The stages of an export, and how often the module had been called when each began."""
    stages: list[str] = []
    calls: dict[str, int] = {}

    def progress(stage: str, done: int, total: int) -> None:
        if done == 0:
            stages.append(stage)
            calls.setdefault(stage, len(called))

    with contextlib.suppress(anyshape.PromiseBroken):
        anyshape.export(module, lambda t=9: torch.randn(1, 2, t), progress=progress, isolate=False)
    return stages, calls


def test_where_the_model_refuses_what_learned_rules_admit_they_are_learned_again_before_other_rungs() -> None:
    called: list[int] = []
    _, calls = stages_of(RefusesAt(called), called)
    tried = set(called[: calls["comparing"]])
    compared = [size for size in called[calls["comparing"] :] if size not in tried]
    stages, _ = stages_of(RefusesAt(called, compared[0]), called)
    assert [stage for stage in stages if stage.startswith(("trying", "capturing"))][:4] == [
        "trying the model",
        "capturing (symbolic)",
        "trying the model",
        "capturing (symbolic)",
    ]
