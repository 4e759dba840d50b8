"""The plan of a verification in a form that travels: other processes make its trials in shares, with the same inputs.

Edge values are functions, and travel by their names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from anyshape.domain import Sizes
from anyshape.records.verdict import Untried
from anyshape.verify.edge_values import edge_called
from anyshape.verify.noise import MEASURED_SIZES
from anyshape.verify.plan import Planned, plan_in_proportion, sizes_of_floor, spread
from anyshape.verify.request import VerifyRequest
from anyshape.verify.trial_runner import Trial

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
