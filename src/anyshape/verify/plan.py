"""Which trials to make, the most telling first.

Every size gets one draw of random values, its own; edge values and further draws go to a few middling sizes, since a
branch on values seldom depends on sizes, and sizes of 1 make many values look alike. Sizes that are to be compared once,
mostly large ones, get a single draw. A small model on small inputs gets
more draws: they cost next to nothing, and a mistake that shows on one value in fifty takes many values to see.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from anyshape.records.verdict import Sizes
from anyshape.verify.bench import Trial
from anyshape.verify.request import VerifyRequest
from anyshape.verify.tensors import total_elements
from anyshape.verify.values import edges_of, further_edges_of

_FIRST = 4
_EDGE_SIZES = 2
_ROW = 3
_CHEAP_DRAWS = 12
_CHEAP_COST = 1_000_000


def plan_trials(request: VerifyRequest) -> list[Trial]:
    """All trials in order."""
    seed = request.options.seed
    distinct = list({tuple(sizes.items()): sizes for sizes in request.sizes}.values())
    draws = [Trial(sizes, seed + index) for index, sizes in enumerate(distinct)]
    middling = spread(distinct, _EDGE_SIZES)
    edges = _edge_trials(request, distinct, middling) if request.edge_values else []
    further = [
        Trial(sizes, seed + len(draws) + draw) for sizes in middling for draw in range(_further_draws(request, sizes))
    ]
    known = {tuple(sizes.items()) for sizes in distinct}
    far = [dict(key) for key in dict.fromkeys(tuple(sizes.items()) for sizes in request.once) if key not in known]
    once = [Trial(sizes, seed + index) for index, sizes in enumerate(far)]
    return [*draws[:_FIRST], *edges, *draws[_FIRST:], *once, *further]


def _edge_trials(request: VerifyRequest, distinct: Sequence[Sizes], middling: Sequence[Sizes]) -> list[Trial]:
    """Edge values in all inputs at a few middling sizes; the further ones, which are many, at one small size."""
    seed = request.options.seed
    usual = [(sizes, request.make(sizes, seed), request.legal(sizes)) for sizes in middling]
    small = [(sizes, request.make(sizes, seed), request.legal(sizes)) for sizes in _small(distinct, middling)]
    return [
        *(Trial(sizes, seed, edge) for sizes, inputs, legal in usual for edge in edges_of(inputs, legal)),
        *(Trial(sizes, seed, edge) for sizes, inputs, legal in small for edge in further_edges_of(inputs, legal)),
    ]


def _small(distinct: Sequence[Sizes], middling: Sequence[Sizes]) -> list[Sizes]:
    """The smallest sizes at which every dim is large enough for a row to be padded in part; else a middling one."""
    for least in (_ROW, 2):
        wide = [sizes for sizes in distinct if min(sizes.values(), default=0) >= least]
        if wide:
            return [min(wide, key=lambda sizes: prod(sizes.values()))]
    return list(middling[:1])


def _further_draws(request: VerifyRequest, sizes: Sizes) -> int:
    asked = max(0, request.options.draws - 1)
    weights = sum(parameter.numel() for parameter in request.reference.module.parameters())
    cost = weights + total_elements(request.make(sizes, request.options.seed))
    return asked if asked == 0 else max(asked, min(_CHEAP_DRAWS, _CHEAP_COST // max(1, cost)))


def spread(sizes: Sequence[Sizes], count: int) -> list[Sizes]:
    """So many of the sizes, evenly apart in the order of their products, neither the smallest nor the largest."""
    ordered = sorted(sizes, key=lambda each: prod(size for size in each.values()))
    places = {round((len(ordered) - 1) * step / (count + 1)) for step in range(1, count + 1)}
    return [ordered[place] for place in sorted(places)] if ordered else []
