"""Fewer trials where calls of the module are dear: comparing a file must not take longer than making it.

decisive sizes                always, with one draw of values each
one edge of each kind         always, at one small size
other edges, other sizes      as long as the allowance suffices, the edges first; a dear one is passed over for cheaper ones

The allowance is in estimated operations and not a time, so that every machine makes the same trials.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from anyshape.records.verdict import Sizes, Untried
from anyshape.verify.bench import Trial
from anyshape.verify.plan import plan_trials
from anyshape.verify.request import Allowance, VerifyRequest
from anyshape.verify.values import edges_of, further_edges_of

SPARED = "left out to keep the comparisons in proportion to the export; thorough=True compares there, too"
RUNS = 2  # of the operations of one call: the module's own, and the file's
_OF_EACH_KIND = ("mixed", "prefix-masks", "highest-integers")
_WIDE = (3, 2)
_IN_DOUBLES = 2  # operations of a call in doubles, by those of the call itself
_SHARE = 4  # one part in so many of the allowance: for the noise floor at a middling size, and for edges at a wider one
_WORTH = 4  # times the operations at the cheapest sizes that a wider size may take for edge values


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
    """The trials of a request: all of them if its allowance suffices; else those that tell most.

    Where the allowance does not suffice for one draw at each size, edge values are made only for the sizes that have them.
    """
    allowance = request.allowance
    if allowance is not None:
        draws = plan_trials(replace(request, edge_values=False, options=replace(request.options, draws=1)))
        if sum(_cost(allowance, trial) for trial in draws) > allowance.total:
            return _thinned(request, allowance, draws)
    return _kept(request, plan_trials(request))


def _kept(request: VerifyRequest, trials: Sequence[Trial]) -> Planned:
    """All of these trials if the allowance suffices for them; else those that tell most."""
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
