"""What to ask of a file: at which sizes, and with which inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from anyshape.domain import choose_sizes, is_about, sizes_near
from anyshape.inputs import Declared
from anyshape.records.captured import Guard
from anyshape.records.verdict import Sizes
from anyshape.verify.reference import Reference
from anyshape.verify.request import VerifyRequest

_SIZES = 30


@dataclass(frozen=True)
class Cost:
    """What a comparison at some sizes costs, what most may cost, and what a few may."""

    of: Callable[[Sizes], int]
    cheap: int
    affordable: int


def sizes_to_verify(declared: Declared, guards: Iterable[Guard], cost: Cost, seed: int) -> list[dict[str, int]]:
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
    return [dict(point) for point in {tuple(sizes.items()): sizes for sizes in (*against, *chosen)}]


def sizes_to_check(declared: Declared, cost: Cost, seed: int) -> list[dict[str, int]]:
    """Those near the example too: a file of another exporter is most at home there, and may be wrong one step away."""
    chosen = sizes_to_verify(declared, (), cost, seed)
    near = [point for point in sizes_near(declared.domain, declared.example_sizes) if cost.of(point) <= cost.affordable]
    return [*chosen, *(point for point in near if point not in chosen)]


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
