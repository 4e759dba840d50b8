"""Both sides of a branch: where a condition of the user's code cuts the domain, the other side is captured too.

    before  one program under `b > 3`    ->   that, and another under its negation; until the regions cover the domain

Regions are separated by conditions of the user's own code, by sizes that a program holds as constants, and by `borders`:
conditions of torch's own on whose two sides an earlier file differed from the module. The other conditions of torch separate
nothing: verification compares on both sides of them.

A loop over a size makes a region for each size: there is no end of them, and another rung takes over. A side on which the
module raises has no program; the guards that a capture met on its way to the error show where it is:

    if n > 40 and n % 7 == 3: raise ValueError     captured at n = 45     ->     n > 40 and n % 7 == 3
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from anyshape.capture.guards import decide_guards
from anyshape.capture.pinned_sizes import pinned_at_last, pinned_between, pins_size_by_size
from anyshape.capture.symbolic import Stopped, Traces, trace_once
from anyshape.capture.trace_sizes import SparedCalls, choose_trace_sizes
from anyshape.domain import (
    TRUE,
    Compare,
    Condition,
    Domain,
    Number,
    Ref,
    Sizes,
    Undecided,
    all_of,
    any_of,
    holds,
    negate,
    smallest_known_point,
    smallest_point,
    substitute,
)
from anyshape.inputs import Declared
from anyshape.modules.raised_errors import reads_values
from anyshape.records.captured import Captured, Guard, RaisingRegion, Region, asserts

if TYPE_CHECKING:
    import torch

FEW_REGIONS = 2
MOST_REGIONS = 16
_IN_A_ROW = 3  # sizes of a dim
_MOST_NODES = 6000  # of all captures that only look for further conditions


def raising_region(stopped: Stopped, sizes: Mapping[str, int]) -> RaisingRegion | None:
    """Where in the domain the module raises as it does at these sizes; None if the capture does not show it."""
    opened = [guard for guard in stopped.guards if guard.status != "proved"]
    conditions = [guard.condition for guard in opened if guard.condition is not None]
    if len(conditions) < len(opened) or not conditions or not all(holds(each, sizes) for each in conditions):
        return None
    return RaisingRegion(all_of(conditions), dict(sizes))


def find_raising_regions(
    module: torch.nn.Module, declared: Declared, refused: Iterable[Mapping[str, int]], traces: Traces
) -> Iterator[RaisingRegion]:
    """The regions around these refused sizes, as far as captures show them. `traces` keeps the captures."""
    found: list[RaisingRegion] = []
    for sizes in refused:
        if any(holds(part.condition, sizes) for part in found):
            continue
        traced = trace_once(module, declared, sizes, traces)
        part = raising_region(traced, sizes) if isinstance(traced, Stopped) else None
        if part is not None:
            found.append(part)
            yield part


Capture = Callable[[Sizes], Captured | Stopped]


class EndlessRegions(Exception):
    """There is a region for each size: the condition `guard`, which separates them, is that of a loop."""

    def __init__(self, guard: Guard) -> None:
        super().__init__(guard.text)
        self.guard = guard


class ValuesDecideElsewhere(Exception):
    """At other sizes than those of the first program, what runs depends on values: `error` is torch's."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def cover_domain(
    first: Captured,
    declared: Declared,
    capture: Capture,
    answers: Callable[[Sizes], bool],
    borders: tuple[Guard, ...],
    spared: SparedCalls,
) -> Captured:
    """Programs for all of the domain; the first one alone where there would be too many.

    Raises EndlessRegions and ValuesDecideElsewhere.

    `borders` are conditions that verification has shown to separate outputs. Without any, the file gets only few programs:
    many conditions in a model's code choose between ways to the same answer. All ways are captured nevertheless, as far
    as that is affordable, since each may have conditions of its own. Ways that assert something about values are all kept:
    comparisons of answers do not show an assertion that is missing.
    """
    parts = _Parts(first, declared, frozenset(guard.condition for guard in borders), spared)
    is_whole = parts.find_all(capture, answers)
    raising = tuple(parts.raising)
    if len(parts.regions) == 1 and is_whole:
        return replace(first, raising_regions=raising)
    takes_all = bool(borders) or any(map(_has_assertions, parts.regions))
    if not is_whole or len(parts.regions) > (MOST_REGIONS if takes_all else FEW_REGIONS):
        alone = one_program_for_all(first, (*parts.regions, *raising), declared.domain)
        return replace(alone, raising_regions=raising, has_uncaptured_branch=not is_whole)
    domain, regions = declared.domain, []
    for region in parts.regions:
        regions.append(_redecided(region, domain.with_relations(region.condition)))
        domain = domain.with_relations(negate(region.condition))  # the first region whose condition holds answers
    return replace(first, regions=tuple(regions), raising_regions=raising)


def _has_assertions(region: Region) -> bool:
    return any(asserts(node) for node in region.program.graph.nodes)


def one_program_for_all(first: Captured, parts: Sequence[Region | RaisingRegion], domain: Domain) -> Captured:
    """The first region's program for the whole domain, its guards decided there; comparisons show whether it is right.

    The conditions of the other parts are kept as guards, so that the file is compared on both sides of each; so are those that
    cannot be written in the user's dims, and the notes of all parts.
    """
    kept = [part for part in parts if isinstance(part, Region)]
    notes = tuple(dict.fromkeys(note for part in (first.regions[0], *kept) for note in part.notes))
    alone = replace(first.regions[0], condition=TRUE, notes=notes)
    elsewhere: list[Guard] = []
    for at, part in enumerate(parts[1:], 1):
        before = [part.condition for part in parts[:at]]
        if isinstance(part, RaisingRegion):
            elsewhere.append(Guard(negate(part.condition), "", None, by_user=True))
            continue
        guards = [(guard, guard.condition) for guard in _separating(part, frozenset()) if guard.condition is not None]
        elsewhere += [replace(guard, condition=any_of([*before, condition])) for guard, condition in guards]
        elsewhere += [guard for guard in part.guards if guard.condition is None and guard not in alone.guards]
    region = _redecided(replace(alone, guards=(*alone.guards, *elsewhere)), domain)
    return replace(first, regions=(region,))


class _Parts:
    """The parts of a domain that captures have shown: regions with a program, and those in which the module raises."""

    def __init__(
        self, first: Captured, declared: Declared, borders: frozenset[Condition | None], spared: SparedCalls
    ) -> None:
        self._outputs = _outputs(first)
        self._declared = declared
        self._borders = borders
        self._spared = spared
        self._usual = _usual_conditions(first)
        self.regions = [_bounded(first.regions[0], borders)]
        self.raising: list[RaisingRegion] = []

    def find_all(self, capture: Capture, answers: Callable[[Sizes], bool]) -> bool:
        """Capture part after part. Whether they cover the domain; False where one cannot be captured."""
        nodes = len(self.regions[0].program.graph.nodes)
        most = MOST_REGIONS if self._borders else max(FEW_REGIONS, min(MOST_REGIONS, _MOST_NODES // nodes))
        try:
            while (left := self._uncovered()) is not None:
                self._stop_at_pinned_sizes()
                if len(self.regions) + len(self.raising) >= most:
                    return False
                sizes = self._choose_sizes(self._spared.answers_near(left, answers)) or left
                if not self._add(capture(sizes), sizes, answers):
                    return False
        except Undecided:
            return False
        return True

    def _choose_sizes(self, answers: Callable[[Sizes], bool]) -> dict[str, int] | None:
        """Sizes of a further part, with no accident that the first program avoids, where the part has such sizes."""
        outside = [negate(condition) for condition in self._conditions()]
        sizes = None
        if self._usual and smallest_known_point(self._declared.domain, *outside, *self._usual) is not None:
            sizes = choose_trace_sizes(self._declared, answers, *outside, *self._usual)
        return sizes or choose_trace_sizes(self._declared, answers, *outside)

    def _uncovered(self) -> dict[str, int] | None:
        """Sizes that no part has; None when the parts cover the domain. Raises Undecided: not knowing is not covering."""
        return smallest_point(self._declared.domain, *map(negate, self._conditions()))

    def _conditions(self) -> list[Condition]:
        return [*(region.condition for region in self.regions), *(part.condition for part in self.raising)]

    def _stop_at_pinned_sizes(self) -> None:
        """Raise EndlessRegions where the regions found so far hold at one size of a dim each, as those of a loop do."""
        separating = (guard for region in reversed(self.regions) for guard in _separating(region, self._borders))
        is_decisive = len(self.regions) <= FEW_REGIONS or self._borders
        if is_decisive and pins_size_by_size(self.regions, self._declared.domain):
            raise EndlessRegions(next(separating))
        if len(self.regions) > FEW_REGIONS and (pin := pinned_between(self.regions, self._declared.domain)):
            raise EndlessRegions(replace(next(separating), condition=pin))
        if any(map(self._has_a_row, pinned_at_last(self.regions, self._declared.domain))):
            guards = list(separating)
            raise EndlessRegions(next(filter(_is_equality, guards), guards[0]))

    def _has_a_row(self, name: str) -> bool:
        """Whether a few sizes of a dim in a row are in no part: beside the entries of a table there is no such gap."""
        left, step = [negate(condition) for condition in self._conditions()], self._declared.domain.dim(name).multiple
        rows = [[substitute(each, {name: Ref(name) + step * at}) for each in left] for at in range(_IN_A_ROW)]
        return smallest_known_point(self._declared.domain, *(each for row in rows for each in row)) is not None

    def _add(self, found: Captured | Stopped, sizes: Sizes, answers: Callable[[Sizes], bool]) -> bool:
        """Whether the capture at these sizes gave another part of the domain."""
        if isinstance(found, Stopped):
            is_answered = answers(sizes)
            if is_answered and reads_values(found.error):
                raise ValuesDecideElsewhere(found.error)
            part = None if is_answered else raising_region(found, sizes)
            self.raising += [part] if part is not None else []
            return part is not None
        region = _bounded(found.regions[0], self._borders)
        if _outputs(found) != self._outputs or not holds(region.condition, sizes):
            return False  # with another structure, or in other dtypes, no one file can answer both
        self.regions.append(replace(region, outputs=found.outputs))
        return True


def _is_equality(guard: Guard) -> bool:
    return isinstance(guard.condition, Compare) and guard.condition.op == "=="


def _usual_conditions(first: Captured) -> list[Condition]:
    """Conditions of torch's own that an expression is not some number, such as the 1 that broadcasts."""
    return [
        guard.condition
        for guard in first.guards
        if guard.status != "proved"
        and not guard.by_user
        and isinstance(guard.condition, Compare)
        and guard.condition.op == "!="
        and isinstance(guard.condition.right, Number)
    ]


def _outputs(captured: Captured) -> list[tuple[str, str]]:
    return [(output.path, output.dtype) for output in captured.outputs]


def _bounded(region: Region, borders: frozenset[Condition | None]) -> Region:
    conditions = [guard.condition for guard in _separating(region, borders) if guard.condition is not None]
    return replace(region, condition=all_of(conditions))


def _redecided(region: Region, domain: Domain) -> Region:
    """The region with its guards decided where it answers, not on all of the domain."""
    return replace(region, guards=decide_guards(region.guards, domain))


def _separating(region: Region, borders: frozenset[Condition | None]) -> list[Guard]:
    return [
        guard
        for guard in region.guards
        if guard.condition is not None
        and guard.status != "proved"
        and (guard.by_user or guard.condition in borders or negate(guard.condition) in borders)
    ]
