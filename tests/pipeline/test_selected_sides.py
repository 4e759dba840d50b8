"""Branches on values inside loops over a size: both sides run, and the value selects."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import anyshape
from anyshape.intercept.selected_sides import SelectedSides, has_sides_to_select


class BothSides(nn.Module):
    def forward(self, x):
        total = torch.zeros(6)
        for row in x:
            if row.sum() > 0:
                total = total + row
            else:
                total = total * 0.5
        return total


class OneSide(nn.Module):
    def forward(self, x):
        hidden, count = torch.zeros(6), 0
        for step in range(x.shape[0]):
            if x[step, 0] > 0 and not bool(x[step, 1] > 0):
                hidden = torch.tanh(hidden + x[step])
                count = count + 1
        return hidden, hidden * count


class Appends(nn.Module):
    def forward(self, x):
        out = []
        for step in range(x.shape[0]):
            if x[step].max() > 1:
                out.append(x[step] * 2)
            else:
                out.append(-x[step])
        return torch.stack(out)


class WritesElements(nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        for step in range(x.shape[0]):
            if x[step].sum().item() > 0.5:
                out[step] = x[step] * 2
        return out


class Continues(nn.Module):
    def forward(self, x):
        hidden = torch.zeros(6)
        for step in range(x.shape[0]):
            if x[step].sum() > 2:
                continue
            part = x[step] * 3
            hidden = torch.tanh(hidden + part)
        return hidden


class AddsInPlace(nn.Module):
    def forward(self, x):
        total = torch.zeros(6)
        same = total
        for row in x:
            if row.sum() > 0:
                total += row
        return same * 1


class Conditional(nn.Module):
    def forward(self, x):
        best = x[0]
        for step in range(1, x.shape[0]):
            best = x[step] if x[step].sum() > best.sum() else best
        return best


MODULES = [BothSides, OneSide, Appends, WritesElements, Continues, AddsInPlace, Conditional]


@pytest.mark.parametrize("module", MODULES)
def test_selecting_gives_what_the_module_gives(module) -> None:
    made = module()
    selected = SelectedSides(made)
    assert has_sides_to_select(made)
    for n in (1, 2, 5, 9):
        x = torch.randn(n, 6)
        torch.testing.assert_close(selected(x), made(x))


@pytest.mark.parametrize("module", MODULES)
def test_the_loop_is_rolled_up(module, tmp_path) -> None:
    made = module()
    result = anyshape.export(made, lambda n=5: {"x": torch.randn(n, 6)}, tmp_path / "m.onnx", where=["n <= 40"])
    assert result.contract.status == "kept"
    assert result.strategy == "rerolled"
    loaded = anyshape.load(tmp_path / "m.onnx")
    for n in (1, 2, 7, 40):
        x = torch.randn(n, 6)
        expected = made(x)
        actual = loaded(x=x.numpy())
        pairs = zip(actual, expected, strict=True) if isinstance(expected, tuple) else [(actual, expected)]
        for one, other in pairs:
            torch.testing.assert_close(torch.as_tensor(one), other, rtol=1e-4, atol=1e-5)


class Leaves(nn.Module):
    def forward(self, x):
        for row in x:
            if row.sum() > 0:
                return row
        return x[0] * 0


class WritesBefore(nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        for step in range(x.shape[0]):
            if x[step].sum() > 0:
                out[step] = x[step]
                out[step] = out[step] * 2
        return out


class WritesAtNewPlace(nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        for step in range(x.shape[0]):
            if x[step].sum() > 0:
                place = x.shape[0] - 1 - step
                out[place] = x[step]
        return out


class OutsideOfLoops(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            x = x * 2
        return x


class Pops(nn.Module):
    def forward(self, x):
        rows = list(x)
        last = x[0]
        for _ in range(x.shape[0]):
            if last.sum() > 0:
                last = rows.pop()
        return last


@pytest.mark.parametrize("module", [Leaves, WritesBefore, WritesAtNewPlace, OutsideOfLoops, Pops])
def test_sides_that_do_more_are_not_selected(module) -> None:
    assert not has_sides_to_select(module())


class OtherShapes(nn.Module):
    def forward(self, x):
        found = x[0]
        for row in x:
            if row.sum() > 0:
                found = row[:3]
        return found.sum()


def test_sides_of_different_shapes_are_an_error() -> None:
    with pytest.raises(RuntimeError, match="different shapes"):
        SelectedSides(OtherShapes())(torch.ones(3, 6))
