"""Numbers that the edits leave as they are, and that may be sizes: a mean over 5 frames, written as `/ 5`.

Each is tried as a size; where every call answers, the evidence has to decide.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from math import isclose

import torch

from anyshape.repair.source.axis_readings import Reading, Size, multiplied, sizes_at
from anyshape.repair.source.edit_search import Call, Edits
from anyshape.repair.source.source_sites import Site

_FEWEST = 2
_NOT_SIZES = ("dim", "start_dim", "end_dim", "axis", "p", "eps", "momentum", "num_features", "groups", "bins")


def other_readings(edits: Edits, original: Call, calls: Sequence[Call]) -> Iterator[tuple[Site, Reading]]:
    """The sites outside of the edits whose value equals a size, each with that size in its place."""
    followed = [call.followed for call in calls]
    for statement, seen in original.followed.seen.items():
        sizes = _with_products(sizes_at(statement, followed), set(seen.sizes.values()))
        for site, value in seen.values.items():
            is_number = type(value) in (int, float) and site.text not in seen.sizes
            if not is_number or any(site.overlaps(other) for other in edits):
                continue
            for text, size in _like(site, float(value), sizes):
                bracketed = f"({text})" if site.is_operand and " " in text else text
                yield site, Reading(bracketed, size.changes_at, (size.vector,))


def _with_products(sizes: Sequence[Size], widths: Collection[int]) -> list[Size]:
    """The sizes, and their products with each other and with the sizes of other axes: how many elements there may be."""
    known = [size for size in sizes if size.own >= _FEWEST]
    products = [multiplied(one, other) for one, other in combinations(known, 2)]
    products += [multiplied(size, width) for size in known for width in sorted(widths) if width >= _FEWEST]
    return [*known, *products]


def _like(site: Site, value: float, sizes: Sequence[Size]) -> Iterator[tuple[str, Size]]:
    for size in sizes:
        if value == size.own:
            yield size.text, size
        elif value == size.own - 1 and (site.is_index or (value > 1 and (site.is_operand or site.is_compared))):
            yield f"{size.text} - 1", size
        elif not value.is_integer():
            one = f"({size.text})" if " " in size.text else size.text
            for text, number in (
                (f"1 / {one}", 1 / size.own),
                (f"{one} ** 0.5", size.own**0.5),
                (f"{one} ** -0.5", size.own**-0.5),
            ):
                if isclose(value, number, rel_tol=1e-6):
                    yield text, size


def layer_numbers(module: torch.nn.Module, size: int) -> list[str]:
    """Layers of torch without weights whose number is this size, `up.size=5`: what they do at other sizes is not known."""
    found = []
    for name, part in module.named_modules():
        if not type(part).__module__.startswith("torch.nn") or next(part.parameters(), None) is not None:
            continue
        for attribute, value in vars(part).items():
            values = value if isinstance(value, (tuple, list)) else (value,)
            is_like = any(type(each) is int and each == size for each in values)
            if is_like and not attribute.startswith("_") and attribute not in _NOT_SIZES:
                found.append(f"{name}.{attribute}={value}")
    return found
