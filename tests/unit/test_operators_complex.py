"""Fourier transforms at every length, and complex numbers as pairs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from operator_exports import Row, compare, export, find_differences, sizes

import anyshape

SHAPES = ((2, 5, 8), (3, 6, 8), (1, 1, 8), (4, 13, 8), (2, 101, 8))
WEIGHT = torch.view_as_complex(torch.randn(8, 3, 2, generator=torch.Generator().manual_seed(0)))
WINDOW = torch.hann_window(16)


def numbers(x: torch.Tensor) -> torch.Tensor:
    return torch.complex(x, x.flip(1))


def convolve(x: torch.Tensor) -> torch.Tensor:
    length = 2 * x.shape[1]
    return torch.fft.irfft(torch.fft.rfft(x, length, 1) * torch.fft.rfft(x.flip(1), length, 1), length, 1)


def there_and_back(**options: Any) -> Any:
    def function(x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(x, 16, 4, window=WINDOW, return_complex=True)
        return torch.istft(spectrum, 16, 4, window=WINDOW, **options)

    return function


def there_and_back_again(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    spectrum = torch.stft(x, 16, 4, window=WINDOW, return_complex=True)
    ends = x.shape[1], 2 * x.shape[1] - 3
    return tuple(torch.istft(spectrum, 16, 4, window=WINDOW, length=end) for end in ends)


def low_and_high(x: torch.Tensor) -> torch.Tensor:
    """As a Fourier neural operator mixes the lowest frequencies, of both signs."""
    spectrum = torch.fft.rfft2(x, dim=(1, 2))
    made = torch.zeros(x.shape[0], x.shape[1], x.shape[2] // 2 + 1, dtype=torch.cfloat)
    made[:, :2, :2] = spectrum[:, :2, :2] * (1 + 2j)
    made[:, -2:, :2] = spectrum[:, -2:, :2] * 1j
    like = torch.zeros_like(spectrum)
    like[..., 1:] = made[..., 1:]
    return torch.fft.irfft2(made + like, s=(x.shape[1], x.shape[2]), dim=(1, 2))


SIGNALS = sizes((2, 100), (1, 64), (3, 333))
ROWS = [
    Row("fft", lambda x: torch.fft.fft(x, dim=1), sizes(*SHAPES)),
    Row("fft-of-three-axes", lambda x: torch.fft.fftn(x, norm="ortho"), sizes(*SHAPES)),
    Row("fft-padded", lambda x: torch.fft.fft2(x, (x.shape[1] + 3, 9)), sizes(*SHAPES)),
    Row("inverse", lambda x: torch.fft.ifft(numbers(x), dim=1, norm="forward"), sizes(*SHAPES)),
    Row("rfft-and-back", lambda x: torch.fft.irfft(torch.fft.rfft(x, dim=1), x.shape[1], 1), sizes(*SHAPES)),
    Row("inverse-of-half", lambda x: torch.fft.irfft2(numbers(x), dim=(0, 1)), sizes((2, 5, 8), (3, 6, 8), (4, 13, 8))),
    Row("hermitian", lambda x: torch.fft.ihfft2(x), sizes(*SHAPES)),
    Row("convolution", convolve, sizes(*SHAPES)),
    Row("exp", lambda x: torch.exp(1j * x), sizes(*SHAPES)),
    Row("exp-of-complex", lambda x: torch.exp(numbers(x)), sizes(*SHAPES)),
    Row("silu", lambda x: torch.nn.functional.silu(numbers(x)), sizes(*SHAPES)),
    Row("product", lambda x: numbers(x) @ WEIGHT, sizes(*SHAPES), {0: (2,)}),
    Row("einsum", lambda x: torch.einsum("bti,io->bot", numbers(x), WEIGHT), sizes(*SHAPES), {0: (2,)}),
    Row("einsum-without-arrow", lambda x: torch.einsum("bti,io", numbers(x), WEIGHT), sizes(*SHAPES), {0: (2,)}),
    Row("einsum-of-one", lambda x: torch.einsum("bti->ib", numbers(x)), sizes(*SHAPES)),
    Row("scaled-by-reals", lambda x: numbers(x) * x + x, sizes(*SHAPES)),
    Row("by-a-number", lambda x: numbers(x) * (2 - 1j) * 3, sizes(*SHAPES)),
    Row("moved", lambda x: numbers(x)[:, 0].unsqueeze(1).expand(-1, x.shape[1], -1), sizes(*SHAPES)),
    Row("shifted", lambda x: torch.fft.fftshift(numbers(x)), sizes(*SHAPES)),
    Row("rolled", lambda x: (numbers(x).roll(3), numbers(x).roll((2, 1), (-1, 0))), sizes(*SHAPES)),
    Row("shifted-and-measured", lambda x: torch.fft.fftshift(torch.fft.fft2(x), dim=(-2, -1)).abs(), sizes(*SHAPES)),
    Row("chosen", lambda x: torch.where(x > 0, numbers(x), numbers(-x)), sizes(*SHAPES)),
    Row("parts", lambda x: (numbers(x).real, numbers(x).imag, numbers(x).conj().resolve_conj()), sizes(*SHAPES)),
    Row("widened", lambda x: x.to(torch.complex64).to(torch.complex128), sizes(*SHAPES)),
    Row("written-into-slices", low_and_high, sizes((2, 5, 8), (3, 6, 9), (1, 4, 4))),
    Row("made", lambda x: torch.full((x.shape[0], 2), 1 - 3j) + torch.ones(2, dtype=torch.cfloat), sizes(*SHAPES)),
    Row("istft", there_and_back(), SIGNALS),
    Row("istft-to-a-length", there_and_back(length=60), SIGNALS),
    Row("istft-to-a-length-of-sizes", there_and_back_again, SIGNALS),
    Row("istft-beyond-its-end", there_and_back(length=400), SIGNALS),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.filterwarnings("ignore:The length of signal is shorter")  # eager's own
@pytest.mark.long_table
def test_is_right_at_every_size(row: Row) -> None:
    assert find_differences(row) == []


class Powers(torch.nn.Module):
    def forward(self, z: torch.Tensor) -> Any:
        return z.exp(), torch.view_as_real(z)


def test_complex_inputs_and_outputs_are_pairs_in_the_file() -> None:
    def inputs(rows: int = 3) -> torch.Tensor:
        return torch.view_as_complex(torch.randn(rows, 4, 2)).clone()  # torch.export does not take a view

    result = anyshape.export(Powers(), inputs)
    assert result.verdict.passed
    assert [str(value.shape) for value in (*result.model.graph.inputs, *result.model.graph.outputs)] == [
        "[rows,4,2]"
    ] * 3


def test_the_comparison_notices_a_conjugate() -> None:
    row, other = (Row("", function, sizes(*SHAPES)) for function in (numbers, lambda x: numbers(x).conj() * 1))
    assert compare(other, export(row)[0])


class Squares(torch.nn.Module):
    def forward(self, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (z * z.conj()).real, z.sum(1).imag


def test_a_loaded_file_takes_complex_numbers_as_the_module_does() -> None:
    def inputs(n: int = 4) -> torch.Tensor:
        return torch.randn(2, n, dtype=torch.complex64)

    file = anyshape.load(anyshape.export(Squares(), inputs).model_proto.SerializeToString())
    z = inputs(7)
    for given in (z, z.conj().resolve_conj().conj()):
        for actual, expected in zip(file(given), Squares()(given), strict=True):
            torch.testing.assert_close(actual, expected)
    assert file(z.numpy())[0].shape == (2, 7)
