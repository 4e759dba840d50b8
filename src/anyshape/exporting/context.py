"""What every rung of the ladder works with: options, facts known before capture, the clock of the stages, and the
function that compares. The census of sizes is among the facts: what the user's code does at each size of a dim that it uses as
a text or a key, looked at once in an export, when needed.

The function that compares is in a context variable and no option: an option would have to pass through `anyshape.export`,
whose keywords are for users.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from torch.overrides import TorchFunctionMode, resolve_name

from anyshape.capture.symbolic import Traces
from anyshape.domain import Sizes
from anyshape.explore import (
    Costing,
    EachSize,
    Unfollowed,
    find_extent,
    find_switches,
    find_unfollowed,
    sizes_at_numbers,
)
from anyshape.explore.cost_estimates import OPERATIONS_PER_SECOND
from anyshape.exporting.bounded import Promised, end_where_compared
from anyshape.inputs import Declared
from anyshape.modules.call_limits import TimeLimit
from anyshape.modules.registered import Translation
from anyshape.modules.unfollowed_uses import Seen, Use, watch_uses
from anyshape.modules.user_code import numbers_in_code
from anyshape.modules.watched_comparisons import Comparison, watch_comparisons
from anyshape.records.captured import Captured, Guard
from anyshape.records.explored import Explored
from anyshape.records.export import Attempt
from anyshape.records.runs import StageTime
from anyshape.records.verdict import Verdict
from anyshape.translate.registry import Translator
from anyshape.verify import Reference, VerifyOptions, VerifyRequest
from anyshape.verify.request import Allowance

if TYPE_CHECKING:
    import torch

Tell = Callable[[str, int, int], None]
_SHARE_OF_SWITCHES = 2  # of the comparisons that are in proportion: calls that look for switches
_BEFORE = "reading the inputs"
_COMPARE: ContextVar[CompareFile | None] = ContextVar("compare", default=None)
_SHARE = 4  # one part in so many of all work


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to export: what of the file, what of the checking."""

    opset: int = 18
    translations: Mapping[Any, Translation] = field(default_factory=dict)
    optimize: bool = True
    enforce: str = "graph"
    enforce_values: bool = False
    target: str | None = None
    force: bool = False
    accept_narrower: bool = False
    state: str | None = None
    random: str | None = None
    thorough: bool = False
    strategy: str | None = None
    time_limit_s: float = 600.0
    verify: VerifyOptions = field(default_factory=VerifyOptions)


@dataclass(frozen=True)
class ExportContext:
    """What every rung works with."""

    module: torch.nn.Module
    declared: Declared
    explored: Explored
    reference: Reference
    cost: Costing
    options: Options
    tell: Tell
    translator: Translator
    may_refuse: bool = True  # False: sizes at which the module raises may be traced all the same
    limit: TimeLimit = field(default_factory=TimeLimit)
    counterexamples: tuple[Sizes, ...] = ()  # sizes at which a rung has seen the module do something else
    programs: Traces = field(default_factory=dict)  # which torch.export has made of the module
    refused_before: tuple[Sizes, ...] | None = None  # in lessons so far; None: no more lessons
    blamed: list[Guard] = field(default_factory=list)  # guards that comparisons have shown to separate answers so far
    censuses: list[SizeCensus] = field(default_factory=list)  # the one that was made, if any
    is_part: bool = False  # of a larger file, which is compared as a whole: its own range does not end anywhere

    @cached_property
    def suspects(self) -> list[dict[str, int]]:
        """Sizes at which the user's code compares otherwise, and at its numbers, for rungs that see no conditions."""
        ends = find_extent(self.declared, self.cost).largest
        switches = find_switches(self.declared, ends, self._watch, self._may_watch())
        at_numbers = sizes_at_numbers(self.declared, numbers_in_code(self.module), ends)
        known = [*map(dict, self.counterexamples), *switches]
        return [*known, *(sizes for sizes in at_numbers if sizes not in known)]

    def _may_watch(self) -> Callable[[Sizes], bool]:
        """Whether one more watched call is in proportion, with those before it."""
        left = self.cost.in_proportion // _SHARE_OF_SWITCHES

        def may_watch(sizes: Sizes) -> bool:
            nonlocal left
            left -= self.cost.operations(sizes)
            return left > 0 and not self.cost.excess(sizes)

        return may_watch

    @property
    def census(self) -> SizeCensus:
        """Dims that the user's code uses as a text or a key, and its ways at their sizes: one for all contexts of an export."""
        if not self.censuses:
            seed = self.options.verify.seed
            self.censuses.append(SizeCensus(self.declared, self.reference, self.cost, seed, self._may_watch()))
        return self.censuses[0]

    def _watch(self, sizes: Sizes) -> dict[Comparison, float]:
        return watch_comparisons(lambda: self.reference.run(self.declared.make(sizes, self.options.verify.seed)))

    def learns_from(self, attempt: Attempt) -> bool:
        """Whether a file is right wherever the module answers, and sizes that the module refused give other rules."""
        is_right = attempt.verdict is not None and (attempt.verdict.passed or attempt.verdict.is_broken_off)
        if not is_right or self.refused_before is None or not self.explored.is_explained:
            return False
        return any(sizes not in self.refused_before for sizes in attempt.refused_inside)

    def known_refused(self, captured: Captured) -> tuple[Sizes, ...] | None:
        """The sizes whose refusals give no other rules; None where no rules are learned while a file is compared."""
        learns = self.explored.is_explained and not self.is_part and not captured.raising_regions
        return self.refused_before if learns else None

    def promised(self, captured: Captured) -> Promised:
        """How much of the domain the file of this capture can promise."""
        if self.is_part or captured.has_no_hidden_branch:
            return Promised(self.declared)
        sees_all = captured.is_symbolic and not captured.has_texts and not captured.has_uncaptured_branch
        accept_narrower, unfollowed = self.options.accept_narrower, {} if sees_all else self.census.unfollowed
        return end_where_compared(self.declared, self.explored, self.cost, unfollowed, accept_narrower=accept_narrower)

    def allowance(self, captured: Captured, decisive: Sequence[Sizes]) -> Allowance | None:
        """How much all comparisons of a capture may take; None if there is no limit.

        A capture that may have a hidden branch is promised as far as it is compared: nothing limits that here.
        """
        options = self.options.verify
        is_limited = captured.has_no_hidden_branch or options.most_sizes is not None
        if self.options.thorough or not is_limited:
            return None
        given = int(options.budget_s * OPERATIONS_PER_SECOND)
        total = given if options.is_budget_given else self.cost.in_proportion
        return Allowance(of=self.cost.operations, total=total, decisive=decisive, most_sizes=options.most_sizes)

    def with_counterexamples(self, sizes: Iterable[Sizes]) -> ExportContext:
        """The context with further sizes at which the file of a rung was wrong."""
        return replace(self, counterexamples=(*self.counterexamples, *sizes))

    def within(self, promised: Promised) -> ExportContext:
        """The context with the declaration that can be promised."""
        return replace(self, declared=promised.declared)

    def traceable(self) -> list[dict[str, int]]:
        """The suspects at which a trace is affordable: known failures first, and not more than are in proportion.

        A file whose capture is not proved is compared at the others as well.
        """
        affordable = (sizes for sizes in self.suspects if not self.cost.excess(sizes))
        most = self.cost.most_traces
        return list(affordable if most is None else islice(affordable, len(self.counterexamples) + most))


class StageClock:
    """Call `enter` where a stage begins or goes on; `times` has what each took so far, in the order of first turns."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._stage, self._since = _BEFORE, time.monotonic()

    def enter(self, stage: str) -> None:
        """End the turn of the stage before."""
        if stage == self._stage:
            return
        now = time.monotonic()
        self._seconds[self._stage] = self._seconds.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage, now

    @property
    def times(self) -> tuple[StageTime, ...]:
        """The seconds of each stage, the one that runs included."""
        running = {self._stage: self._seconds.get(self._stage, 0.0) + time.monotonic() - self._since}
        return tuple(StageTime(stage, seconds) for stage, seconds in {**self._seconds, **running}.items())


CompareFile = Callable[[VerifyRequest, "torch.nn.Module"], Verdict]
"""Compares the file of a request, which has a draft of its contract, with the module."""


@contextmanager
def comparing_elsewhere(compare: CompareFile | None) -> Iterator[None]:
    """Files of exports inside are compared by `compare`; None: here, as always."""
    token = _COMPARE.set(compare)
    try:
        yield
    finally:
        _COMPARE.reset(token)


def find_compare() -> CompareFile | None:
    """How files are to be compared; None: here."""
    return _COMPARE.get()


@dataclass(frozen=True)
class SizeCensus:
    """Calls of the module for such dims. `is_affordable`: whether one more watched call is in proportion."""

    declared: Declared
    reference: Reference
    cost: Costing
    seed: int
    is_affordable: Callable[[Sizes], bool]

    @cached_property
    def unfollowed(self) -> Mapping[str, Unfollowed]:
        """The dims that the user's code uses in a way that nothing follows, each with a line."""
        return find_unfollowed(self.declared, self._watch, self.is_affordable)

    @cached_property
    def paths(self) -> Mapping[str, Mapping[int, Hashable]]:
        """Which functions of torch a call comes to, by the sizes of each such dim, the others as in the example."""
        each = EachSize(self.declared, self.cost, self.unfollowed)
        return {name: self._along(name, each) for name in self.unfollowed}

    def _along(self, name: str, each: EachSize) -> dict[int, Hashable]:
        found: dict[int, Hashable] = {}
        left = self.cost.all_work // _SHARE
        for value in each.values(name, each.ends[name]):
            sizes = {**self.declared.example_sizes, name: value}
            left -= self.cost(sizes)
            if left < 0:
                return {}
            if self.declared.domain.contains(sizes):
                found[value] = self._path(sizes)
        return found

    def _path(self, sizes: Sizes) -> Hashable:
        inputs = self.declared.make(sizes, self.seed)
        with _Path() as path:
            self.reference.run(inputs)
        return tuple(path.called)

    def _watch(self, sizes: Sizes) -> dict[Use, Seen]:
        inputs = self.declared.make(sizes, self.seed)  # outside: how the user makes inputs is no part of the model
        return watch_uses(lambda: self.reference.run(inputs))


class _Path(TorchFunctionMode):
    """Notes the names of the functions that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.called: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.called.append(resolve_name(func) or repr(func))
        return func(*args, **(kwargs or {}))
