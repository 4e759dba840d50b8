"""Sizes to compare a rule at: half of them inside the true domain, half within 2 of its boundary."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

from rows import Row, Sizes

_TRIES_FOR_EACH = 30
NEAR = 2


def choose_points(row: Row, count: int, far: Callable[[str], int], seed: int = 0) -> list[Sizes]:
    """`count` sizes, each dim at most `far(dim)`: inside the true domain, and near its boundary on both sides of it.

    A domain without a boundary gives inside points only. No size occurs twice, as far as there are enough.
    """
    rng = random.Random(seed)
    inside = {_key(row.sizes): row.sizes}
    near: dict[tuple[int, ...], Sizes] = {}
    for _ in range(count * _TRIES_FOR_EACH):
        if len(inside) >= count // 2 and len(near) >= count - count // 2:
            break
        sizes = _draw(row, far, rng)
        if row.is_true(sizes):
            inside[_key(sizes)] = sizes
        around = _nudged(sizes, far, rng)
        if row.is_true(around) != row.is_true(sizes):
            near |= {_key(sizes): sizes, _key(around): around}
    boundary = _spread(list(near.values()), count - count // 2, rng)
    return boundary + _spread(list(inside.values()), count - len(boundary), rng)


def random_points(row: Row, count: int, far: Callable[[str], int], seed: int = 0) -> list[Sizes]:
    """`count` sizes, whether inside or not."""
    rng = random.Random(seed)
    return [_draw(row, far, rng) for _ in range(count)]


def small_points(row: Row, count: int, seed: int = 0) -> list[Sizes]:
    """All sizes of 1 to 5, or `count` of them: norms, broadcasts and empty results are special there."""
    every = itertools.product(range(1, 6), repeat=len(row.dims))
    points = [dict(zip(row.dims, sizes, strict=True)) for sizes in every]
    return random.Random(seed).sample(points, min(count, len(points)))


def _draw(row: Row, far: Callable[[str], int], rng: random.Random) -> Sizes:
    """Random sizes; some equal to another dim's, a sum or the example's, so that rules between dims hold often enough."""
    sizes: Sizes = {}
    step = rng.choice((1, 1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 16, 20, 24, 32, 48, 64))
    for dim in rng.sample(row.dims, len(row.dims)):
        end = far(dim) if rng.random() < 0.5 else min(far(dim), row.cheap(dim))
        known = [*sizes.values(), sum(sizes.values()), row.sizes[dim], 1] if sizes else [row.sizes[dim]]
        way = rng.random()
        if way < 0.35:
            size = rng.choice(known)
        elif way < 0.55:
            size = max(1, rng.choice(known) * rng.randint(1, 3) + rng.randint(-1, 1))
        elif way < 0.75:
            size = step * rng.randint(1, max(1, end // step))
        else:
            size = rng.randint(1, end)
        sizes[dim] = min(size, end)
    return {dim: sizes[dim] for dim in row.dims}


def _nudged(sizes: Sizes, far: Callable[[str], int], rng: random.Random) -> Sizes:
    """Sizes at most `NEAR` away in each dim; often in one dim alone."""
    chosen = [rng.choice(list(sizes))] if rng.random() < 0.6 else list(sizes)
    return {
        dim: min(max(size + (rng.randint(-NEAR, NEAR) if dim in chosen else 0), 1), far(dim))
        for dim, size in sizes.items()
    }


def _spread(different: list[Sizes], count: int, rng: random.Random) -> list[Sizes]:
    """`count` of the points, again from the start where there are too few; none, if there are none."""
    rng.shuffle(different)
    return [different[at % len(different)] for at in range(count)] if different else []


def _key(sizes: Sizes) -> tuple[int, ...]:
    return tuple(sizes.values())
