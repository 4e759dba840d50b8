"""Noise floors: measured on the module itself, never so wide that a mistake hides in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from anyshape.verify.noise import NoiseFloor, Yardstick, nudged, relative_noise
from anyshape.verify.reference import Answer, Reference
from anyshape.verify.tolerance import FACTOR, SINGLE_FACTOR, Tolerance, default_noise, magnitudes, most_noise

EPS = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Call:
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


def flatten(outputs: Any) -> list[tuple[str, Any]]:
    return (
        [(f"output.{i}", leaf) for i, leaf in enumerate(outputs)]
        if isinstance(outputs, tuple)
        else [("output", outputs)]
    )


def measure(module: nn.Module, *args: Any) -> NoiseFloor:
    with Reference(module, flatten) as reference:
        return Yardstick(reference).measure([Call(args)])


def test_the_limit_is_the_stated_formula() -> None:
    limit = Tolerance(4e-6).limit(np.array([3.0]), EPS)
    assert limit.tolist() == [FACTOR * 4e-6 * 3.0]


@pytest.mark.parametrize(("dtype", "ulps"), [(np.float32, 16), (np.float16, 0.5)])
def test_a_floor_of_zero_is_still_some_ulps(dtype: type, ulps: float) -> None:
    eps = float(np.finfo(dtype).eps)
    assert Tolerance(0.0).limit(np.array([2.0]), eps).tolist() == [FACTOR * ulps * eps * 2.0]


def test_a_model_of_doubles_may_hold_attributes_in_single_precision() -> None:
    assert Tolerance(0.0).limit(np.array([2.0]), SINGLE_FACTOR).tolist() == [FACTOR * 2.0**-24 * 2.0]


def test_other_doubles_are_told_apart_from_singles() -> None:
    eps = float(np.finfo(np.float64).eps)
    for noise in (0.0, None, 1e-13):
        assert Tolerance(noise).limit(np.array([2.0]), eps).tolist() == [FACTOR * 2.0**-40 * 2.0]


def test_no_floor_grants_a_whole_output_more_than_the_most_noise() -> None:
    assert Tolerance(0.5).limit(np.array([1.0]), EPS) == Tolerance(most_noise(EPS)).limit(np.array([1.0]), EPS)


def test_peers_share_a_magnitude_and_a_wide_gap_parts_them() -> None:
    array = np.array([1.0, 100.0, -1e9, 0.0, np.nan, np.inf])
    assert magnitudes(array).tolist() == [100.0, 100.0, 1e9, 100.0, 0.0, 0.0]
    assert magnitudes(np.array([1e-13, 0.9])).tolist() == [0.9, 0.9]
    assert magnitudes(np.array([1e-13, 30.0])).tolist() == [1.0, 30.0]
    assert magnitudes(np.array([1e-13, 2e-13])).tolist() == [2e-13, 2e-13]
    assert magnitudes(np.array([0.0, 0.0, np.nan])).tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_noise_of_a_product_is_measured_in_double(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    floor = measure(nn.Linear(256, 64).to(dtype), torch.randn(8, 256, dtype=dtype))
    assert floor.how == "float64 eager"
    assert floor.noise[0] is not None
    assert 0 < floor.noise[0] < 20 * torch.finfo(dtype).eps
    assert floor.elements == 8 * 256


def test_integers_have_no_noise() -> None:
    class Pick(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return x.argmax(-1), x * 2

    noise = measure(Pick(), torch.randn(4, 5)).noise
    assert noise[0] is None
    assert noise[1] == 0.0


def test_a_module_that_insists_on_single_precision_is_summed_in_another_order() -> None:
    class Insists(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return torch.ones(4, x.shape[-1], dtype=torch.float32) @ x

    floor = measure(Insists(), torch.randn(3, 3))
    assert floor.how == "another order of summation"
    assert floor.noise[0] is not None
    assert floor.noise[0] >= default_noise(EPS)


def test_a_module_that_cannot_be_copied_is_summed_in_another_order() -> None:
    class Uncopied(nn.Linear):
        def __deepcopy__(self, memo: Any) -> Any:
            raise TypeError("no")

    assert measure(Uncopied(3, 3), torch.randn(2, 3)).how == "another order of summation"


def test_a_module_that_refuses_leaves_the_dtype_to_decide() -> None:
    class Refuses(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            raise ValueError("no")

    floor = measure(Refuses(), torch.randn(2))
    assert floor == NoiseFloor()
    answer = Answer(("output",), (np.ones(2, np.float32),), (False,), 0.0)
    (rule,) = floor.tolerances(["y"], answer, 10)
    assert rule.tolerance == Tolerance()


def test_noise_grows_with_the_root_of_the_elements() -> None:
    answer = Answer(("output",), (np.ones(2, np.float32),), (False,), 0.0)
    floor = NoiseFloor((1e-6,), 100, "float64 eager")
    assert floor.tolerances(["y"], answer, 50)[0].tolerance.noise == 1e-6
    assert floor.tolerances(["y"], answer, 400)[0].tolerance.noise == pytest.approx(2e-6)


def test_the_default_dtype_is_as_before() -> None:
    measure(nn.Linear(3, 3), torch.randn(2, 3))
    assert torch.get_default_dtype() is torch.float32


def test_an_index_is_sensitive_where_two_values_are_equal_and_only_there() -> None:
    class Pick(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return x.argmax(-1)

    x = torch.tensor([[1.0, 1.0, 0.0], [3.0, 1.0, 2.0]])
    with Reference(Pick(), flatten) as reference:
        answer = reference.run(Call((x,)))
        assert isinstance(answer, Answer)
        *_, (sensitivity,) = Yardstick(reference).sensitivities(Call((x,)), answer, seed=0)
    assert sensitivity[0] > 0
    assert sensitivity[1] == 0


def test_a_nudge_is_a_rounding_error_and_leaves_zeros_and_integers() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.cat([torch.zeros(50), torch.full((50,), 3.0)])
    moved = nudged(x, generator)
    assert torch.equal(moved[:50], x[:50])
    assert not torch.equal(moved, x)
    assert torch.allclose(moved, x, rtol=4 * EPS, atol=0)
    ids = torch.arange(5)
    assert nudged(ids, generator) is ids


def test_noise_is_none_where_there_is_nothing_to_measure() -> None:
    assert relative_noise(np.arange(3), np.arange(3)) is None
    assert relative_noise(np.zeros((0,)), np.zeros((0,))) is None
    assert relative_noise(np.ones(3), np.ones(4)) is None
    assert relative_noise(np.array([np.nan]), np.array([np.nan])) is None
    assert relative_noise(np.zeros(3), np.zeros(3)) == 0.0
