"""Execution providers: the ones that are asked for run the file, or an error names the one that does not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import anyshape
from anyshape.findings import UsageError
from anyshape.runtime import ChildRunner
from anyshape.runtime import session as providers
from anyshape.runtime.child_messages import RuntimeRejected
from anyshape.runtime.session import CPU, started_providers

CUDA = "CUDAExecutionProvider"


def inputs(batch: int = 3) -> torch.Tensor:
    return torch.randn(batch, 4)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("providers") / "m.onnx"
    anyshape.export(torch.nn.ReLU(), inputs, found, verify="quick")
    return found


def test_the_cpu_starts() -> None:
    assert started_providers([CPU]) == [CPU]
    assert providers.check_providers(None) == providers.check_providers([CPU]) == (CPU,)


def test_a_provider_that_does_not_start_is_an_error_everywhere(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "available_providers", lambda: [CUDA, CPU])
    if CUDA not in started_providers([CUDA, CPU]):  # on a machine without such a device
        with pytest.raises(UsageError, match="AS424"):
            anyshape.load(path, providers=[CUDA, CPU])
        with pytest.raises(UsageError, match="AS424"):
            anyshape.check(path, torch.nn.ReLU(), inputs, providers=[CUDA])


def test_a_file_is_checked_on_the_providers_that_are_given(path: Path) -> None:
    assert anyshape.check(path, torch.nn.ReLU(), inputs, providers=[CPU]).passed
    with pytest.raises(UsageError, match="AS422"):
        anyshape.check(path, torch.nn.ReLU(), inputs, providers=["NoSuchProvider"])


def test_a_child_opens_its_session_with_the_providers(path: Path) -> None:
    with (
        ChildRunner(path, providers=["NoSuchProvider"]) as runner,
        pytest.raises(RuntimeRejected, match="NoSuchProvider"),
    ):
        runner.run({"input": inputs().numpy()})
