"""The last rung: torch's TorchScript exporter, verified like the others and refused where it froze something."""

from __future__ import annotations

import contextlib

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import anyshape


class Stepwise(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for step in range(x.size(1)):
            if bool(x[:, step].sum() > 0):
                x = x + step
            else:
                x = x - 1
        return x


class Around(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.inner = nn.Linear(4, 4), torch.jit.script(Stepwise())

    def forward(self, x):
        return self.inner(self.linear(x))


class Counted(nn.Module):
    def forward(self, x):
        return x.view(int(x.shape[0]) * 2, -1)


@pytest.mark.parametrize("make", [lambda: torch.jit.script(Stepwise()), Around], ids=["whole", "part"])
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_scripted_module_keeps_its_control_flow(make, tmp_path) -> None:
    path = tmp_path / "m.onnx"
    model = make()
    result = anyshape.export(model, lambda b=2: torch.randn(b, 4), path)
    assert result.strategy == "legacy" and not result.contract.tested.capture_proved
    session = onnxruntime.InferenceSession(str(path))
    for offset in (-2.0, 0.0, 2.0):
        x = torch.randn(5, 4) + offset
        (actual,) = session.run(None, {"x": x.numpy()})
        np.testing.assert_allclose(actual, model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", [Counted(), Stepwise()], ids=["a size made an int", "a branch on values"])
def test_what_tracing_freezes_is_refused_with_its_line(model) -> None:
    with pytest.raises(anyshape.PromiseBroken) as caught:
        anyshape.export(model, lambda b=2: torch.randn(b, 4), strategy="legacy")
    assert caught.value.finding.code == "AS118" and caught.value.finding.where is not None


def test_a_plain_model_is_right_by_this_rung_too(tmp_path) -> None:
    result = anyshape.export(nn.Linear(4, 3), lambda b=2: torch.randn(b, 4), tmp_path / "m.onnx", strategy="legacy")
    assert result.strategy == "legacy" and sorted(result.model.graph.initializers)[:2] != []
    assert anyshape.load(tmp_path / "m.onnx")(torch.randn(7, 4)).shape == (7, 3)


class Caught(nn.Module):
    """The error of an operator leaves torch's tracer behind in a state that ends the process."""

    def forward(self, x):
        with contextlib.suppress(RuntimeError):
            x = x + torch.ones(7)
        return x * 2


def test_a_process_that_the_tracer_ends_is_a_finding_of_this_rung() -> None:
    with pytest.raises(anyshape.PromiseBroken) as caught:
        anyshape.export(Caught(), lambda b=2: torch.randn(b, 4), strategy="legacy")
    assert [attempt.strategy for attempt in caught.value.attempts] == ["legacy"]
    assert caught.value.finding.code == "AS160" and "SIGSEGV" in caught.value.finding.what
