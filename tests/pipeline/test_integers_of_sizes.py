"""Numbers that a model computes of its sizes: Python's have no end, those of a file have 64 bits.

Each model is right in eager at every size. Its file is right up to an end that is in the contract, and refuses beyond.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import anyshape
from anyshape.domain import holds

Number = Callable[[int], int]


def rising_product(n: int) -> int:
    return (n + 7) * (n + 8) * (n + 9) * (n + 10) * (n + 11) // 120 % 17


def seventh_power(n: int) -> int:
    return int(n**7 % 11)


def fifth_power_by_number(n: int) -> int:
    return n * n * n * n * n // 777 % 19


def hashed(n: int) -> int:
    return (n * 2654435761 * 40503 + 12345) % 1000


def hashed_twice(n: int) -> int:
    first = n * 6364136223846793 + 1442695040888963407
    return (first >> 33) % 97


def shifted(n: int) -> int:
    return (3 << n) % 1009


def power_of_three(n: int) -> int:
    return int(3**n % 13)


def squares(n: int) -> int:
    return n * (n + 1) * (2 * n + 1) // 6 * (n * n * n * n) % 23


def through_doubles(n: int) -> int:
    return int(n**6 / 7) % 5


def negative(n: int) -> int:
    return (5 - n * n * n * n * n * n) // 13 % 7


def negative_floor(n: int) -> int:
    return (20 - n) // 3


def polynomial(n: int) -> int:
    value = 1
    for factor in (31, 37, 41, 43, 47):
        value = value * n + factor
    return value % 101


MODELS: dict[Number, int | None] = {
    rising_product: 6199,
    seventh_power: 511,
    fifth_power_by_number: 6208,
    hashed: 85788,
    hashed_twice: 1222,
    shifted: 61,
    power_of_three: 33,
    squares: 598,
    through_doubles: 456,
    negative: 1448,
    negative_floor: None,
    polynomial: 6202,
}
"""The largest size at which no value on the way leaves 64 bits, or 53 where it goes through a double."""


class Scaled(torch.nn.Module):
    """Its input times the number that a function makes of its length."""

    def __init__(self, number: Number) -> None:
        super().__init__()
        self.number = number

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.number(x.shape[0])


def export(number: Number, path: Path | None = None, **options: object) -> anyshape.Export:
    return anyshape.export(Scaled(number), lambda n=5: torch.ones(n), path, budget=5, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", MODELS, ids=lambda number: number.__name__)
@pytest.mark.long_table
def test_a_file_is_right_up_to_where_its_integers_end(number: Number, tmp_path: Path) -> None:
    end = MODELS[number]
    result = export(number, tmp_path / "m.onnx")
    assert result.contract.domain.dim("n").max == end
    assert result.contract.tested.capture_proved
    assert [finding.code for finding in result.findings] == ([] if end is None else ["AS137"])
    assert [rule.origin for rule in result.contract.rules] == ([] if end is None else ["model"])
    loaded = anyshape.load(tmp_path / "m.onnx")
    sizes = {1, 2, 3, 7, 19, 40, 300, 511, 1000, end or 5000, (end or 5000) - 1}
    for size in sorted(sizes):
        if end is None or size <= end:
            assert loaded(x=torch.ones(size))[0] == pytest.approx(number(size)), size
    if end is not None:
        with pytest.raises(anyshape.AnyshapeError):
            loaded(x=torch.ones(end + 1))


def test_a_declared_range_beyond_the_end_is_an_error_with_the_end() -> None:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        export(seventh_power, where=["1 <= n <= 2000"], strategy="symbolic")
    (finding,) = broken.value.findings
    assert finding.code == "AS138"
    assert "n**7" in finding.what
    assert "n <= 511" in finding.why
    assert finding.where is not None and "self.number(x.shape[0])" in finding.where.text


def test_a_declared_range_within_the_end_is_kept_and_proved() -> None:
    result = export(seventh_power, where=["1 <= n <= 511"])
    assert result.findings == ()
    assert result.contract.tested.capture_proved


def test_a_declared_range_is_narrowed_by_consent(tmp_path: Path) -> None:
    result = export(seventh_power, tmp_path / "m.onnx", where=["1 <= n <= 2000"], accept_narrower=True)
    assert [finding.code for finding in result.findings] == ["AS137"]
    assert result.contract.domain.dim("n").max == 511
    with pytest.raises(anyshape.AnyshapeError):
        anyshape.load(tmp_path / "m.onnx")(x=torch.ones(512))


class Product(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + (x.shape[0] * x.shape[1] * 2654435761) % 1000


def test_two_open_dims_end_where_their_product_does() -> None:
    result = anyshape.export(Product(), lambda a=3, b=5: torch.ones(a, b), budget=5)
    assert [str(rule.condition) for rule in result.contract.rules] == ["a*b <= 3474701543"]


def test_the_dim_without_a_declared_end_is_the_one_that_ends() -> None:
    result = anyshape.export(Product(), lambda a=3, b=5: torch.ones(a, b), where=["a <= 64"], budget=5)
    assert result.contract.domain.dim("a").max == 64
    assert result.contract.domain.dim("b").max == 3474701543 // 64


class Attention(torch.nn.Module):
    """Products of sizes that tensors have: no memory holds what 64 bits cannot count."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, seq, width = x.shape
        scores = (x @ x.transpose(1, 2)).reshape(batch * seq * seq)
        return scores.view(batch, seq * seq).sum(1) / (batch * seq * seq * width)


def test_the_sizes_of_tensors_need_no_end() -> None:
    result = anyshape.export(Attention(), lambda batch=2, seq=3: torch.ones(batch, seq, 4), budget=5)
    assert result.findings == ()
    assert result.contract.rules == ()
    assert math.isfinite(result.verdict.seconds)


class ShiftedWindows(torch.nn.Module):
    """Windows of 4 by 4 that are shifted by half a window, and their mask."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        batch, height, width, channels = x.shape
        mask = torch.zeros(1, height, width, 1)
        mask[:, slice(0, -4)] = 1
        windows = torch.roll(x, (-2, -2), (1, 2)).view(batch, height // 4, 4, width // 4, 4, channels)
        return windows.permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, channels), mask


def test_a_quotient_without_a_rest_ends_no_range() -> None:
    result = anyshape.export(ShiftedWindows(), lambda b=2, h=2, w=3: torch.randn(b, 4 * h, 4 * w, 3))
    assert result.findings == ()
    assert result.contract.rules == ()


def sign(n: int) -> int:
    return int((-1) ** n)


def test_a_power_of_minus_one_is_right_at_all_sizes() -> None:
    result = export(sign)
    assert result.contract.tested.capture_proved
    assert not [finding for finding in result.findings if finding.code == "AS137"]


def power_of_a_sum(n: int) -> int:
    return int((n + 5) ** 7 % 11)


def test_a_rule_about_a_power_has_the_parentheses_of_python_and_keeps_the_example() -> None:
    with pytest.raises(anyshape.PromiseBroken) as broken:
        export(power_of_a_sum, where=["1 <= n <= 2000"], strategy="symbolic")
    assert "(n + 5)**7" in broken.value.finding.what


def test_a_rule_never_excludes_the_example() -> None:
    model = Scaled(lambda n: int((n - 3) ** (n % 2 + 1) % 5))
    result = anyshape.export(model, lambda n=5: torch.ones(n))
    assert all(holds(rule.condition, {"n": 5}) for rule in result.contract.rules)


class _Contracts(nn.Module):
    def forward(self, x, y, z):
        return torch.einsum("bn,nm,mk->bk", x, y, z)


def test_the_order_of_an_einsum_that_a_library_chooses_by_sizes_is_no_condition(tmp_path, monkeypatch) -> None:
    """torch asks opt_einsum for the order where it is installed; what is put in its place computes with sizes likewise."""

    def contract_path(equation, *operands, optimize, shapes=False):
        sizes = [size for each in operands for size in (each if shapes else each.shape)]
        return [(0, 1), (0, 1)] if Decimal(math.prod(sizes)) > 10 else [(1, 2), (0, 1)], None

    library = torch.backends.opt_einsum
    monkeypatch.setitem(library.get_opt_einsum.__globals__, "_opt_einsum", SimpleNamespace(contract_path=contract_path))
    monkeypatch.setitem(library.get_opt_einsum.__globals__, "enabled", True)
    monkeypatch.setitem(library.get_opt_einsum.__globals__, "strategy", "auto")
    library.is_available.cache_clear()
    try:
        result = anyshape.export(
            _Contracts(),
            lambda b=2, n=5, m=3, k=4: (torch.randn(b, n), torch.randn(n, m), torch.randn(m, k)),
            tmp_path / "m.onnx",
        )
    finally:
        monkeypatch.undo()
        library.is_available.cache_clear()
    assert (result.strategy, result.contract.status, result.findings) == ("symbolic", "kept", ())
