"""Sizes that were answered and sizes that were refused -> the simplest rules that tell them apart.

Only multiples, bounds of a dim, inequalities between dims, single sizes left out and two rules on two dims together are
looked for. A rule must hold at every answered point; together the rules must fail at every refused one; otherwise there is no
explanation, and we say so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from anyshape.domain import Compare, Condition, Number, Ref, holds

Sizes = Mapping[str, int]
_MOST_RULES = 5
_MOST_HOLES = 2
_FEW_ELEMENTS = 4
_MULTIPLES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 24, 28, 32, 48, 64)


def learn_rules(answered: Sequence[Sizes], refused: Sequence[Sizes]) -> tuple[Condition, ...] | None:
    """Rules that hold where the module answered and fail where it refused; None when there is no simple explanation.

    Rules on two dims together are looked at only where those on one, or between two, explain too little.
    """
    simple = tuple(_candidates(answered, refused))
    return _explained(simple, answered, refused) or _explained((*simple, *_joint(answered)), answered, refused)


def _explained(
    candidates: Sequence[Condition], answered: Sequence[Sizes], refused: Sequence[Sizes]
) -> tuple[Condition, ...] | None:
    rules: list[Condition] = []
    left = list(refused)
    candidates = [rule for rule in candidates if all(holds(rule, sizes) for sizes in answered)]
    while left:
        best = max(candidates, key=lambda rule: sum(not holds(rule, sizes) for sizes in left), default=None)
        if best is None or all(holds(best, sizes) for sizes in left):
            return None
        rules.append(best)
        left = [sizes for sizes in left if holds(best, sizes)]
    holes = sum(isinstance(rule, Compare) and rule.op == "!=" for rule in rules)
    return tuple(rules) if len(rules) <= _MOST_RULES and holes <= _MOST_HOLES else None


def _candidates(answered: Sequence[Sizes], refused: Sequence[Sizes]) -> Iterator[Condition]:
    """Simplest first: of rules that explain as much, the first is taken."""
    names = list(answered[0]) if answered else []
    for name in names:
        seen = [sizes[name] for sizes in answered]
        yield Compare(">=", Ref(name), Number(min(seen)))
        yield Compare("<=", Ref(name), Number(max(seen)))
    for name, multiple in itertools.product(names, _MULTIPLES):
        yield Compare("==", Ref(name) % multiple, Number(0))
    for left, right in itertools.permutations(names, 2):
        yield Compare("<=", Ref(left), Ref(right))
        yield Compare("<", Ref(left), Ref(right))
    for name in names:
        for size in sorted({sizes[name] for sizes in refused}):
            yield Compare("!=", Ref(name), Number(size))


def _joint(answered: Sequence[Sizes]) -> Iterator[Condition]:
    """A few elements at least in the product of two dims, and two dims that fit into a third. No more than these: other
    bounds of products and sums explain too much by chance."""
    names = list(answered[0]) if answered else []
    for left, right in itertools.combinations(names, 2):
        least = min((sizes[left] * sizes[right] for sizes in answered), default=0)
        if 1 < least <= _FEW_ELEMENTS:
            yield Compare(">=", Ref(left) * Ref(right), Number(least))
    for total in names:
        for left, right in itertools.combinations([name for name in names if name != total], 2):
            yield Compare("<=", Ref(left) + Ref(right), Ref(total))


def pinned_dims(answered: Sequence[Sizes], refused: Sequence[Sizes]) -> dict[str, int]:
    """Dims that have one size wherever the module answers, though others were tried."""
    if not answered:
        return {}
    return {
        name: size
        for name, size in answered[0].items()
        if all(sizes[name] == size for sizes in answered) and any(sizes[name] != size for sizes in refused)
    }
