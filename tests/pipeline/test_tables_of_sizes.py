"""Tables whose keys are made of several sizes: the file is compared at each key."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import anyshape
from anyshape.explore import find_unfollowed
from anyshape.inputs import declare
from anyshape.modules.unfollowed_uses import watch_uses

GRID = {(8, 8): 1.5, (33, 77): 0.5}


class Scaled(nn.Module):
    """Multiplies by what a function of the sizes looks up."""

    def __init__(self, look_up):
        super().__init__()
        self.look_up = look_up

    def forward(self, x):
        return x * self.look_up(*x.shape)


def by_pair(rows, columns):
    return GRID.get((rows, columns), 1.0)


def by_halves(rows, columns):
    return {(4, 9): 3.0, (10, 40): 5.0}.get((rows + 1, columns // 2), 1.0)


def by_text(rows, columns):
    return 2.0 if f"{rows}x{columns}" in ["31x50", "7-91"] else 1.0


def by_product(rows, columns):
    return 3.0 if rows * columns in {150, 441} else 1.0


def inputs(rows=2, columns=6):
    return torch.randn(rows, columns)


@pytest.mark.parametrize(
    ("look_up", "key"),
    [(by_pair, (33, 77)), (by_halves, (9, 80)), (by_text, (31, 50)), (by_product, (1, 150)), (by_product, (25, 6))],
)
def test_sizes_of_a_key_are_found(look_up, key) -> None:
    module = Scaled(look_up)

    def watch(sizes):
        return watch_uses(lambda: module(inputs(**sizes)))

    found = find_unfollowed(declare(module, inputs), watch, lambda sizes: True)
    assert {"rows": key[0], "columns": key[1]} in found["columns"].at_keys


@pytest.mark.parametrize("look_up", [by_pair, by_product])
def test_a_table_that_a_file_does_not_have_is_refused_with_its_line(look_up, tmp_path) -> None:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(Scaled(look_up), inputs, tmp_path / "m.onnx")
    assert f"in {look_up.__name__}:" in str(broken.value)


class KeyedByBoth(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gains = {(20, 30): 0.5, (30, 20): 2.0}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gains.get((x.shape[0], x.shape[1]), 1.0)


def test_a_difference_at_an_entry_is_told_as_the_look_up_and_its_key() -> None:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        anyshape.export(KeyedByBoth(), lambda rows=3, columns=5: torch.randn(rows, columns))
    finding = broken.value.finding
    assert finding.code == "AS101" and "self.gains.get" in finding.where.text
    assert "20, 30" in finding.why and "rows == 20 and columns == 30" in finding.fix
