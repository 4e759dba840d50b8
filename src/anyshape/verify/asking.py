"""Choose what to compare: at which sizes, with which inputs, under which names of inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from anyshape.domain import Sizes, choose_sizes, is_about, sizes_near
from anyshape.inputs import Declared
from anyshape.records.captured import Guard
from anyshape.records.verdict import Untried
from anyshape.runtime.custom_node_plan import graphs_inside
from anyshape.verify.reference import Reference
from anyshape.verify.request import VerifyRequest

_CHOOSING = frozenset({"ArgMax", "ArgMin", "TopK", "Hardmax", "NonMaxSuppression", "Unique"})


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


_SIZES = 30
TOO_DEAR = "one comparison takes more work than most may; smaller sizes were compared in its place"
OUT_OF_WORK = "the estimated work of all comparisons would exceed the budget"


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
        """The same with these points, each compared once."""
        known = [*self.sizes, *self.once]
        fresh = [dict(key) for key in dict.fromkeys(tuple(point.items()) for point in points) if dict(key) not in known]
        return replace(self, once=(*self.once, *fresh))

    def with_decisive(self, points: Iterable[Sizes]) -> SizePlan:
        """The same; no budget leaves these points out."""
        return replace(self, decisive=(*self.decisive, *map(dict, points)))

    def with_left_out(self, untried: Iterable[Untried]) -> SizePlan:
        """The same without these sizes."""
        return replace(self, left_out=(*self.left_out, *untried))

    def with_affordable(
        self, points: Iterable[Sizes], excess: Callable[[Sizes], str], cost: Cost, work: int
    ) -> SizePlan:
        """The same with as many of these points as the work suffices for, in their order; the others are left out.

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
    """Those near the example too: a file of another exporter is most at home there, and may be wrong one step away."""
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
