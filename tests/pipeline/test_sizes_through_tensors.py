"""Numbers that Python computes with torch functions from sizes alone are sizes like others."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import anyshape
from anyshape.intercept.size_tensors import SizeTensors


class Of(torch.nn.Module):
    """A module whose forward is a given function."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def root(x):
    k = int(torch.sqrt(torch.tensor(x.shape[0]).float()))
    return x[:k] * 2


def item_of_ceiling(x):
    k = int(torch.tensor(float(x.shape[0])).sqrt().ceil().item())
    return x[:k] * 2


def halves_as_list(x):
    h, w = (torch.tensor([x.shape[0], x.shape[1]]) // 2).tolist()
    return x[:h, :w] * 2


def product_of_shape(x):
    k = torch.tensor(x.shape).prod().item()
    return x.reshape(k) / k


def scaled(x):
    return x * float(torch.tensor(x.shape[-1]).float() / 7)


def slice_end(x):
    n = torch.tensor(x.shape[0])
    return x[: (n + 1) // 2]


def least_of_two(x):
    h, w = torch.tensor(x.shape)
    return x.flatten()[: min(h, w).item()]


def asked(x):
    return x * 2 if torch.tensor(x.shape[0]) > 4 else x + 1


def rounded_share(x):
    k = max(1, int(torch.round(torch.tensor(x.shape[0] * 0.3))))
    return x[:k]


def all_axes_but_the_first(x):
    return x - x.mean(dim=torch.arange(1, x.dim()).tolist(), keepdim=True)


def counted_from_a_size(x):
    n = x.shape[0]
    first, second = torch.arange(n, 3 * n, n).tolist()
    return x.reshape(first, -1) * second


def starts_of_levels(x):
    sizes = torch.as_tensor([tuple(x.shape), (x.shape[1], 1)], dtype=torch.long)
    starts = torch.cat((sizes.new_zeros((1,)), sizes.prod(1).cumsum(0)[:-1]))
    return x * starts[1] + torch.as_tensor(x.shape)[1]


def new_tensor_and_array(x):
    return x * x.new_tensor([x.shape[0], 3])[0] + torch.asarray([x.shape[1]])


def one_for_each_row(x):
    count = x.shape[0]
    widths = torch.tensor([x.shape[1] for _ in range(count)])
    return x * widths[:, None] + torch.as_tensor([2 for _ in range(count)], dtype=x.dtype)[:, None]


@pytest.mark.parametrize(
    "function",
    [
        *(root, item_of_ceiling, halves_as_list, product_of_shape, scaled, slice_end, least_of_two, asked),
        *(all_axes_but_the_first, counted_from_a_size, starts_of_levels, new_tensor_and_array, one_for_each_row),
    ],
)
def test_is_captured_with_symbols_and_without_an_end_by_comparison(function, tmp_path) -> None:
    result = _export(function, tmp_path)
    assert result.strategy == "symbolic"
    assert "AS132" not in [finding.code for finding in result.findings]
    _compare(function, tmp_path)


def test_a_root_in_float32_ends_where_the_kernels_of_torch_may_round_otherwise(tmp_path) -> None:
    (finding,) = _export(root, tmp_path).findings
    assert finding.code == "AS137"
    assert "n <= 1048576" in finding.what
    assert finding.where is not None


def test_a_share_rounded_in_float32_is_that_of_eager(tmp_path) -> None:
    _export(rounded_share, tmp_path)
    _compare(rounded_share, tmp_path)


def steps_to_the_root(x):
    hidden = torch.zeros(x.shape[1])
    for step in range(int(torch.sqrt(torch.tensor(x.shape[0]).float()))):
        hidden = torch.tanh(hidden + x[step])
    return hidden


def steps_to_the_root_of_math(x):
    hidden = torch.zeros(x.shape[1])
    for step in range(int(math.sqrt(x.shape[0]))):
        hidden = torch.tanh(hidden + x[step])
    return hidden


@pytest.mark.parametrize("function", [steps_to_the_root, steps_to_the_root_of_math])
def test_a_loop_to_the_root_of_a_size_is_a_loop(function, tmp_path) -> None:
    assert _export(function, tmp_path).strategy == "rerolled"
    _compare(function, tmp_path)


def logarithm(x):
    return x[: int(torch.tensor(x.shape[0]).log() * 1.7)]


def test_logarithms_in_float32_are_compared_size_by_size(tmp_path) -> None:
    """No rule follows the last bit of torch's kernels, so that the range ends where each size was compared."""
    result = anyshape.export(Of(logarithm), _inputs, tmp_path / "m.onnx", where=["n <= 200"])
    assert result.contract.status == "kept"
    loaded = anyshape.load(tmp_path / "m.onnx")
    for n in range(1, 201):
        x = torch.randn(n, 2)
        assert loaded(x=x.numpy()).shape[0] == logarithm(x).shape[0], n


_NUMBERS: list[Callable[[Any], Any]] = [
    lambda n: torch.tensor(n).float() * 0.3,
    lambda n: torch.tensor(n) / 7,
    lambda n: (torch.tensor(n) / 3 + 0.7) * 1.1,
    lambda n: torch.tensor(n * 0.29) * 100,
    lambda n: torch.ceil(torch.tensor(n) * 0.7).long(),
    lambda n: torch.round(torch.tensor(n) / 2),
    lambda n: 7 - torch.tensor(n) % 5,
    lambda n: 1000 // torch.tensor(n),
    lambda n: torch.tensor([n, 3]).max(),
    lambda n: torch.stack([torch.tensor(n), torch.tensor(2)]).prod(),
    lambda n: torch.tensor(n).clamp(min=4, max=90),
    lambda n: torch.tensor(n, dtype=torch.float64) * 0.3,
    lambda n: torch.tensor(n) ** 2,
    lambda n: torch.tensor([[n, 1], [2, n]])[1, 0],
    lambda n: (torch.tensor(n) * 123456789).int(),
    lambda n: torch.tensor(n).sqrt().floor(),
]


@pytest.mark.parametrize("number", _NUMBERS, ids=range(len(_NUMBERS)))
def test_followed_numbers_have_the_bits_of_eager(number) -> None:
    sizes = [*range(1, 400), 4095, 4096, 10**6 - 1, 2**20]
    expected = [number(n).item() for n in sizes]
    for n, value in zip(sizes, expected, strict=True):
        with SizeTensors([]) as followed:
            tensor = number(n)
            assert followed._of(tensor) is not None
            assert tensor.item() == value, n


def test_a_tensor_that_is_written_to_is_no_longer_followed() -> None:
    with SizeTensors([]) as followed:
        tensor = torch.tensor([3, 4])
        part = tensor[0]
        tensor[0] = 7
        assert followed._of(tensor) is None
        assert followed._of(part) is None
        assert part.item() == 7


def _inputs(n=6, m=7):
    return {"x": torch.randn(n, m)}


def _export(function, tmp_path):
    return anyshape.export(Of(function), _inputs, tmp_path / "m.onnx")


def _compare(function, tmp_path) -> None:
    loaded = anyshape.load(tmp_path / "m.onnx")
    for n in (1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 50, 99, 100):
        x = torch.randn(n, 3)
        torch.testing.assert_close(torch.as_tensor(loaded(x=x.numpy())), function(x), rtol=1e-5, atol=1e-6)


class _ClampedInPlace(nn.Module):
    """An operator without an underscore in its name writes into a tensor of sizes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        extra = torch.tensor([x.shape[0] - 40.0])
        nn.functional.relu(extra, inplace=True)
        return x * extra


def test_a_tensor_of_sizes_that_is_written_to_is_followed_no_more(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    anyshape.export(_ClampedInPlace(), lambda n=5: torch.randn(n), path)
    loaded = anyshape.load(path)
    for size in (1, 39, 40, 41, 300):
        x = torch.randn(size)
        torch.testing.assert_close(loaded(x), _ClampedInPlace()(x))


class _Shared(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * int(7 * x.shape[0] / torch.tensor(x.shape[0]))


def test_a_number_divided_by_a_tensor_is_rounded_twice_as_torch_does_it(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    anyshape.export(_Shared(), lambda n=5: torch.randn(n), path)
    loaded = anyshape.load(path)
    for size in (1, 40, 41, 61, 83, 109):  # 7 * (1 / 41) * 41 is 6.9999995 in float32
        x = torch.randn(size)
        torch.testing.assert_close(loaded(x), _Shared()(x))


class _RoundsARoot(nn.Module):
    """Rounds a float32 root that Python has read: its last bit decides."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        root = torch.tensor(float(x.shape[0])).sqrt().item()
        return x * (int(root * 1000) + (root * root >= x.shape[0]))


def test_a_root_whose_last_bit_decides_is_not_taken_for_exact() -> None:
    with pytest.raises(anyshape.PromiseBroken, match="AS111"):
        anyshape.export(_RoundsARoot(), lambda n=5: torch.randn(n), None)
