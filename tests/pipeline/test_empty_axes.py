"""Axes that may be empty at some sizes of the domain: the mean of nothing is NaN, as in torch."""

from __future__ import annotations

import onnx
import pytest
import torch
from torch import nn

import anyshape


class MeanOfSteps(nn.Module):
    def forward(self, x):
        steps = x[:, 1:] - x[:, :-1]
        last = steps.transpose(1, 2).mean(-1)
        return steps.mean(1), last, steps.mean((0, 1), keepdim=True), steps.mean(), *torch.var_mean(steps, 1)


class MeanOfSelected(nn.Module):
    def forward(self, x):
        return x[x > 0].mean()


def operators(path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_the_mean_over_an_axis_that_may_be_empty_is_nan_there(tmp_path, dtype) -> None:
    result = anyshape.export(
        MeanOfSteps(), lambda b=3, t=5: torch.randn(b, t, 4).to(dtype), tmp_path / "m.onnx", where=["1 <= t <= 64"]
    )
    assert result.verdict.passed
    mean = anyshape.load(tmp_path / "m.onnx")(x=torch.randn(2, 1, 4).to(dtype))
    assert all(torch.as_tensor(value).isnan().all() for value in mean)


def test_the_mean_of_a_selection_that_may_be_empty(tmp_path) -> None:
    assert anyshape.export(MeanOfSelected(), lambda n=9: torch.randn(n), tmp_path / "m.onnx").verdict.passed
    assert "ReduceMean" not in operators(tmp_path / "m.onnx")


def test_a_mean_that_always_has_elements_is_one_node(tmp_path) -> None:
    anyshape.export(MeanOfSteps(), lambda b=3, t=5: torch.randn(b, t, 4), tmp_path / "m.onnx", where=["2 <= t"])
    assert operators(tmp_path / "m.onnx").count("ReduceMean") == 4


def test_a_dim_that_may_be_zero_counts_too(tmp_path) -> None:
    class Mean(nn.Module):
        def forward(self, x):
            return x.mean(0)

    assert anyshape.export(Mean(), lambda n=9: torch.randn(n, 3), tmp_path / "m.onnx", where=["0 <= n"]).verdict.passed
    assert "ReduceMean" not in operators(tmp_path / "m.onnx")


class MeansSoFar(nn.Module):
    def forward(self, x):
        means = x.new_zeros(x.shape[0], x.shape[1])
        for step in range(1, x.shape[1]):
            means[:, step] = x[:, :step].mean((1, 2))
        return means


def test_a_mean_over_what_a_loop_has_seen_so_far() -> None:
    assert anyshape.export(MeansSoFar(), lambda b=2, t=6: torch.randn(b, t, 3)).strategy == "rerolled"


class FirstStep(nn.Module):
    def forward(self, x, past):
        if past.shape[1] == 0:
            return x * 2
        return x + past.mean(1, keepdim=True)


class NothingGiven(nn.Module):
    def forward(self, x, past):
        if past.numel() > 0:
            return x - past.amax(1, keepdim=True)
        return torch.ones_like(x)


class ThreeCases(nn.Module):
    def forward(self, x, past):
        if past.shape[1] == 0:
            return x + 5
        if past.shape[1] == 1:
            return x * past
        return x - past.sum(1, keepdim=True)


@pytest.mark.parametrize(
    "module", [FirstStep(), NothingGiven(), ThreeCases()], ids=lambda module: type(module).__name__
)
def test_a_branch_on_an_empty_axis_is_captured_and_proved(tmp_path, module) -> None:
    def inputs(batch=3, past=4):
        return torch.randn(batch, 6), torch.randn(batch, past)

    result = anyshape.export(module, inputs, tmp_path / "m.onnx", where=["0 <= past"])
    assert result.strategy == "symbolic" and not result.findings
    loaded = anyshape.load(tmp_path / "m.onnx")
    for past in (0, 1, 2, 9):
        x, state = inputs(2, past)
        torch.testing.assert_close(torch.as_tensor(loaded(x=x, past=state)), module(x, state))


class Losses(nn.Module):
    def forward(self, x, y):
        return nn.functional.mse_loss(x, y), nn.functional.huber_loss(x, y), nn.functional.l1_loss(x, y)


def test_the_loss_of_nothing_is_nan() -> None:
    def inputs(batch=2, n=4):
        return torch.randn(batch, n), torch.rand(batch, n)

    result = anyshape.export(Losses(), inputs, where=["1 <= batch <= 4", "0 <= n <= 9"])
    loaded = anyshape.load(result.model_proto.SerializeToString())
    for n in (0, 1, 9):
        given = inputs(3, n)
        torch.testing.assert_close(tuple(map(torch.as_tensor, loaded(*given))), Losses()(*given), equal_nan=True)


class OthersOfEach(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        alike = x @ x.T
        return alike[~torch.eye(n, dtype=torch.bool)].view(n, n - 1), x.reshape(n * 2, 2)


def test_a_matrix_without_its_diagonal_has_no_column_left_at_one_row(tmp_path) -> None:
    anyshape.export(OthersOfEach(), lambda n=5: torch.randn(n, 4), tmp_path / "m.onnx", where=["1 <= n <= 64"])
    others, _ = anyshape.load(tmp_path / "m.onnx")(x=torch.randn(1, 4))
    assert others.shape == (1, 0)
    nodes = [node for node in onnx.load(tmp_path / "m.onnx").graph.node if node.op_type == "Reshape"]
    names = {node.output[0] for node in nodes if any(each.name == "allowzero" and each.i for each in node.attribute)}
    assert names == {"output.0"}
