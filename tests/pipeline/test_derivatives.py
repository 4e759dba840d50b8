"""Modules that differentiate, or map over an axis, inside `forward`."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import anyshape


class Gradient(nn.Module):
    def forward(self, x):
        return torch.func.grad(lambda y: (y**3).sum())(x)


class MappedToOtherAxes(nn.Module):
    def forward(self, x):
        return torch.vmap(lambda row: (row.cumsum(0), row.max()), out_dims=(1, 0))(x)


class _OfNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


class GradientOfEachRow(_OfNetwork):
    def forward(self, x):
        return torch.vmap(torch.func.grad(lambda row: self.net(row)[0]))(x)


class Jacobian(_OfNetwork):
    def forward(self, x):
        return torch.vmap(torch.func.jacrev(self.net))(x)


class Forces(_OfNetwork):
    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            energy = self.net(x).sum()
            (force,) = torch.autograd.grad(energy, x)
        return energy, -force


class Backward(_OfNetwork):
    def forward(self, x):
        with torch.enable_grad():
            y = x.detach().requires_grad_()
            self.net(y).sum().backward(inputs=[y])
            return y.grad


class GradientOfWeights(_OfNetwork):
    def forward(self, x):
        def loss(weights, row):
            return torch.func.functional_call(self.net, weights, (row,)).pow(2).sum()

        found = torch.vmap(torch.func.grad(loss), in_dims=(None, 0))(dict(self.net.named_parameters()), x)
        return found["0.weight"], found["2.bias"]


@pytest.mark.parametrize(
    "module", [Gradient, MappedToOtherAxes, GradientOfEachRow, Jacobian, Forces, Backward, GradientOfWeights]
)
def test_is_captured_with_symbols_and_proved(module, tmp_path) -> None:
    torch.manual_seed(0)
    made = module()
    result = anyshape.export(made, lambda n=6: {"x": torch.randn(n, 4)}, tmp_path / "m.onnx")
    assert result.strategy == "symbolic"
    assert not result.findings
    loaded = anyshape.load(tmp_path / "m.onnx")
    for n in (1, 2, 9, 40):
        x = torch.randn(n, 4)
        expected = made(x)
        actual = loaded(x=x.numpy())
        pairs = zip(actual, expected, strict=True) if isinstance(expected, tuple) else [(actual, expected)]
        for one, other in pairs:
            torch.testing.assert_close(torch.as_tensor(one), other.detach(), rtol=1e-4, atol=1e-5)


class Hessian(nn.Module):
    def forward(self, x):
        return torch.vmap(torch.func.hessian(lambda row: row.pow(3).sum()))(x)


def test_what_a_trace_below_autograd_lacks_is_refused_with_the_line(tmp_path) -> None:
    with pytest.raises(anyshape.PromiseBroken, match="AS110") as refused:
        anyshape.export(Hessian(), lambda n=6: {"x": torch.randn(n, 4)}, tmp_path / "m.onnx")
    assert refused.value.finding.where is not None
