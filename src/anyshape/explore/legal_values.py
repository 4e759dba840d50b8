"""Which integers the module takes: bounds and an order, learned by trying where values that we made are refused.

    x[index]                             0 <= index < rows
    pack_padded_sequence(x, lengths)     1 <= lengths <= seq, falling, the first equal to seq
    embedding_bag(ids, table, offsets)   0 <= offsets <= ids, rising, the first equal to 0

Inputs made from an example are concerned, not those of a function of sizes, which should give what is legal. Where it does not,
the bounds are learned for a message (`find_refused_by_function`). At a few sizes all
elements of an input get one number, or all but the first, or the last alone (a graph whose edges go from a node to itself
may have none left), and the largest number that the module takes is searched by bisection; an expression of the dims that
gives it at all of these sizes is the bound. Numbers are then drawn within the bounds, in the first order that the module takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import inf
from typing import Any

import torch

from anyshape.domain import Expr, Number, Ref, Sizes, evaluate, simplify
from anyshape.domain.bounded_values import name_in_bounds
from anyshape.explore.legal_columns import draw_by_column
from anyshape.findings import DeclarationError
from anyshape.inputs import Declared
from anyshape.inputs.calls import Inputs
from anyshape.inputs.declared import InputLeaf
from anyshape.inputs.making import Arrange, BoundedMaker, Ranges, declare_values
from anyshape.records.explored import RefusedValue

Answers = Callable[[Inputs], bool]
Constants = Mapping[str, int]  # path of an input -> the number that its elements get at a place
Place = Callable[[torch.Tensor], torch.Tensor]  # a view of these elements

_FARTHEST = 1 << 17  # what is legal up to here has no end; beyond, a number of repetitions would fill the memory
_OTHER_SIZES = (7, 5, 11, 4, 6, 9)
_MOST_POINTS = 8
_FEWEST_POINTS = 2
_SEEDS = (1, 2)
_OFFSETS = (0, -1, 1, -2, 2)
_ANY = ""


@dataclass(frozen=True)
class LegalValues:
    """The declaration whose inputs have legal values, and what was learned: bounds by name, and the order in words."""

    declared: Declared
    texts: Mapping[str, str]
    order: str


def learn_values(declared: Declared, answers: Answers) -> LegalValues | None:
    """Bounds of the integer inputs; None where there is nothing to learn, or nothing that the module takes everywhere."""
    leaves = _drawn_integers(declared)
    if not leaves:
        return None
    found = (_learn(declared, answers, leaves, place) for place in _PLACES)
    learned = next((each for each in found if each is not None), None)
    if learned is not None:
        return learned
    points = [sizes for sizes, _ in _Trials(declared, answers, leaves, _everywhere).tame]
    drawn = draw_by_column(declared, answers, leaves, points)
    return None if drawn is None else LegalValues(drawn, {}, "")


def find_refused_by_function(declared: Declared, answers: Answers, refused: Sequence[Sizes]) -> RefusedValue | None:
    """A value of the user's function at which the module raises, with the bounds of those that it takes at the same sizes.

    None where the module raises at all refused sizes whatever integers it is given, or no bounds describe what it takes.
    """
    leaves = [leaf for leaf in declared.tensor_leaves if _is_integer(leaf) and leaf.name not in declared.value_texts]
    if declared.source != "function" or declared.only_given_values or not leaves:
        return None
    trials = _Trials(declared, answers, leaves, _everywhere)
    if not all(trials.find_tame(sizes) is not None for sizes in refused[:_MOST_POINTS]):
        return None
    learned = _learn(declared, answers, leaves, _everywhere)
    if learned is None or not all(answers(learned.declared.make(sizes, 0)) for sizes in refused[:_MOST_POINTS]):
        return None
    for sizes in refused:
        made, ranges = declared.make(sizes, 0), learned.declared.value_ranges(sizes)
        for leaf, value in zip(declared.leaves, declared.flat(made), strict=True):
            low, high = ranges.get(leaf.name, (-inf, inf))
            outside = value[(value < low) | (value > high)] if leaf in leaves else None
            if outside is not None and outside.numel():
                return RefusedValue(leaf.name, "", int(outside.min()), sizes, made, learned.texts[leaf.name])
    return None


def are_legal(learned: LegalValues, inputs: Inputs, sizes: Sizes) -> bool:
    """Whether the values of these inputs are within the learned bounds; False where more than bounds was learned."""
    if learned.order or not learned.texts:
        return False
    declared, ranges = learned.declared, learned.declared.value_ranges(sizes)
    bounded = [
        (value, ranges[leaf.name])
        for leaf, value in zip(declared.leaves, declared.flat(inputs), strict=True)
        if leaf.name in ranges
    ]
    return not any(((value < low) | (value > high)).any() for value, (low, high) in bounded)


def has_drawn_integers(declared: Declared) -> bool:
    """Whether we draw integers for an input of which the user gave an example alone."""
    return bool(_drawn_integers(declared))


def _drawn_integers(declared: Declared) -> list[InputLeaf]:
    if declared.source == "function" or declared.only_given_values:
        return []
    return [leaf for leaf in declared.tensor_leaves if _is_integer(leaf) and leaf.name not in declared.value_texts]


def _learn(declared: Declared, answers: Answers, leaves: Sequence[InputLeaf], place: Place) -> LegalValues | None:
    trials = _Trials(declared, answers, leaves, place)
    if len(trials.tame) < _FEWEST_POINTS:
        return None
    found = {leaf.path: limits for leaf in leaves if (limits := trials.bounds(leaf)) is not None}
    bounded = [leaf for leaf in leaves if leaf.path in found]
    # With one number in all elements 1 may be refused that is legal beside others, as a length of 1 beside a longest one.
    from_one = {path: (1, high) for path, (_, high) in found.items()}
    ways = [(bounds, order) for bounds in (found, from_one) for order in _orders(bounded)]
    for bounds, order in ways if found else ():
        arranged = {name: _ORDERS[words] for name, words in order.items()}
        drawn = replace(declared, make=BoundedMaker(declared, _ranges(bounded, bounds), arranged))
        if not all(answers(drawn.make(sizes, seed)) for sizes, _ in trials.tame for seed in _SEEDS):
            continue
        texts = {leaf.name: _text(leaf, *bounds[leaf.path]) for leaf in bounded}
        try:
            return LegalValues(declare_values(drawn, {**declared.value_texts, **texts}), texts, _describe(order))
        except DeclarationError:  # the example is not within: the bounds are not what they seem
            return None
    return None


def _orders(leaves: Sequence[InputLeaf]) -> Iterator[dict[str, str]]:
    """Orders of inputs by name, in words: any order, one input in order, then all of them."""
    names = [leaf.name for leaf in leaves]
    yield dict.fromkeys(names, _ANY)
    for words in _ORDERS:
        if words != _ANY:
            if len(names) > 1:
                yield from ({**dict.fromkeys(names, _ANY), name: words} for name in names)
            yield dict.fromkeys(names, words)


def _describe(order: Mapping[str, str]) -> str:
    """The order in words, with the input's name where it is one of several."""
    words = {name: words for name, words in order.items() if words != _ANY}
    if len(words) == len(order):
        return next(iter(words.values()), "")
    return ", ".join(f"{name} {text}" for name, text in words.items())


def _ranges(leaves: Sequence[InputLeaf], bounds: Mapping[str, tuple[int, Expr]]) -> Ranges:
    def at(sizes: Sizes) -> dict[str, tuple[float, float]]:
        return {leaf.name: (bounds[leaf.path][0], evaluate(bounds[leaf.path][1], sizes)) for leaf in leaves}

    return at


class _Trials:
    """Calls at a few sizes, each with one number at one place of each integer input; elements elsewhere have the lowest
    number of the example."""

    def __init__(self, declared: Declared, answers: Answers, leaves: Sequence[InputLeaf], place: Place) -> None:
        self._declared = declared
        self._answers = answers
        self._place = place
        self._seen = {leaf.path: _elements(declared, leaf) for leaf in leaves}
        # Points, and numbers that the module takes there.
        self.tame = [(sizes, tame) for sizes in _points(declared) if (tame := self.find_tame(sizes)) is not None]

    def find_tame(self, sizes: Sizes) -> Constants | None:
        """One number for all elements of each input that the module takes."""
        lowest = {path: int(seen.min()) if seen.numel() else 0 for path, seen in self._seen.items()}
        same = (dict.fromkeys(lowest, number) for number in (*sorted(set(sizes.values()), reverse=True), 1, 0))
        return next((numbers for numbers in (*same, lowest) if self._takes(sizes, numbers)), None)

    def _takes(self, sizes: Sizes, numbers: Constants) -> bool:
        declared = self._declared
        flat = declared.flat(declared.make(sizes, 1))
        values = [
            self._filled(leaf, value, numbers[leaf.path]) if leaf.path in numbers else value
            for leaf, value in zip(declared.leaves, flat, strict=True)
        ]
        return self._answers(declared.rebuild(values))

    def _filled(self, leaf: InputLeaf, value: torch.Tensor, number: int) -> torch.Tensor:
        seen = self._seen[leaf.path]
        filled = torch.full(value.shape, int(seen.min()) if seen.numel() else number).to(value)
        self._place(filled).fill_(number)
        return filled

    def bounds(self, leaf: InputLeaf) -> tuple[int, Expr] | None:
        """The lowest number, and the largest as an expression of the dims; None where no bound is seen."""
        seen = self._seen[leaf.path]
        least = min(0, int(seen.min())) if seen.numel() else 0
        largest = min(_FARTHEST, torch.iinfo(seen.dtype).max)
        highs = [self._end(sizes, tame, leaf, largest) for sizes, tame in self.tame]
        lows = [self._end(sizes, tame, leaf, least) for sizes, tame in self.tame]
        if all(high == largest for high in highs):
            return None
        points = [sizes for sizes, _ in self.tame]
        for expr in expressions_of(self._declared.domain.names, highs[0]):
            if [evaluate(expr, sizes) for sizes in points] == highs:
                return max(lows), expr
        return None

    def _end(self, sizes: Sizes, tame: Constants, leaf: InputLeaf, end: int) -> int:
        """The farthest number towards this end that the module takes, by bisection."""
        near, far = tame[leaf.path], end
        if near == far or self._takes(sizes, {**tame, leaf.path: far}):
            return far
        step = 1 if far > near else -1
        reach = 1  # first in doubling steps: ends are near
        while abs(far - near) > 1:
            middle = near + step * min(reach, abs(far - near) // 2)
            if self._takes(sizes, {**tame, leaf.path: middle}):
                near, reach = middle, reach * 2
            else:
                far, reach = middle, max(1, abs(middle - near) // 2)
        return near


def _everywhere(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _after_first(tensor: torch.Tensor) -> torch.Tensor:
    return tensor[..., 1:] if tensor.ndim else tensor


def _last_alone(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1)[-1:]


_PLACES = (_everywhere, _after_first, _last_alone)


def _with_end(tensor: torch.Tensor, at: int, end: int) -> torch.Tensor:
    if tensor.ndim and tensor.shape[-1]:
        tensor[..., at] = end
    return tensor


def _falling(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.sort(-1, descending=True).values if tensor.ndim else tensor


def _rising(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.sort(-1).values if tensor.ndim else tensor


_ORDERS: dict[str, Arrange] = {
    _ANY: lambda tensor, low, high: tensor,
    "falling": lambda tensor, low, high: _falling(tensor),
    "falling, the first at its largest": lambda tensor, low, high: _falling(_with_end(tensor, 0, high)),
    "rising": lambda tensor, low, high: _rising(tensor),
    "one at its largest": lambda tensor, low, high: _with_end(tensor, 0, high),
    "rising, the last at its largest": lambda tensor, low, high: _rising(_with_end(tensor, -1, high)),
    "rising, the first at its lowest": lambda tensor, low, high: _rising(_with_end(tensor, 0, low)),
}
"""What a module may ask of the order of its integers, in words, and how drawn ones are put into it."""


def _points(declared: Declared) -> list[dict[str, int]]:
    """The example, dims of one size moved together to others, and single dims moved: where dims are tied, some answer."""
    example, domain = dict(declared.example_sizes), declared.domain
    groups: dict[int, list[str]] = {}
    for name, size in example.items():
        groups.setdefault(size, []).append(name)
    others = {size: next(other for other in _OTHER_SIZES if other != size) for size in groups}
    moved = {
        name: _OTHER_SIZES[place % len(_OTHER_SIZES)] for place, names in enumerate(groups.values()) for name in names
    }
    proposed = [example, moved]
    proposed += [{**example, **dict.fromkeys(names, others[size])} for size, names in groups.items()]
    proposed += [{**example, name: others[size]} for size, names in groups.items() if len(names) > 1 for name in names]
    proposed += [{name: size + 2 for name, size in moved.items()}]
    inside = [point for point in proposed if domain.contains(point)]
    return list({tuple(point.items()): point for point in inside}.values())[:_MOST_POINTS]


def expressions_of(names: Sequence[str], first: int) -> Iterator[Expr]:
    """Bounds that integers often have: the number, sizes of dims, and simple expressions of them."""
    yield Number(first)
    for offset in _OFFSETS:
        yield from (Ref(name) + offset for name in names)
    for one, other in combinations_with_replacement(names, 2):
        yield from (Ref(one) * Ref(other) + offset for offset in _OFFSETS[:2])
        yield Ref(one) + Ref(other)
        yield Ref(one) + Ref(other) - 1
    for name in names:
        yield from ((Ref(name) + offset) // 2 for offset in (0, 1, -1))


def _text(leaf: InputLeaf, low: int, high: Expr) -> str:
    name = name_in_bounds(leaf.name)
    below = simplify(high + 1)
    return f"{low} <= {name} < {below}" if isinstance(below, Ref) else f"{low} <= {name} <= {simplify(high)}"


def _is_integer(leaf: InputLeaf) -> bool:
    return leaf.dtype.startswith(("int", "uint"))


def _elements(declared: Declared, leaf: InputLeaf) -> torch.Tensor:
    values: list[Any] = declared.flat(declared.example)
    found: torch.Tensor = values[declared.leaves.index(leaf)]
    return found
