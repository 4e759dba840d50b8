"""Latency and memory of a file over the sizes of its domain: each size in a process of its own, the module beside it.

declared -> sizes, from small to large -> [ file timed in a child, module timed here ] -> rows
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from anyshape.contract.metadata import find_contract, match_file
from anyshape.domain import Sizes
from anyshape.explore import costing
from anyshape.exporting.context import Tell
from anyshape.inputs import Declared, flatten_outputs
from anyshape.records.stripping import Benched, BenchRow
from anyshape.runtime.child_messages import RuntimeFailed
from anyshape.runtime.timing import TimingRequest, time_calls
from anyshape.verify import Reference
from anyshape.verify.asking import Cost, plan_sizes
from anyshape.verify.reference import Answer, CallInputs

__is_entrance__ = True

if TYPE_CHECKING:
    import torch

_EAGER_CALLS = 3


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """`sizes` are measured instead of chosen ones; `seconds` is the time of the calls at one of them."""

    sizes: Sequence[Sizes] = ()
    count: int = 5
    providers: tuple[str, ...] = ()
    threads: int = 1
    seconds: float = 1.0
    seed: int = 0


def bench_file(path: Path, module: torch.nn.Module, declared: Declared, options: BenchOptions, tell: Tell) -> Benched:
    """Measure the file beside its module."""
    chosen = list(options.sizes) or choose_bench_sizes(path, module, declared, options)
    rows = []
    with Reference(module, flatten_outputs) as reference:
        for done, sizes in enumerate(chosen):
            tell("measuring", done, len(chosen))
            rows.append(_measure(path, reference, declared, sizes, options))
    return Benched(path=str(path), rows=tuple(rows), providers=options.providers, threads=options.threads)


def choose_bench_sizes(
    path: Path, module: torch.nn.Module, declared: Declared, options: BenchOptions
) -> list[dict[str, int]]:
    """Sizes of the contract from the least work to the most, at about equal steps among those that take little time."""
    cost = costing(module, declared)
    plan = plan_sizes(declared, (), Cost(cost, cost.cheap, cost.affordable), options.seed)
    contract = find_contract(path)
    inside = [sizes for sizes in plan.sizes if contract is None or contract.domain.contains(sizes)]
    ordered = sorted(inside or [dict(declared.example_sizes)], key=lambda sizes: (cost(sizes), tuple(sizes.values())))
    last = len(ordered) - 1
    places = sorted({round(last * step / max(1, options.count - 1)) for step in range(options.count)})
    return [dict(ordered[place]) for place in places]


def _measure(
    path: Path, reference: Reference, declared: Declared, sizes: Mapping[str, int], options: BenchOptions
) -> BenchRow:
    inputs = declared.make(sizes, options.seed)
    feeds = match_file(path, declared).rename(declared.feeds(inputs))
    elements = sum(math.prod(array.shape) for array in feeds.values())
    request = TimingRequest(
        path=str(path.absolute()),
        feeds=feeds,
        providers=options.providers,
        threads=options.threads,
        seconds=options.seconds,
    )
    eager_ms = _eager_ms(reference, inputs, options.threads)
    try:
        return BenchRow(sizes=dict(sizes), elements=elements, eager_ms=eager_ms, timing=time_calls(request))
    except RuntimeFailed as error:
        return BenchRow(sizes=dict(sizes), elements=elements, eager_ms=eager_ms, error=error.message)


def _eager_ms(reference: Reference, inputs: CallInputs, threads: int) -> float:
    """The least time of a few calls of the module, with as many threads as the file has."""
    import torch

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads or before)
        runs = [reference.run(inputs) for _ in range(_EAGER_CALLS)]
    finally:
        torch.set_num_threads(before)
    return 1000 * min((run.seconds for run in runs if isinstance(run, Answer)), default=math.nan)
