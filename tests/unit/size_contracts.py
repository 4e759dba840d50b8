"""Random contracts over three dims, and the truth about any shapes, found by trying all sizes."""

from __future__ import annotations

from itertools import product

from contract_builder import contract
from hypothesis import strategies as st

from anyshape.domain import Undefined, evaluate
from anyshape.findings import DeclarationError
from anyshape.records.contract import Contract

LARGEST = 6
DIMS = ("a", "b", "c")
EXPRS = (
    "a",
    "b",
    "c",
    "a + b",
    "b + c",
    "a - b + 6",
    "2*a",
    "a*b",
    "a//2",
    "(b + 1)//2",
    "max(a, b)",
    "b % 3",
    "7 - c",
)
RULES = (
    "a >= 2",
    "a <= 4",
    "b % 2 == 0",
    "a <= b",
    "a + c <= 7",
    "a != b",
    "a < b or c == 1",
    "not b == 3",
    "a % b == 0",
    "c // (a - 2) >= 1",
    "not a % (b - 1) == 1",
    "a == b + c",
    "c >= 0",
    "a*b - c <= 9",
    "min(a, b) >= 2",
    "b >= a + 1 and c <= 5",
)


def _made(axes: list[str], rules: list[str]) -> Contract | None:
    inputs = "; ".join(f"i{number}: float32[{expr}]" for number, expr in enumerate(axes))
    bounds = [f"{dim} <= {LARGEST}" for dim in DIMS]
    try:
        return contract(inputs, *bounds, *rules)
    except DeclarationError:
        return None  # no sizes keep these rules


contracts: st.SearchStrategy[Contract] = (
    st.builds(
        _made,
        st.lists(st.sampled_from(EXPRS), min_size=1, max_size=4),
        st.lists(st.sampled_from(RULES), max_size=3, unique=True),
    )
    .filter(lambda made: made is not None)
    .map(lambda made: made)  # type: ignore[arg-type, return-value]
)


def allows(promised: Contract, axes: dict[str, int]) -> bool:
    """Whether some sizes of the domain give these axes: input -> size of its only axis."""
    for point in product(range(LARGEST + 1), repeat=len(DIMS)):
        sizes = dict(zip(DIMS, point, strict=True))
        if promised.domain.contains(sizes) and _fit(promised, axes, sizes):
            return True
    return False


def _fit(promised: Contract, axes: dict[str, int], sizes: dict[str, int]) -> bool:
    try:
        return all(evaluate(tensor.axes[0], sizes) == axes[tensor.name] for tensor in promised.inputs if tensor.axes[0])
    except Undefined:
        return False
