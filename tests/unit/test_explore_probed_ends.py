"""Where answers of a dear module end is found by few whole calls, and by calls that are stopped early."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from anyshape.explore import call_counter, costing, explore
from anyshape.explore.limits import is_doubling_dear
from anyshape.inputs import declare
from anyshape.intercept.operation_counts import raises_early
from anyshape.modules.raised_errors import find_table_rows
from anyshape.records.verdict import Refusal

ROWS = 300
FEW = 30


class Encoder(nn.Module):
    """Positions from a table, then products of matrices that take long, then a limit of its own."""

    def __init__(self, layers: int, width: int = 512, last: int = 1 << 20) -> None:
        super().__init__()
        self.positions = nn.Embedding(ROWS, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.last = last

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.positions(torch.arange(x.shape[1]))
        for layer in self.layers:
            x = torch.relu(layer(x))
        if x.shape[1] > self.last:
            raise ValueError(f"at most {self.last}")
        return x


def explored(
    module: nn.Module, width: int = 512, *, few: bool = False, example: tuple[int, int] = (2, 9)
) -> tuple[Any, list[Mapping[str, int]]]:
    declared = declare(module, lambda batch=example[0], seq=example[1]: {"x": torch.randn(batch, seq, width)})
    called: list[Mapping[str, int]] = []

    def try_sizes(sizes: Mapping[str, int]) -> Refusal | None:
        called.append(dict(sizes))
        try:
            with torch.no_grad():
                declared.call(module, declared.make(sizes, 0))
        except Exception as error:
            return Refusal(dict(sizes), str(error))
        return None

    return explore(declared, try_sizes, costing(module, declared), few=few), called


def rules(found: Any) -> list[str]:
    return [str(rule.condition) for rule in found.rules]


def test_the_end_of_a_dear_module_is_found_by_one_call_at_each_side() -> None:
    found, called = explored(Encoder(layers=24))
    assert rules(found) == [f"seq <= {ROWS}"]
    large = [sizes["seq"] for sizes in called if ROWS // 2 < sizes["seq"] <= ROWS]
    assert large == [ROWS]
    assert {"batch": 1, "seq": ROWS + 1} in called


def test_without_comparisons_no_whole_call_is_made_at_the_end_of_a_dear_module() -> None:
    found, called = explored(Encoder(layers=24), few=True)
    assert rules(found) == [f"seq <= {ROWS}"]
    assert not [sizes for sizes in called if ROWS // 2 < sizes["seq"] <= ROWS]


def test_a_dear_module_without_an_end_is_not_called_at_far_sizes() -> None:
    module = Encoder(layers=24)
    module.positions = nn.Embedding(5000, 512)
    found, called = explored(module)
    assert rules(found) == []
    assert max(max(sizes.values()) for sizes in called) < 300
    assert {tuple(untried.sizes) for untried in found.left_out} == {("batch", "seq")}


class LateTable(Encoder):
    """The table is read behind everything else."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[1]
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x + self.positions(torch.arange(length) + self.shift)

    def __init__(self, layers: int, shift: int) -> None:
        super().__init__(layers)
        self.shift = shift


@pytest.mark.parametrize("shift", [0, 2])
def test_the_end_of_a_table_that_is_read_late_in_a_call_is_found(shift: int) -> None:
    found, _ = explored(LateTable(layers=36, shift=shift))
    assert rules(found) == [f"seq <= {ROWS - shift}"]


def test_an_end_that_shows_late_in_a_call_is_found_by_whole_calls() -> None:
    found, _ = explored(Encoder(layers=10, last=40))
    assert rules(found) == ["seq <= 40"]


def test_a_small_module_is_called_at_far_sizes() -> None:
    module = Encoder(layers=1, width=8)
    declared = declare(module, lambda batch=2, seq=9: {"x": torch.randn(batch, seq, 8)})
    assert not is_doubling_dear(declared.domain, declared.example_sizes, costing(module, declared))
    found, called = explored(module, 8)
    assert rules(found) == [f"seq <= {ROWS}"]
    assert max(sizes["batch"] for sizes in called) >= 4096


class Caught(nn.Module):
    """Catches what is raised inside of it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        try:
            return x @ x
        except Exception:
            raise ValueError("caught") from None


@pytest.mark.parametrize("most", [1, 10**12])
def test_a_call_that_is_stopped_early_does_not_raise(most: int) -> None:
    assert not raises_early(lambda: Caught()(torch.ones(8, 8)), most, 75)


def test_a_call_with_millions_of_small_operators_is_stopped() -> None:
    """A loop in a loop over a large size: each operator is small, and there are millions."""
    done = 0

    def call() -> None:
        nonlocal done
        x = torch.ones(2)
        for _ in range(10**6):
            x = x + 1
            done += 1
        raise ValueError("late")

    assert not raises_early(call, 10**12, 75)
    assert done < 10**5


class Noting(TorchDispatchMode):
    """Notes the sizes of real results."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[torch.Size] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = func(*args, **(kwargs or {}))
        self.made += [given.shape] if given.device.type == "cpu" else []
        return given


def test_a_call_is_stopped_before_a_product_that_takes_more_than_is_left() -> None:
    one, other = torch.ones(300, 300), torch.ones(300, 70)
    for most, is_made in ((1_000_000, False), (1_000_000_000, True)):
        with Noting() as noting:
            assert not raises_early(lambda: one @ other, most, 75)
        assert (torch.Size([300, 70]) in noting.made) is is_made


def test_a_product_of_sizes_that_do_not_fit_raises_although_it_would_take_more_than_is_left() -> None:
    x = torch.ones(300, 300)
    assert raises_early(lambda: x @ x[:299], 1_000_000, 75)


def test_a_call_that_raises_early_does() -> None:
    assert raises_early(lambda: Caught()(torch.ones(8, 7)), 10**12, 75)


class Padded(nn.Module):
    """Positions from a table, counted over the tokens that are no padding."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Embedding(40, 4)
        self.calls = 0

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        used = (ids != 1).long()
        ids.zero_()
        return self.positions(torch.cumsum(used, 1) * used)


@pytest.mark.parametrize(("token", "is_refused"), [(1, False), (7, True)])
def test_inputs_that_a_module_refuses_early_depend_on_their_values(token: int, is_refused: bool) -> None:
    module = Padded()
    declared = declare(module, lambda seq=9: {"ids": torch.full((1, seq), 7)})
    inputs = declared.rebuild([torch.full((1, 41), token)])
    assert costing(module, declared).refuses_inputs_early(inputs) == is_refused
    assert module.calls == 0


def test_the_same_sizes_are_probed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    probed: list[bool] = []

    def noted(*given: Any) -> bool:
        probed.append(raises_early(*given))
        return probed[-1]

    module = Encoder(layers=1, width=8)
    cost = costing(module, declare(module, lambda seq=9: {"x": torch.randn(2, seq, 8)}))
    monkeypatch.setattr(call_counter, "raises_early", noted)
    found = [cost.refuses_early({"seq": seq}) for seq in (ROWS, ROWS + 1, ROWS, ROWS + 1)]
    assert found == [False, True, False, True]
    assert probed == [False, True]


class Scaled(Encoder):
    """The same, with a weight for each feature, and a table, both as tensors of its own."""

    def __init__(self) -> None:
        super().__init__(layers=24)
        self.positions = nn.Embedding(5000, 512)
        self.scale = nn.Parameter(torch.ones(512))
        self.table = nn.Parameter(torch.ones(700, 1))
        self.vector = nn.Parameter(torch.ones(600))


def test_a_weight_for_each_feature_is_no_table() -> None:
    assert find_table_rows(Scaled()) == (1, 600, 700, 5000)


class Picture(Encoder):
    """Refuses small sizes of two dims, each for itself, or their product."""

    def __init__(self, is_product: bool) -> None:
        super().__init__(layers=24)
        self.positions = nn.Embedding(5000, 512)
        self.is_product = is_product

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, seq = x.shape[:2]
        if (batch * seq < 16) if self.is_product else (batch < 3 or seq < 7):
            raise ValueError("too small")
        return super().forward(x)


def test_rules_about_single_dims_of_a_dear_module_need_few_whole_calls() -> None:
    found, called = explored(Picture(is_product=False), example=(8, 20))
    assert sorted(rules(found)) == ["batch >= 3", "seq >= 7"]
    assert {"batch": 3, "seq": 7} in called
    assert len([sizes for sizes in called if sizes["batch"] >= 3 and sizes["seq"] >= 7]) < FEW


def test_a_rule_about_two_dims_of_a_dear_module_is_found_as_before() -> None:
    found, _ = explored(Picture(is_product=True), example=(8, 20))
    assert rules(found) == ["batch*seq >= 16"]
