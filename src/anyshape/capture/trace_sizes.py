"""At which sizes to trace: distinct ones of at least 2, so that an accident of the example is never the file's.

A size of 1 broadcasts, equal sizes look like one dim, and a size that equals a model's constant looks like it; the sizes
chosen here avoid all three where the domain and the module let them.

torch assumes that sizes are positive, so `if past.shape[1] == 0` is no guard. Within `empty_sizes_open` it is one, and both
sides are captured. Conditions without effect become guards there, too, which makes larger files: it is entered only after
a comparison at a size of 0 has failed.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from anyshape.domain import Compare, Condition, Domain, Number, Ref, Undecided, evaluate, holds, smallest_point
from anyshape.inputs import Declared
from anyshape.intercept.patching import patched

_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31)
_ELEMENTS = 2_000_000
_TRIES = 60


def choose_trace_sizes(
    declared: Declared, answers: Callable[[Mapping[str, int]], bool], *conditions: Condition
) -> dict[str, int] | None:
    """The least accidental sizes that meet the conditions and at which the module answers; None where there are none."""
    candidates = _unique(_candidates(declared))
    points = [sizes for sizes in candidates if all(holds(part, sizes) for part in conditions)]
    points.sort(key=lambda sizes: _accidents(declared, sizes))
    for sizes in points[:_TRIES]:
        if answers(sizes):
            return sizes
    example = dict(declared.example_sizes)
    if declared.domain.contains(example) and all(holds(part, example) for part in conditions):
        return example
    return next((sizes for sizes in _solved(declared, candidates, conditions) if answers(sizes)), None)


def _solved(
    declared: Declared, good: Sequence[Mapping[str, int]], conditions: Sequence[Condition]
) -> Iterator[dict[str, int]]:
    """Points that the solver finds: one dim as small as it may be and the others as at a good point, then all small."""
    names = declared.domain.names
    usual = min(good, key=lambda sizes: _accidents(declared, sizes), default=declared.example_sizes)
    kept = [[Compare("==", Ref(other), Number(usual[other])) for other in names if other != name] for name in names]
    for pins in (*kept, [Compare(">=", Ref(name), Number(2)) for name in names], []):
        try:
            found = smallest_point(declared.domain, *conditions, *pins)
        except Undecided:
            continue
        if found is not None:
            yield found


def _accidents(declared: Declared, sizes: Mapping[str, int]) -> int:
    """How many coincidences these sizes would bring into a trace."""
    constants = [axis.value for leaf in declared.leaves for axis in leaf.axes if isinstance(axis, Number)]
    values = list(sizes.values())
    open_axes = {
        axis: evaluate(axis, sizes) for leaf in declared.leaves for axis in leaf.axes if not isinstance(axis, Number)
    }
    small = sum(10 for size in open_axes.values() if size < 2) + sum(10 for size in values if size < 2)
    equal = len(open_axes) - len(set(open_axes.values())) + len(values) - len(set(values))
    like_constant = sum(1 for size in set(open_axes.values()) if size in constants)
    return small + 5 * equal + like_constant


def _candidates(declared: Declared) -> Iterator[dict[str, int]]:
    domain = declared.domain
    options = {name: list(_options(domain, name, declared.example_sizes.get(name, 3))) for name in domain.names}
    chooser = random.Random(0)
    products = itertools.islice(itertools.product(*(options[name][:4] for name in domain.names)), 400)
    drawn = (tuple(chooser.choice(options[name]) for name in domain.names) for _ in range(400))
    for values in itertools.chain(products, drawn):
        sizes = dict(zip(domain.names, values, strict=True))
        if domain.contains(sizes) and declared.elements(sizes) <= _ELEMENTS:
            yield sizes


def _options(domain: Domain, name: str, example: int) -> Iterator[int]:
    dim = domain.dim(name)
    wanted = (example, *_PRIMES, example + 1, example + 2, 2 * example, 3 * example, 5 * example, 2, 4, 6)
    found = False
    for value in dict.fromkeys(wanted):
        size = value * dim.multiple if value % dim.multiple else value
        if dim.min <= size and (dim.max is None or size <= dim.max):
            found = True
            yield size
    if not found:
        yield example


def _unique(points: Iterator[dict[str, int]]) -> list[dict[str, int]]:
    return list({tuple(point.items()): point for point in points}.values())


def empty_sizes_open() -> AbstractContextManager[None]:
    """Within this, symbols of sizes are not assumed to be positive."""
    from torch.fx.experimental import symbolic_shapes
    from torch.utils._sympy.symbol import SymT, make_symbol

    def make_size(prefix: SymT, number: int, **assumed: Any) -> Any:
        if prefix == SymT.SIZE:
            assumed["positive"] = None  # not "nonnegative", for which torch divides inequalities by sizes that may be 0
        return make_symbol(prefix, number, **assumed)

    return patched([(symbolic_shapes, "make_symbol", make_size)])
