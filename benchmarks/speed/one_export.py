"""One exporter on one model, twice in this process: seconds of wall and of CPU, by stage where the stages are known.

    python benchmarks/speed/one_export.py MODEL EXPORTER FOLDER        prints one line of JSON

EXPORTER is dynamo, torchscript, anyshape or unverified (anyshape with verify="none"). Imports of torch and of the model's
library, and building the model, are not counted; everything that the exporter loads for itself is part of the first export.
"""

from __future__ import annotations

import contextlib
import io
import json
import resource
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import nn
from zoo_models import Case, find_case

EXPORTERS = ("dynamo", "torchscript", "anyshape", "unverified")
OURS = {"anyshape": None, "unverified": "none"}
"""Our two ways to export and their `verify`."""


@dataclass(frozen=True)
class Moment:
    """Two clocks, read together. The second counts the CPU seconds of this process and of its finished children."""

    wall: float
    cpu: float

    @staticmethod
    def now() -> Moment:
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return Moment(time.perf_counter(), time.process_time() + ended.ru_utime + ended.ru_stime)

    def since(self, before: Moment) -> dict[str, float]:
        return {"wall_s": round(self.wall - before.wall, 3), "cpu_s": round(self.cpu - before.cpu, 3)}


def dynamic_axes(case: Case) -> list[tuple[int, ...]]:
    """For each tensor of the inputs the axes whose size differs among the sizes of the case."""
    shapes = [[tuple(leaf.shape) for leaf in pytree.tree_leaves(case.inputs(**sizes))] for sizes in ({}, *case.sizes)]
    return [_varying(seen) for seen in zip(*shapes, strict=True)]


def _varying(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    return tuple(axis for axis, sizes in enumerate(zip(*shapes, strict=True)) if len(set(sizes)) > 1)


def by_dynamo(case: Case, module: nn.Module, path: Path) -> None:
    example = case.inputs()
    structure = pytree.tree_structure(example)
    axes = [dict.fromkeys(each, torch.export.Dim.DYNAMIC) for each in dynamic_axes(case)]
    shapes = pytree.tree_unflatten(axes, structure)
    torch.onnx.export(module, example, str(path), dynamic_shapes=shapes, dynamo=True, verbose=False)


def by_torchscript(case: Case, module: nn.Module, path: Path) -> None:
    example = case.inputs()
    names = [f"input_{index}" for index, _ in enumerate(pytree.tree_leaves(example))]
    axes = {
        name: {axis: f"{name}_{axis}" for axis in each} for name, each in zip(names, dynamic_axes(case), strict=True)
    }
    with torch.no_grad():
        torch.onnx.export(module, example, str(path), input_names=names, dynamic_axes=axes, dynamo=False)


def by_anyshape(case: Case, module: nn.Module, path: Path, **options: Any) -> Any:
    import anyshape

    return anyshape.export(module, case.inputs, path, where=case.where, enforce="load", **options)


class Stages:
    """Adds up seconds by stage from the calls of `progress`."""

    def __init__(self) -> None:
        self._name, self._began = "declaring", Moment.now()
        self.seconds: dict[str, dict[str, float]] = {}

    def progress(self, stage: str, done: int, total: int) -> None:
        name = stage.split(" ")[0]
        if name != self._name:
            self.end()
            self._name = name

    def end(self) -> None:
        now = Moment.now()
        spent = now.since(self._began)
        known = self.seconds.setdefault(self._name, {"wall_s": 0.0, "cpu_s": 0.0})
        self.seconds[self._name] = {clock: round(known[clock] + spent[clock], 3) for clock in spent}
        self._began = now


def measure(case: Case, exporter: str, module: nn.Module, path: Path) -> dict[str, Any]:
    """Seconds of one export; where the exporter refuses, the first line of its error."""
    stages, began = Stages(), Moment.now()
    row: dict[str, Any] = {}
    try:
        with quiet():
            if exporter in OURS:
                result = by_anyshape(case, module, path, verify=OURS[exporter], progress=stages.progress)
                row = {"strategy": result.strategy, "regions": len(result.regions), "tried": len(result.verdict.tried)}
            else:
                {"dynamo": by_dynamo, "torchscript": by_torchscript}[exporter](case, module, path)
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        row = {"error": f"{type(error).__name__}: {lines[0][:300]}"}
    row |= Moment.now().since(began)
    stages.end()
    if exporter in OURS:
        row["stages"] = stages.seconds
    return row


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


def main() -> None:
    name, exporter, folder = sys.argv[1:4]
    case, path = find_case(name), Path(folder) / f"{name}-{exporter}.onnx"
    torch.manual_seed(0)
    torch.set_num_threads(1)
    module = case.build().eval()
    with torch.no_grad(), quiet():
        module(*case.inputs())
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    weights = sum(each.numel() * each.element_size() for each in module.parameters()) / 2**20
    first = measure(case, exporter, module, path)
    second = {} if "error" in first else measure(case, exporter, module, path)
    figures = {"before_mb": round(resident), "weights_mb": round(weights, 1), "first": first, "second": second}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
