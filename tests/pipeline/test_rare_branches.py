"""Conditions behind conditions: every way that the user's code takes at some size is seen, however rare or far it is."""

import contextlib
import itertools

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import anyshape


class RaisesFarAway(nn.Module):
    def forward(self, x):
        n = int(x.shape[0])
        if n > 4500 and n % 7 == 3:
            raise ValueError("far")
        return x + n


class RaisesRarely(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        if n > 40 and n % 7 == 3 and n % 11 == 5:
            raise ValueError("rare")
        return x + n


class RaisesRarelyInTwoDims(nn.Module):
    def forward(self, x):
        n, m = x.shape
        if n > 20 and m % 7 == 3 and (n * m) % 13 == 5:
            raise ValueError("rare")
        return x + n


class DoublesFarAway(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        if n > 4500 and n % 7 == 3:
            x = x * 2
        return x + n


class DoublesRarely(nn.Module):
    def forward(self, x):
        n, m = x.shape
        if n > 20 and m % 7 == 3 and (n * m) % 13 == 5:
            x = x * 2
        return x + n


def _answers_of(session, model, x):
    feeds = {session.get_inputs()[0].name: x.numpy()}
    try:
        expected = model(x).numpy()
    except ValueError:
        expected = None
    try:
        actual = session.run(None, feeds)[0]
    except Exception:
        actual = None
    return expected, actual


@pytest.mark.parametrize(
    ("model", "points"),
    [
        (RaisesFarAway(), [(n,) for n in (*range(4490, 4540), *range(9000, 9040))]),
        (RaisesRarely(), [(n,) for n in range(1, 500)]),
        (RaisesRarelyInTwoDims(), [*itertools.product(range(15, 30), range(30, 60))]),
        (DoublesFarAway(), [(n,) for n in (*range(4490, 4540), *range(9000, 9040))]),
        (DoublesRarely(), [*itertools.product(range(15, 30), range(30, 60))]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_a_file_is_right_on_every_side_of_every_condition(model, points, tmp_path):
    dims = "n" if len(points[0]) == 1 else "n m"
    path = tmp_path / "m.onnx"
    exported = anyshape.export(model, (torch.randn(*[8] * len(points[0])),), path, dynamic={"x": dims})
    session = onnxruntime.InferenceSession(path)
    inside = 0
    for point in points:
        promised = exported.contract.domain.contains(dict(zip(dims.split(), point, strict=True)))
        expected, actual = _answers_of(session, model, torch.randn(*point))
        assert promised == (expected is not None)
        assert (actual is not None) == promised
        if promised:
            inside += 1
            np.testing.assert_allclose(actual, expected, rtol=1e-5)
    assert inside > len(points) / 2


def test_a_rule_that_guards_show_is_told_exactly_where_a_declared_range_breaks_it(tmp_path):
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(RaisesRarely(), (torch.randn(8),), tmp_path / "m.onnx", dynamic={"x": "n"}, where=["n <= 9000"])
    assert "n <= 40 or n % 7 != 3 or n % 11 != 5" in str(broken.value)


class ByValueAtManyRows(nn.Module):
    def forward(self, x):
        if x.shape[0] > 40 and bool((x == 1).all()):
            return x * 2
        return x


def test_a_branch_on_values_that_only_some_sizes_come_to_is_refused() -> None:
    with pytest.raises(anyshape.PromiseBroken, match="AS111") as broken:
        anyshape.export(ByValueAtManyRows(), lambda n=4: torch.randn(n, 5))
    assert "x.shape[0] > 40 and bool((x == 1).all())" in broken.value.finding.where.text  # type: ignore[union-attr]


class AddsWhereItFits(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(5, 2))

    def forward(self, x):
        with contextlib.suppress(RuntimeError):
            x = x * self.table
        return x.sum(0)


def test_shapes_that_broadcast_at_few_sizes_are_right_at_each(tmp_path):
    model = AddsWhereItFits()
    result = anyshape.export(model, lambda n=3: torch.randn(n, 2), tmp_path / "m.onnx")
    assert result.strategy == "symbolic" and result.contract.tested.capture_proved
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for n in (1, 2, 4, 5, 6, 10, 50):
        x = torch.randn(n, 2)
        np.testing.assert_allclose(
            session.run(None, {"x": x.numpy()})[0], model(x).detach().numpy(), rtol=1e-4, atol=1e-5
        )
