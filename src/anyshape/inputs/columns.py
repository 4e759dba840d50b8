"""What several examples show: columns of sizes, one size per example, and how they follow from one another.

Few examples show many accidents, so only what people write is looked for: the same, a sum of two, a multiple, and with
three different sizes or more also an offset, a difference from a constant, and halves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from anyshape.domain import Expr, Number, Ref, simplify
from anyshape.inputs.by_trying import name_of
from anyshape.inputs.fit_one import affine
from anyshape.inputs.trying import Place

Sizes = tuple[int, ...]

_MULTIPLES = (2, 3, 4)
_ENOUGH = 3
_LARGE = 8  # among smaller sizes halves are met by accident


@dataclass(frozen=True)
class Column:
    """One axis in all examples."""

    place: Place
    sizes: Sizes

    @property
    def varies(self) -> bool:
        return len(set(self.sizes)) > 1


def infer_columns(columns: Sequence[Column], known: Mapping[str, Sizes]) -> dict[Place, Expr]:
    """An expression for each column: a number, a known dim, what follows from dims, or a dim of its own."""
    found: dict[Place, Expr] = {column.place: Number(column.sizes[0]) for column in columns if not column.varies}
    varying = [column for column in columns if column.varies]
    first: dict[Sizes, Place] = {}
    for column in varying:
        first.setdefault(column.sizes, column.place)
    meanings = _meanings(first, known)
    found.update({column.place: meanings[column.sizes] for column in varying})
    return found


def _meanings(first: Mapping[Sizes, Place], known: Mapping[str, Sizes]) -> dict[Sizes, Expr]:
    """Small columns are dims before large ones, so that a sum is found as one."""
    meanings: dict[Sizes, Expr] = {sizes: Ref(name) for name, sizes in known.items()}
    own: list[Sizes] = []
    for sizes in sorted(first, key=sum):
        if sizes in meanings:
            continue
        expr = _as_sum(sizes, meanings) or _as_other(sizes, meanings)
        if expr is None:
            own.append(sizes)
            expr = Ref(_dim_name(first[sizes]))
        meanings[sizes] = expr
    for sizes in own:  # a half is smaller than its whole, and came first
        others = {
            other: expr for other, expr in meanings.items() if other != sizes and not _speaks_of(expr, meanings[sizes])
        }
        half = _as_half(sizes, others)
        if half is not None:
            meanings = {key: _replaced(expr, meanings[sizes], half) for key, expr in meanings.items()}
    return {sizes: simplify(expr) for sizes, expr in meanings.items()}


def _dim_name(place: Place) -> str:
    path, axis = place
    return name_of(place) if axis >= 0 else name_of((path, 0)).removesuffix("_0")


def _as_sum(sizes: Sizes, meanings: Mapping[Sizes, Expr]) -> Expr | None:
    candidates = list(meanings.items())
    for index, (one, first) in enumerate(candidates):
        for two, second in candidates[index + 1 :]:
            if all(a + b == size for a, b, size in zip(one, two, sizes, strict=True)) and _differ(one, two):
                return first + second
    return None


def _differ(one: Sizes, two: Sizes) -> bool:
    """Whether the sum of two columns says more than an offset of one of them would."""
    return len(set(one)) > 1 and len(set(two)) > 1


def _as_other(sizes: Sizes, meanings: Mapping[Sizes, Expr]) -> Expr | None:
    for other, expr in meanings.items():
        for factor in _MULTIPLES:
            if all(factor * size == mine for size, mine in zip(other, sizes, strict=True)):
                return factor * expr
    for other, expr in meanings.items():
        if len(set(other)) < _ENOUGH:
            continue
        for factor in (1, -1):
            offsets = {mine - factor * size for size, mine in zip(other, sizes, strict=True)}
            if len(offsets) == 1:
                return affine([(factor, expr)], offsets.pop())
    return None


def _as_half(sizes: Sizes, meanings: Mapping[Sizes, Expr]) -> Expr | None:
    for other, expr in meanings.items():
        if len(set(other)) < _ENOUGH or len({size % 2 for size in other}) < 2 or max(other) < _LARGE:
            continue
        for offset in (0, 1):
            if all((size + offset) // 2 == mine for size, mine in zip(other, sizes, strict=True)):
                return (expr + offset) // 2
    return None


def _names(expr: Expr) -> Iterator[str]:
    from anyshape.domain import dims_of

    yield from dims_of(expr)


def _speaks_of(expr: Expr, dim: Expr) -> bool:
    return any(name in set(_names(dim)) for name in _names(expr))


def _replaced(expr: Expr, dim: Expr, by: Expr) -> Expr:
    from anyshape.domain import substitute

    (name,) = _names(dim)
    return substitute(expr, {name: by})
