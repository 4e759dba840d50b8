"""Products and powers of whole numbers wrap around in 64 bits, as in torch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from operator_exports import Row, find_differences

LARGE = torch.tensor([2**53 + 1, 3, -(2**31) - 1, 5, 2**40 + 7, -1, 2**62 + 1, 9, 2**33, 1])


def values(rows: int, columns: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    places = torch.randint(0, len(LARGE), (rows, columns), generator=torch.Generator().manual_seed(rows))
    return LARGE[places].to(dtype)


FUNCTIONS: list[tuple[str, Callable[[torch.Tensor], torch.Tensor]]] = [
    ("prod", lambda x: x.prod()),
    ("prod of an axis", lambda x: x.prod(1)),
    ("prod of an axis that stays", lambda x: x.prod(0, keepdim=True)),
    ("prod in 32 bits", lambda x: x.prod(1, dtype=torch.int32)),
    ("prod of floats", lambda x: x.float().prod(1)),
    ("power", lambda x: x ** (x % 70)),
    ("power by a size", lambda x: x ** x.shape[1]),
    ("power of a number", lambda x: 3 ** (x % 90)),
    ("power of two", lambda x: 2 ** (x % 62)),
    ("power of two dtypes", lambda x: x.to(torch.int32) ** (x.long() % 20)),
    ("power without axes", lambda x: x ** x.long().max().clamp(0, 5)),
    ("power beyond 2**62", lambda x: x ** (2**63 - 1 - (x.long() % 2) * 2**62)),
    ("negative power", lambda x: x ** (x % 5 - 3)),
    ("addmm", lambda x: torch.addmm(x.long() @ x.mT.long(), x.long(), x.mT.long(), beta=2, alpha=3)),
]


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8], ids=str)
@pytest.mark.parametrize(("name", "function"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_whole_products(name: str, function: Callable[..., torch.Tensor], dtype: torch.dtype) -> None:
    inputs = [(values(rows, columns, dtype),) for rows, columns in ((3, 11), (1, 1), (5, 2), (2, 17))]
    assert find_differences(Row(name, function, inputs)) == []


def test_the_product_of_few_known_factors_has_no_loop() -> None:
    inputs = [(values(rows, 4),) for rows in (3, 1, 6)]
    assert find_differences(Row("", lambda x: x.prod(1), inputs, fixed={0: [1]})) == []


def test_the_product_of_nothing_is_one() -> None:
    inputs = [(values(3, 5),), (torch.zeros(2, 0, dtype=torch.int64),)]
    assert find_differences(Row("", lambda x: (x.prod(), x.prod(1)), inputs)) == []
