"""At which sizes to trace: many remainders, no coincidences; then the sizes at which rivals of a rule would differ."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from anyshape.capture.generalized.fit_forms import roundings
from anyshape.domain import Compare, Condition, Domain, Expr, Number, Op, Sizes, choose_sizes, evaluate, is_about
from anyshape.inputs import Declared

Answers = Callable[[Sizes], bool]

_MODULI = (2, 3, 4, 5, 7, 8)
_DRAWS = 500
_ELEMENTS = 4_000_000


def first_sizes(declared: Declared, answers: Answers, largest: int, count: int) -> list[dict[str, int]]:
    """Sizes to begin with, at which the module answers: unlike one another, and unlike the model's constants."""
    candidates = list(_draw(declared, largest))
    chosen: list[dict[str, int]] = []
    covered: set[tuple[str, int, int]] = set()
    while candidates and len(chosen) < count:
        best = max(candidates, key=lambda sizes: _worth(declared, sizes, covered))
        candidates.remove(best)
        if answers(best):
            chosen.append(best)
            covered |= _remainders(best)
    return chosen


def telling_sizes(
    declared: Declared, answers: Answers, rules: Sequence[Expr], seen: Sequence[Sizes], largest: int | None, count: int
) -> list[dict[str, int]]:
    """Sizes that were not traced yet: the domain's ends, and both sides of every step that a rule has."""
    known = {tuple(sorted(sizes.items())) for sizes in seen}
    names = set(declared.domain.names)
    steps = [condition for rule in rules for condition in _steps(rule)]
    steps[:0] = [Compare("==", name, Number(size)) for rule in rules for name, size in roundings(rule)]
    conditions = [condition for condition in dict.fromkeys(steps) if is_about(condition, names)]
    domain = _below(declared.domain, largest)
    try:
        proposed = choose_sizes(
            domain, conditions=conditions[:24], cost=declared.elements, budget=_ELEMENTS, limit=4 * count
        ).points
    except Exception:  # the smaller domain may be empty
        proposed = ()
    fresh = [dict(sizes) for sizes in proposed if tuple(sorted(sizes.items())) not in known]
    found = [sizes for sizes in fresh[: 2 * count] if answers(sizes)][:count]
    if len(found) < count // 2:
        drawn = (sizes for sizes in _draw(declared, largest or 60) if tuple(sorted(sizes.items())) not in known)
        found += [sizes for sizes, _ in zip(drawn, range(8 * count), strict=False) if answers(sizes)][
            : count - len(found)
        ]
    return found


def _below(domain: Domain, largest: int | None) -> Domain:
    if largest is None:
        return domain
    from anyshape.domain import Ref

    fitting = [dim.name for dim in domain.dims if dim.smallest <= largest]
    return domain.narrowed(*(Compare("<=", Ref(name), Number(largest)) for name in fitting))


def _steps(rule: Expr) -> Iterator[Condition]:
    """Where a rule changes its course: quotients at their steps, least and greatest where they meet."""
    if not isinstance(rule, Op):
        return
    for part in rule.args:
        yield from _steps(part)
    if rule.symbol in ("//", "%"):
        yield Compare("==", rule.args[0] % rule.args[1], Number(0))
    if rule.symbol in ("min", "max"):
        yield Compare("<=", rule.args[0], rule.args[1])


def _draw(declared: Declared, largest: int) -> Iterator[dict[str, int]]:
    domain = declared.domain
    chooser = random.Random(0)
    options = {dim.name: _options(dim, largest) for dim in domain.dims}
    drawn: set[tuple[int, ...]] = set()
    for _ in range(_DRAWS):
        sizes = {name: chooser.choice(values) for name, values in options.items()}
        if tuple(sizes.values()) not in drawn and domain.contains(sizes) and declared.elements(sizes) <= _ELEMENTS:
            drawn.add(tuple(sizes.values()))
            yield sizes
    if len(drawn) < 20:
        for sizes in choose_sizes(domain, cost=declared.elements, budget=_ELEMENTS, limit=40).points:
            if tuple(sizes.values()) not in drawn:
                drawn.add(tuple(sizes.values()))
                yield dict(sizes)


def _options(dim: object, largest: int) -> list[int]:
    from anyshape.domain import Dim

    assert isinstance(dim, Dim)
    top = dim.largest_up_to(max(largest, dim.smallest + largest * dim.multiple if dim.smallest >= largest else largest))
    high = top if top is not None else dim.smallest
    values = list(range(dim.smallest, high + 1, dim.multiple))
    return values or [dim.smallest]


def _remainders(sizes: Sizes) -> set[tuple[str, int, int]]:
    residues = {(name, modulus, size % modulus) for name, size in sizes.items() for modulus in _MODULI}
    return residues | {(name, 0, size) for name, size in sizes.items()}


def _worth(declared: Declared, sizes: Sizes, covered: set[tuple[str, int, int]]) -> tuple[int, int]:
    fresh = len(_remainders(sizes) - covered)
    return fresh - 6 * accidents(declared, sizes), -sum(sizes.values())


def accidents(declared: Declared, sizes: Sizes) -> int:
    """Coincidences: equal axes, sizes of 0 and 1, sizes like a constant of the inputs."""
    open_axes = {axis for leaf in declared.open_leaves for axis in leaf.axes if not isinstance(axis, Number)}
    constants = {axis.value for leaf in declared.open_leaves for axis in leaf.axes if isinstance(axis, Number)}
    values = [evaluate(axis, sizes) for axis in open_axes]
    small = sum(1 for value in values if value < 2)
    return small + len(values) - len(set(values)) + sum(1 for value in values if value in constants)
