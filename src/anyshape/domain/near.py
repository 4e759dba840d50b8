"""Sizes near an example: where a file that was made from it is most likely to be asked, and to be wrong."""

from __future__ import annotations

from collections.abc import Mapping

from anyshape.domain.dims import Domain


def sizes_near(domain: Domain, example: Mapping[str, int]) -> tuple[dict[str, int], ...]:
    """The example, and the sizes that differ from it by one in one dim, as far as the domain has them."""
    steps = [{}, *({name: size + step} for name, size in example.items() for step in (1, -1))]
    points = [{**example, **step} for step in steps]
    return tuple(point for point in points if domain.contains(point))
