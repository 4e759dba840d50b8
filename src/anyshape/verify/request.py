"""The request to verify a file, and what it is made of: options, an allowance of work, and a plan of the sizes to compare.

VerifyRequest, VerifyOptions, Allowance      the records
plan_sizes, plan_check -> SizePlan           the sizes for a file of ours, and for any file
chooses_among_values, file_bytes             facts about the file that decide how it is compared
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from anyshape.domain import Condition, Sizes, choose_sizes, is_about, sizes_near
from anyshape.inputs import Declared
from anyshape.records.captured import Guard
from anyshape.records.verdict import Untried
from anyshape.runtime.child_messages import Array
from anyshape.runtime.custom_node_plan import graphs_inside
from anyshape.runtime.runtimes import ONNXRUNTIME
from anyshape.runtime.session import CPU
from anyshape.verify.edge_values import Legal, lowest_integers, positions_of
from anyshape.verify.reference import CallInputs, Reference

if TYPE_CHECKING:
    from anyshape.verify.plan import SharedPlan

_DRAWS_LOOKED_AT = 4
_CHOOSING = frozenset({"ArgMax", "ArgMin", "TopK", "Hardmax", "NonMaxSuppression", "Unique"})
_SIZES = 30
TOO_DEAR = "one comparison takes more work than most may; smaller sizes were compared in its place"
OUT_OF_WORK = "the estimated work of all comparisons would exceed the budget"


class Contains(Protocol):
    """A domain, as far as shrinking is concerned."""

    def contains(self, sizes: Mapping[str, int]) -> bool: ...


Make = Callable[[Sizes, int], CallInputs]
Feeds = Callable[[CallInputs], Mapping[str, Array]]
Progress = Callable[[int, int, Sizes], None]
Ranges = Callable[[Sizes], Mapping[str, tuple[float, float]]]


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """At least `draws` of random values are made at a few sizes, and one at each of the others.

    `rtol` and `atol` replace the noise floor. `budget_s` is the estimated time of all comparisons, by which the sizes are
    chosen before the first one runs; `clock_s` is the real time after which the verification ends, with sizes left over.
    `time_limit_s` is for one run in onnxruntime (more when eager itself is slow). `threads` are those of one operator there:
    1, unless given, or as many as torch has here for a file that is too large for several children. `stop_at_failure` ends
    with the first failure: where only its existence matters. `most_failures` ends with so many. `ends_outside` is a condition
    on sizes: the comparisons end with the first failure for random values at sizes at which it does not hold, since another
    file is made then. `is_budget_given`: the user gave `budget_s`, which then counts in place of a share of the export.
    `most_sizes` limits the sizes of an export to so many, unless more are decisive. `locate_s` is for finding the node at
    fault; 0 leaves that out. `providers` are onnxruntime's, in their order. `is_random`: the model draws random numbers, so
    its answers and the file's are compared as samples. `is_skipped`: nothing is compared. `share` is (place, count): of the
    planned trials every count-th is made, from that place on. `known_refused`: the comparisons end where the module raises at
    sizes of the domain that are not among these, since other rules are learned then. Without `in_doubles` no answer in double
    precision counts: numbers of sizes are others there. `runtime` is one of RUNTIMES; `runs` is another form of the file.
    """

    draws: int = 3
    seed: int = 0
    budget_s: float = 60.0
    is_budget_given: bool = False
    most_sizes: int | None = None
    clock_s: float = 300.0
    rtol: float | None = None
    atol: float | None = None
    threads: int | None = None
    time_limit_s: float = 30.0
    memory_limit: int | None = None
    shrink_tries: int = 40
    stop_at_failure: bool = False
    most_failures: int | None = None
    ends_outside: Condition | None = None
    locate_s: float = 10.0
    is_random: bool = False
    providers: tuple[str, ...] = (CPU,)
    runtime: str = ONNXRUNTIME.name
    runs: str | None = None
    is_skipped: bool = False
    share: tuple[int, int] = (0, 1)
    known_refused: tuple[Sizes, ...] | None = None
    in_doubles: bool = True
    progress: Progress | None = None

    @property
    def run_limit_s(self) -> float:
        """The seconds of one run in onnxruntime: no run may take longer than the whole verification."""
        return min(self.time_limit_s, self.clock_s)

    def with_progress(self, tell: Callable[[str, int, int], None]) -> VerifyOptions:
        """The same options; each comparison is reported as a step of the stage "comparing"."""
        return replace(self, progress=lambda done, total, sizes: tell("comparing", done, total))


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """How many operations all comparisons may take together; `of` estimates those of one call of the module.

    The sizes in `decisive` are compared whatever they take. With `most_sizes` no more sizes are compared than so many, unless
    more are decisive.
    """

    of: Callable[[Sizes], int]
    total: int
    decisive: Sequence[Sizes] = ()
    most_sizes: int | None = None


@dataclass(frozen=True, kw_only=True)
class VerifyRequest:
    """`model` is a file, or its bytes. `sizes` are sorted, the most informative first; those in `once` are compared with
    one draw of values each; `left_out` goes into the verdict as it is.

    `make(sizes, seed)` makes inputs, the same ones each time; `feeds` turns them into what the file is fed. `example`
    is the sizes from which the file was made, as far as they are known: those that may be frozen in it. `operators` are the
    functions of its custom nodes, `mylib::Scale`, if it has any. `named` gives the inputs by the names that `ranges` uses, if
    these are not the file's; `ranges(sizes)` has the lowest and highest legal value of inputs, where declared.
    Without `edge_values`, inputs have only the values that `make` gives. Without an `allowance` everything is compared.
    `plan` is a plan that another process has made, in place of one that is made of all this.
    """

    model: str | PathLike[str] | bytes
    output_names: Sequence[str]
    reference: Reference
    make: Make
    feeds: Feeds
    domain: Contains
    sizes: Sequence[Sizes]
    once: Sequence[Sizes] = ()
    left_out: Sequence[Untried] = ()
    example: Sizes = field(default_factory=dict)
    operators: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    options: VerifyOptions = field(default_factory=VerifyOptions)
    named: Feeds | None = None
    ranges: Ranges = field(default=lambda sizes: {})
    edge_values: bool = True
    allowance: Allowance | None = None
    plan: SharedPlan | None = None

    def legal(self, sizes: Sizes) -> Legal:
        """Which tensor of the inputs is which input of the file, and its legal values at these sizes."""
        return Legal(self._positions, self.ranges(sizes))

    def lowest_shown(self) -> dict[str, int]:
        """The lowest integer that `make` gives to each input whose values are not declared, as far as they vary."""
        draws = (self.make(self._small, self.options.seed + draw) for draw in range(_DRAWS_LOOKED_AT))
        lowest, declared = lowest_integers(draws), self.ranges(self._small)
        return {name: lowest[at] for name, at in self._positions.items() if at in lowest and name not in declared}

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        return positions_of(self.make(self._small, self.options.seed), self.named or self.feeds)

    @property
    def _small(self) -> Sizes:
        """The smallest sizes at which no dim is 1, if there are any."""
        wide = [sizes for sizes in self.sizes if min(sizes.values(), default=0) > 1] or self.sizes
        return min(wide, key=lambda sizes: prod(sizes.values()), default=self.example)


def chooses_among_values(path: str) -> bool:
    """Whether an operator of the file picks positions by value, so that equal values leave it free which to pick."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    return any(node.op_type in _CHOOSING for graph in graphs_of(model) for node in graph.node)


def file_bytes(path: str) -> int:
    """Of the file and of what lies beside it: weights may be there."""
    return sum(each.stat().st_size for each in Path(path).parent.glob(f"{Path(path).name}*"))


def graphs_of(model: Any) -> Iterator[Any]:
    """Every graph and function of a model, those inside of nodes too."""
    return (inner for graph in (model.graph, *model.functions) for inner in graphs_inside(graph))


@dataclass(frozen=True)
class Cost:
    """What a comparison at some sizes costs, what most may cost, and what a few may."""

    of: Callable[[Sizes], int]
    cheap: int
    affordable: int


@dataclass(frozen=True)
class SizePlan:
    """Sizes to compare with several draws of values, sizes to compare once, and sizes that are left out, with reasons.

    Every size that was proposed is in one of the three. `decisive` are the sizes that are always compared.
    """

    sizes: tuple[dict[str, int], ...]
    once: tuple[dict[str, int], ...] = ()
    left_out: tuple[Untried, ...] = ()
    decisive: tuple[dict[str, int], ...] = ()

    def with_once(self, points: Iterable[Sizes]) -> SizePlan:
        """The plan with these points, each compared once."""
        known = [*self.sizes, *self.once]
        fresh = [dict(key) for key in dict.fromkeys(tuple(point.items()) for point in points) if dict(key) not in known]
        return replace(self, once=(*self.once, *fresh))

    def with_decisive(self, points: Iterable[Sizes]) -> SizePlan:
        """The plan, in which no budget leaves these points out."""
        return replace(self, decisive=(*self.decisive, *map(dict, points)))

    def with_left_out(self, untried: Iterable[Untried]) -> SizePlan:
        """The plan without these sizes."""
        return replace(self, left_out=(*self.left_out, *untried))

    def with_affordable(
        self, points: Iterable[Sizes], excess: Callable[[Sizes], str], cost: Cost, work: int
    ) -> SizePlan:
        """The plan with as many of these points as the work suffices for, in their order; the others are left out.

        `excess` is the limit that a point exceeds, in words, or "".
        """
        taken: list[Sizes] = []
        left: list[Untried] = []
        spent = 0
        known = [*self.sizes, *self.once]
        for point in points:
            if dict(point) in known:
                continue
            why = excess(point)
            if not why and spent + cost.of(point) > work:
                why = OUT_OF_WORK
            if why:
                left.append(Untried(dict(point), why))
            else:
                spent += cost.of(point)
                taken.append(point)
        return self.with_once(taken).with_left_out(left)


def plan_sizes(declared: Declared, guards: Iterable[Guard], cost: Cost, seed: int) -> SizePlan:
    """The most telling sizes first: those that break a guard which the domain does not imply."""
    names = declared.domain.names
    open_guards = [
        guard
        for guard in guards
        if guard.status != "proved"
        and guard.condition is not None
        and is_about(guard.condition, names)  # a loop's body has conditions on its counter, too
    ]
    chosen = choose_sizes(
        declared.domain,
        example=declared.example_sizes,
        conditions=[guard.condition for guard in open_guards if guard.condition is not None],
        cost=cost.of,
        budget=cost.cheap,
        limit=_SIZES,
        seed=seed,
    )
    unsaid = [guard for guard in guards if guard.condition is None]
    counterexamples = [sizes for guard in (*open_guards, *unsaid) for sizes in (guard.counterexample, *guard.further)]
    against = [{name: sizes[name] for name in names} for sizes in counterexamples if sizes]
    inside = [sizes for sizes in against if declared.domain.contains(sizes)]
    points = tuple(dict(point) for point in {tuple(sizes.items()): sizes for sizes in (*inside, *chosen.points)})
    left_out = tuple(Untried(dict(sizes), TOO_DEAR) for sizes in chosen.too_dear)
    return SizePlan(points, (), left_out, decisive=tuple(map(dict, inside)))


def plan_check(declared: Declared, cost: Cost, seed: int) -> SizePlan:
    """The plan for any file, with sizes near the example: a file of another exporter may be wrong one step away from it."""
    plan = plan_sizes(declared, (), cost, seed)
    near = [point for point in sizes_near(declared.domain, declared.example_sizes) if point not in plan.sizes]
    cheap = tuple(point for point in near if cost.of(point) <= cost.affordable)
    left = [Untried(dict(point), TOO_DEAR) for point in near if point not in cheap]
    return replace(plan, sizes=(*plan.sizes, *cheap)).with_left_out(left)


def request_for(model: Path, names: Iterable[str], declared: Declared, reference: Reference) -> VerifyRequest:
    return VerifyRequest(
        model=model,
        output_names=tuple(names),
        reference=reference,
        make=declared.make,
        feeds=declared.feeds,
        domain=declared.domain,
        sizes=(),
        example=declared.example_sizes,
        named=declared.feeds,
        ranges=declared.value_ranges,
        edge_values=not declared.only_given_values,
    )
