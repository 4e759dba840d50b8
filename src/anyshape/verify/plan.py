"""Plan the trials: the most telling first, fewer where calls are dear; and the plan as data for another process.

Every size gets one draw of random values, with a seed of its own (with one seed for all where the allowance is too small for
all trials: exploring has called the module with these values). Edge values and further draws go to a few sizes from the middle
of the list, since a branch on values seldom depends on sizes, and at sizes of 1 there are too few values to show a difference.
Sizes in `request.once`, mostly large ones, get a single draw. A small model on small inputs gets more draws: they cost next to
nothing, and a mistake that shows on one value in fifty takes many values to see.

    decisive sizes                always, with one draw of values each
    one edge of each kind         always, at one small size
    other edges, other sizes      as long as the allowance suffices, the edges first; a dear one is passed over for cheaper ones

Decisive are the sizes on both sides of each condition, the cheapest ones that together show all facts (a dim is even, a
condition holds, ...: `facts_of` in domain/telling_points.py), a large corner, and the end of a range that is promised only as
far as compared (exporting/bounded.py: `plan_comparisons`).

The allowance is in estimated operations and not a time, so that every machine makes the same trials.

Edge values are functions, and travel by their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

from anyshape.domain import Sizes
from anyshape.records.verdict import Untried
from anyshape.verify.edge_values import MUCH_NAN, edge_called, edges_of, further_edges_of, has_much_nan
from anyshape.verify.noise import MEASURED_SIZES
from anyshape.verify.request import Allowance, VerifyRequest
from anyshape.verify.tensors import total_elements
from anyshape.verify.trial_runner import Trial

_FIRST = 4
_EDGE_SIZES = 2
_ROW = 3
_CHEAP_DRAWS = 12
_CHEAP_COST = 1_000_000
_MOST_NAN = 100_000  # elements of inputs that get many NaN
SPARED = "left out to keep the comparisons in proportion to the export; thorough=True compares there, too"
RUNS = 2  # of the operations of one call: the module's own, and the file's
_OF_EACH_KIND = ("mixed", "prefix-masks", "highest-integers")
_WIDE = (3, 2)
_IN_DOUBLES = 2  # operations of a call in doubles, by those of the call itself
_SHARE = 4  # one part in so many of the allowance: for the noise floor at a middling size, and for edges at a wider one
_WORTH = 4  # times the operations at the cheapest sizes that a wider size may take for edge values


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
        *_much_nan(request, distinct),
    ]


def _much_nan(request: VerifyRequest, distinct: Sequence[Sizes]) -> list[Trial]:
    """One trial with many NaN, at the smallest size that has enough elements for that; none where none has."""
    seed = request.options.seed
    for sizes in sorted(distinct, key=lambda each: prod(each.values())):
        if total_elements(inputs := request.make(sizes, seed)) > _MOST_NAN:
            return []
        if has_much_nan(inputs, request.legal(sizes)):
            return [Trial(sizes, seed, MUCH_NAN)]
    return []


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


@dataclass(frozen=True)
class Planned:
    """The trials in their order, and what was left out: trials at sizes, and edge values."""

    trials: tuple[Trial, ...]
    spared: tuple[Trial, ...] = ()

    @property
    def untried(self) -> list[Untried]:
        """The sizes at which no trial is left."""
        tried = {tuple(trial.sizes.items()) for trial in self.trials}
        left = {tuple(trial.sizes.items()): trial.sizes for trial in self.spared if trial.edge is None}
        return [Untried(dict(sizes), SPARED) for key, sizes in left.items() if key not in tried]

    @property
    def untried_values(self) -> tuple[str, ...]:
        """The names of the edge values that are not tried at all."""
        tried = {trial.values for trial in self.trials}
        names = dict.fromkeys(trial.values for trial in self.spared if trial.edge is not None)
        return tuple(name for name in names if name not in tried)


def plan_in_proportion(request: VerifyRequest) -> Planned:
    """The trials of a request: all of them if its allowance suffices; else the most informative ones.

    Where the allowance does not suffice for one draw at each size, edge values are made only for the sizes that have them.
    """
    allowance = request.allowance
    if allowance is not None:
        draws = plan_trials(replace(request, edge_values=False, options=replace(request.options, draws=1)))
        if sum(_cost(allowance, trial) for trial in draws) > allowance.total:
            return _thinned(request, allowance, draws)
    return _kept(request, plan_trials(request))


def _kept(request: VerifyRequest, trials: Sequence[Trial]) -> Planned:
    """All of these trials if the allowance suffices for them; else the most informative ones."""
    allowance = request.allowance
    if allowance is None:
        return Planned(tuple(trials))
    count = len({tuple(trial.sizes.items()) for trial in trials})
    is_few = allowance.most_sizes is None or count <= allowance.most_sizes
    if is_few and sum(_cost(allowance, trial) for trial in trials) <= allowance.total:
        return Planned(tuple(trials))
    return _thinned(request, allowance, trials)


def _thinned(request: VerifyRequest, allowance: Allowance, trials: Sequence[Trial]) -> Planned:
    """One draw at each size, with the values that exploring has tried there; edges at one small size."""
    sizes = list({tuple(trial.sizes.items()): trial.sizes for trial in trials}.values())
    decisive = [each for each in sizes if each in allowance.decisive]
    draws = [Trial(each, request.options.seed) for each in sorted(decisive or sizes[:1], key=allowance.of)]
    edges = _edges(request, allowance, sizes) if request.edge_values else []
    first = _first_of_each_kind(edges)
    always = [*draws, *first]
    others = [Trial(each, request.options.seed) for each in sizes if each not in decisive]
    left = allowance.total - sum(_cost(allowance, trial) for trial in always)
    room = None if allowance.most_sizes is None else allowance.most_sizes - len(draws)
    more = [trial for trial in (*edges, *others) if trial not in always]
    taken = _take(more, allowance, left, room)
    return Planned((*always, *taken), tuple(trial for trial in more if trial not in taken))


def _take(trials: Iterable[Trial], allowance: Allowance, left: int, room: int | None) -> list[Trial]:
    taken = []
    for trial in trials:
        cost = _cost(allowance, trial)
        is_full = trial.edge is None and room is not None and room <= 0
        if cost > left or is_full:
            continue
        left -= cost
        room = room if room is None or trial.edge is not None else room - 1
        taken.append(trial)
    return taken


def _edges(request: VerifyRequest, allowance: Allowance, sizes: Sequence[Sizes]) -> list[Trial]:
    at = small_size(sizes, allowance)
    inputs, legal = request.make(at, request.options.seed), request.legal(at)
    found = (*edges_of(inputs, legal), *further_edges_of(inputs, legal))
    return [Trial(at, request.options.seed, edge) for edge in found]


def _first_of_each_kind(edges: Sequence[Trial]) -> list[Trial]:
    """A pattern of floats, of masks and of integers, as far as the inputs have such; else the first edge there is."""
    found = [trial for trial in edges if trial.values in _OF_EACH_KIND]
    return found or list(edges[:1])


def small_size(sizes: Sequence[Sizes], allowance: Allowance) -> Sizes:
    """The cheapest sizes at which every dim is more than 1 or 2, unless these take much more than the cheapest of all.

    Much more is four times as much, or more than a quarter of the allowance for one comparison.
    """
    cheapest = min(sizes, key=allowance.of)
    most = min(_WORTH * allowance.of(cheapest), allowance.total // _SHARE // RUNS)
    for least in _WIDE:
        wide = [each for each in sizes if min(each.values(), default=0) >= least]
        if wide and allowance.of(found := min(wide, key=allowance.of)) <= most:
            return found
    return cheapest


def sizes_of_floor(planned: Planned, allowance: Allowance | None) -> list[Sizes]:
    """The small size at which edges are tried, and the largest whose answer in doubles takes no large part of the allowance."""
    sizes = [trial.sizes for trial in planned.trials if trial.edge is None]
    if allowance is None or not sizes:
        return sizes[:1]
    small = small_size(sizes, allowance)
    affordable = [each for each in sizes if _IN_DOUBLES * allowance.of(each) <= allowance.total // _SHARE]
    middle = max(affordable, key=allowance.of, default=small)
    return [small] if allowance.of(middle) <= allowance.of(small) else [small, middle]


def _cost(allowance: Allowance, trial: Trial) -> int:
    return RUNS * allowance.of(trial.sizes)


NamedTrial = tuple[dict[str, int], int, str]
"""Sizes, seed, and the name of the values."""


@dataclass(frozen=True)
class SharedPlan:
    """What is compared, what is left out, and the sizes at which the noise floor is measured."""

    trials: tuple[NamedTrial, ...]
    spared: tuple[NamedTrial, ...]
    sizes: tuple[Sizes, ...]
    once: tuple[Sizes, ...]
    left_out: tuple[Untried, ...]
    floor: tuple[Sizes, ...]

    def planned(self) -> Planned:
        """The trials, with their edge values."""
        trials, spared = (tuple(map(_read, side)) for side in (self.trials, self.spared))
        return Planned(trials, spared)

    def put_into(self, request: VerifyRequest) -> VerifyRequest:
        """The request with this plan in place of its own."""
        return replace(request, sizes=self.sizes, once=self.once, left_out=self.left_out, allowance=None, plan=self)


def share_plan(request: VerifyRequest) -> SharedPlan | None:
    """The plan of a request; None where some of its edge values cannot be found again by their name."""
    planned = plan_in_proportion(request)
    trials = [*planned.trials, *planned.spared]
    if any(_read(_name(trial)) != trial for trial in trials):
        return None
    return SharedPlan(
        trials=tuple(map(_name, planned.trials)),
        spared=tuple(map(_name, planned.spared)),
        sizes=tuple(map(dict, request.sizes)),
        once=tuple(map(dict, request.once)),
        left_out=tuple(request.left_out),
        floor=tuple(map(dict, choose_floor_sizes(request, planned))),
    )


def choose_floor_sizes(request: VerifyRequest, planned: Planned) -> list[Sizes]:
    """One small and one middling size for the noise floor; where calls are dear, sizes that are compared anyway."""
    is_dear = request.allowance is not None and bool(planned.spared)
    return sizes_of_floor(planned, request.allowance) if is_dear else spread(request.sizes, MEASURED_SIZES)


def _name(trial: Trial) -> NamedTrial:
    return dict(trial.sizes), trial.seed, trial.values


def _read(named: NamedTrial) -> Trial:
    sizes, seed, values = named
    return Trial(sizes, seed, edge_called(values))
