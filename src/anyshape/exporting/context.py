"""What every rung of the ladder works with: options, facts known before capture, the clock of the stages, and the
function that compares.

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

from anyshape.capture.symbolic import Traces
from anyshape.domain import Sizes
from anyshape.explore import (
    Costing,
    Unfollowed,
    find_extent,
    find_switches,
    sizes_at_numbers,
)
from anyshape.explore.cost_estimates import OPERATIONS_PER_SECOND
from anyshape.exporting.bounded import Promised, end_where_compared
from anyshape.exporting.size_census import SizeCensus
from anyshape.findings import Source
from anyshape.inputs import Declared
from anyshape.modules.call_limits import TimeLimit
from anyshape.modules.compiled_parts import find_unwatched
from anyshape.modules.numbers_in_code import numbers_in_code
from anyshape.modules.registered import Translation
from anyshape.modules.watched_comparisons import Comparison, watch_comparisons
from anyshape.records.captured import Captured, Guard, Note
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

    @cached_property
    def unwatched(self) -> Mapping[str, Source | None]:
        """The parts of the module in compiled code, with the lines that name them."""
        return find_unwatched(self.module)

    @cached_property
    def compiled(self) -> tuple[Note, ...]:
        """Notes about the parts in compiled code: what they do with the size of a dim, with any of them, is not seen."""
        lines = (line or Source("compiled code", 0, name) for name, line in self.unwatched.items())
        declared = self.declared
        return tuple(Note("compiled", each, declared.example_sizes, dims=declared.domain.names) for each in lines)

    def unfollowed(self, captured: Captured | None = None) -> dict[str, Unfollowed]:
        """Dims that the user's code uses in a way that nothing follows, at the example and wherever a program was captured.

        Where it is not known on which dims a note of the capture depends, each of them may be such a dim.
        """
        return self._used_at(self.notes_for(captured))

    def _used_at(self, notes: Sequence[Note]) -> dict[str, Unfollowed]:
        """The dims of `unfollowed` under these notes."""
        found = self.census.unfollowed([*(note.met_at for note in notes), *self._captured_at])
        for note in notes:
            at_note = () if note.dims else self.census.unfollowed([note.met_at])
            for name in note.dims or at_note or self.declared.domain.names:
                use = Unfollowed(note.source, is_rest=False, near=(note.met_at,))
                found[name] = found[name].and_also(use) if name in found else use
        return found

    def notes_for(self, captured: Captured | None) -> list[Note]:
        """The notes that count for a capture: its own if it saw all of the user's code, else those of every program as well."""
        own = captured.notes if captured is not None else ()
        notes = list(dict.fromkeys((*own, *self.compiled)))
        if captured is not None and captured.is_symbolic and not captured.has_uncaptured_branch:
            return notes
        others = (note for program in self.programs.values() for note in program.notes)
        return [*notes, *(note for note in others if self.counts(note))]

    def counts(self, note: Note) -> bool:
        """Whether a note holds something against a capture: calls do not show that nothing depends on its line."""
        return not self.census.refutes(note)

    def unfollowed_paths(self) -> Mapping[str, Mapping[int, Hashable]]:
        """For each such dim, which functions of torch a call comes to, by its size."""
        return self.census.paths(self._used_at(self.compiled))

    @property
    def _captured_at(self) -> list[Sizes]:
        """The sizes at which torch.export has followed the module: each may be on another way through its code."""
        names = set(self.declared.domain.names)
        return [dict(key) for key in self.programs if {name for name, _ in key} == names]

    def _watch(self, sizes: Sizes) -> dict[Comparison, float]:
        inputs = self.declared.make(sizes, self.options.verify.seed)
        return watch_comparisons(lambda: self.reference.run(inputs, watched=True))

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
        # A condition that is no line of the user's may have made a number of a symbol (a hashed key): what follows is unseen.
        is_seen = all(guard.by_user or guard.status == "proved" for guard in captured.guards)
        sees_all = captured.is_symbolic and is_seen and not captured.notes and not captured.has_uncaptured_branch
        accept_narrower, unfollowed = self.options.accept_narrower, {} if sees_all else self.unfollowed(captured)
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
