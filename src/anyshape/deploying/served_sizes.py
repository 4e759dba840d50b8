"""Sizes of a deployment: the domain with an end for every dim, its boundary points, and whether a batch can be put together.

Triton and others put requests together along the first axis, which is right only where rows do not see one another: that is
run here, and believed of no model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from anyshape.checking.contract_inputs import bytes_at, make_inputs
from anyshape.checking.file_evidence import kinds_of
from anyshape.contract import open_model
from anyshape.deploying.deployment import DeployRequest
from anyshape.deploying.profiles import ProfileSearch
from anyshape.domain import Compare, Domain, Number, Ref, Sizes, choose_sizes, dims_of, find_point, range_of
from anyshape.records.contract import Contract
from anyshape.runtime import ChildRunner, RunError
from anyshape.runtime.child_messages import Array
from anyshape.verify.compare import OutputTolerance, compare_outputs

_MOST_BYTES = 1 << 24
_ROWS = 3
_TRIED = 3


def served_domain(request: DeployRequest) -> Domain:
    """The domain, every dim with an end: its own, or the largest size at which the file was compared."""
    domain = request.domain
    for name in domain.names:
        found = range_of(domain, Ref(name))
        if found is not None and not isinstance(found.high, int):
            end = max(request.contract.tested.largest.get(name, 1), domain.dim(name).smallest)
            domain = domain.narrowed(Compare("<=", Ref(name), Number(end)))
    return domain


def boundary_sizes(request: DeployRequest, domain: Domain) -> dict[str, Sizes]:
    """The smallest sizes without an empty input, the usual ones, and the largest whose inputs are not too large.

    Usual sizes at which an input is empty are left out.
    """
    contract = request.contract
    every = (axis for each in contract.input_axes.values() for axis in each)
    axes = list(dict.fromkeys(axis for axis in every if axis is not None and dims_of(axis)))
    filled = domain.narrowed(*(Compare(">=", axis, Number(1)) for axis in axes))
    filled = domain if find_point(filled) is None else filled
    chosen = choose_sizes(filled, cost=lambda sizes: bytes_at(contract, sizes), budget=_MOST_BYTES)
    by_bytes = sorted(chosen.points, key=lambda sizes: bytes_at(contract, sizes))
    found: dict[str, Sizes] = {"smallest": by_bytes[0]}
    for place, sizes in enumerate(request.options.at):
        usual = ProfileSearch(domain, axes).complete(sizes)
        if filled.contains(usual):
            found[f"usual-{place}" if place else "usual"] = usual
    top = ProfileSearch(filled, axes).largest() if axes else by_bytes[-1]
    found["largest"] = top if bytes_at(contract, top) <= _MOST_BYTES else by_bytes[-1]
    kept: dict[str, Sizes] = {}
    for name, sizes in found.items():
        if dict(sizes) not in map(dict, kept.values()):
            kept[name] = sizes
    return kept


def table_rows(path: Path) -> dict[str, int]:
    """For each input of integers: how many rows the smallest table has that they pick from."""
    graph = open_model(path).graph
    return {name: kind.below for name, kind in kinds_of(graph).items()}


@dataclass(frozen=True)
class Batching:
    """The dim by which requests can be put together and its largest size, or why there is none."""

    dim: str = ""
    most: int = 0
    why_not: str = ""


def find_batching(request: DeployRequest, domain: Domain) -> Batching:
    """The dim that is the first axis of all inputs and outputs, if any mix of requests is inside the contract and right."""
    contract = request.contract
    name = _shared_first_axis(contract)
    if name is None:
        return Batching(why_not="no dim is the first axis of every input and output, and of nothing else")
    dim = domain.dim(name)
    if any(name in dims_of(relation) for relation in domain.relations):
        return Batching(why_not=f"a rule of the contract limits {name} together with other dims")
    if dim.min > 1 or dim.multiple > 1 or dim.max is None or dim.max < 2:
        return Batching(why_not=f"{name} does not take every size from 1 on")
    if contract.random or contract.state:
        return Batching(why_not="the file draws random numbers, or carries state from call to call")
    request.tell("running rows apart", 0, 0)
    different = _difference_of_rows(request, domain, name)
    return Batching(name, dim.max) if not different else Batching(why_not=different)


def _shared_first_axis(contract: Contract) -> str | None:
    tensors = (*contract.inputs, *contract.outputs)
    firsts = {tensor.axes[0] if tensor.axes and not tensor.any_rank else None for tensor in tensors}
    if len(firsts) != 1 or not isinstance(first := firsts.pop(), Ref):
        return None
    others = [axis for tensor in tensors for axis in tensor.axes[1:] if axis is not None]
    return None if any(first.name in dims_of(axis) for axis in others) else first.name


def _difference_of_rows(request: DeployRequest, domain: Domain, batch: str) -> str:
    """Why rows that are run together do not give what each gives alone; empty if they do."""
    contract, rows = request.contract, table_rows(request.path)
    count = min(_ROWS, domain.dim(batch).max or _ROWS)
    points = choose_sizes(
        domain, cost=lambda sizes: bytes_at(contract, {**sizes, batch: count}), budget=_MOST_BYTES, limit=_TRIED
    ).points
    tolerances = [OutputTolerance(tensor.name) for tensor in contract.outputs]
    with ChildRunner(request.path) as runner:
        for seed, point in enumerate(points):
            feeds = make_inputs(contract, {**point, batch: count}, seed, rows=rows)
            try:
                together = runner.run(feeds)
                apart = [
                    runner.run({name: array[row : row + 1] for name, array in feeds.items()}) for row in range(count)
                ]
            except RunError as error:
                return f"a batch could not be tried: {str(error).splitlines()[0][:120]}"
            found = compare_outputs([np.concatenate(each) for each in zip(*apart, strict=True)], together, tolerances)
            if found is not None:
                return f"output {found.output!r} of a row depends on the other rows of its batch"
    return ""


def run_requests(request: DeployRequest, points: dict[str, Sizes]) -> tuple[dict[str, dict[str, Array]], list[str]]:
    """Inputs at each of these sizes to which onnxruntime answers, zeros where zeros are legal; and the names of the others."""
    contract, rows = request.contract, table_rows(request.path)
    kept: dict[str, dict[str, Array]] = {}
    refused = []
    with ChildRunner(request.path) as runner:
        for place, (name, sizes) in enumerate(points.items()):
            request.tell("running warm-up requests", place, len(points))
            feeds = _with_zeros(contract, sizes, make_inputs(contract, sizes, rows=rows))
            try:
                runner.run(feeds)
                kept[name] = feeds
            except RunError:
                refused.append(name)
    return kept, refused


def _with_zeros(contract: Contract, sizes: Sizes, feeds: dict[str, Array]) -> dict[str, Array]:
    bounds = contract.value_bounds
    found = dict(feeds)
    for tensor in contract.inputs:
        low, high = bounds[tensor.name].range_at(sizes, tensor.dtype) if tensor.name in bounds else (0.0, 0.0)
        if low <= 0 <= high and feeds[tensor.name].dtype.kind != "O":
            found[tensor.name] = np.zeros_like(feeds[tensor.name])
    return found
