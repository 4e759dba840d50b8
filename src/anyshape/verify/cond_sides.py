"""Functions of torch.cond that no compared values lead to: each is compared by itself, forced in file and module.

    torch.cond(x.sum() > 1e6, f, g, (x,))   ->   the file with If(True), beside the module where this line takes f

A line is forced in the file by a constant in place of the If's condition, in the module by `ForcedModule`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from math import prod
from os import fspath
from pathlib import Path
from typing import Any

from anyshape.findings import Source
from anyshape.intercept.control_flow import ForcedModule, choices_noted
from anyshape.records.verdict import CondSide
from anyshape.verify.edge_values import with_values
from anyshape.verify.plan import plan_trials, spread
from anyshape.verify.reference import CallInputs, Reference
from anyshape.verify.request import VerifyRequest, graphs_of
from anyshape.verify.run import verify

_SOURCE = "anyshape.source"
_MOST_RUNS = 40
_MOST_FORCED = 8
_SIZES = 4
Sides = dict[Source, bool]


def verify_cond_sides(request: VerifyRequest) -> tuple[CondSide, ...]:
    """What became of each function that no values of the plan lead to; () if all are led to. For a file that passed."""
    lines = _lines_of(request)
    if not lines or not request.sizes:
        return ()
    samples = list(islice(_samples(request), _MOST_RUNS))
    seen: set[tuple[Source, bool]] = set()
    waiting: list[Sides] = [{}]
    found: list[CondSide] = []
    while waiting and len(found) < _MOST_FORCED:
        sides = waiting.pop(0)
        noted = _chosen(request, samples, sides, lines)
        seen |= {(source, side) for source, each in noted.items() for side in each}
        if sides:
            found.append(_compare(request, sides))
        for source in (source for source in noted if _line(source) in lines):
            if (source, False) in seen and (source, True) in seen:
                continue
            other = (source, True) not in seen
            seen.add((source, other))
            waiting.append({**sides, source: other})
    return tuple(found)


def _line(source: Source) -> str:
    """As a node of the file has it."""
    return f"{source.file}:{source.line}"


def _lines_of(request: VerifyRequest) -> set[str]:
    """The lines of the Ifs of the file that have one."""
    import onnx

    if isinstance(request.model, bytes):
        return set()
    model = onnx.load(fspath(request.model), load_external_data=False)
    return {line for line, _ in _conditions(model) if line}


def _conditions(model: Any) -> Iterator[tuple[str, Any]]:
    for graph in graphs_of(model):
        for node in graph.node:
            if node.op_type == "If":
                yield next((each.value for each in node.metadata_props if each.key == _SOURCE), ""), node


def _samples(request: VerifyRequest) -> Iterator[CallInputs]:
    """The inputs that the plan compares, small ones first."""
    for trial in sorted(plan_trials(request), key=lambda trial: prod(trial.sizes.values())):
        ordinary = request.make(trial.sizes, trial.seed)
        yield with_values(ordinary, trial.edge, request.legal(trial.sizes))


def _chosen(
    request: VerifyRequest, samples: list[CallInputs], sides: Sides, lines: set[str]
) -> Mapping[Source, set[bool]]:
    """Which functions each line chose, as far as the samples have to be run to see both of all lines."""
    noted: dict[Source, set[bool]] = {}
    for inputs in samples:
        with choices_noted(noted, sides):
            request.reference.run(inputs, watched=True)
        settled = {_line(source) for source, each in noted.items() if source in sides or len(each) == 2}
        if settled >= lines:
            break
    return noted


def _compare(request: VerifyRequest, sides: Sides) -> CondSide:
    source, side = next(reversed(sides.items()))
    path = _forced_file(Path(fspath(request.model)), sides)  # type: ignore[arg-type]
    options = replace(request.options, stop_at_failure=True, locate_s=0.0, draws=1, progress=None)
    with Reference(ForcedModule(request.reference.module, sides), request.reference.flatten) as reference:
        verdict = verify(
            replace(
                request,
                model=path,
                reference=reference,
                sizes=tuple(spread(request.sizes, _SIZES)),
                once=(),
                left_out=(),
                edge_values=False,
                options=options,
            )
        )
    return CondSide(source, side, verdict.smallest_failure, bool(verdict.tried))


def _forced_file(path: Path, sides: Sides) -> Path:
    """A copy beside the file, whose weights it shares."""
    import onnx
    from onnx import TensorProto, helper

    model = onnx.load(path, load_external_data=False)
    names = {side: f"anyshape/forced_{side}" for side in (False, True)}
    by_line = {_line(source): side for source, side in sides.items()}
    for line, node in _conditions(model):
        if line in by_line:
            node.input[0] = names[by_line[line]]
    for side, name in names.items():
        model.graph.initializer.append(helper.make_tensor(name, TensorProto.BOOL, [], [side]))
    forced = path.with_name(f"forced-{path.name}")
    onnx.save(model, forced)
    return forced
