"""Both exporters on the models of a source, and a judge of its own: plain onnxruntime beside eager, at sizes it chooses."""

from __future__ import annotations

import copy
import inspect
import random
import resource
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyshape.domain import dims_of, holds
from anyshape.domain.parse import parse_condition
from anyshape.sources import Part

_TOLERANCE = 1e-4
_MOST = 40


def cpu_seconds(work: Callable[[], Any]) -> tuple[Any, float]:
    """What the work gives, and the CPU seconds of this process and its children that it took."""

    def spent() -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(each.ru_utime + each.ru_stime for each in used)

    before = spent()
    given = work()
    return given, spent() - before


def export_with_torch(part: Part, path: Path) -> str:
    """`torch.onnx.export(dynamo=True)` with every axis dynamic that the function of sizes moves; why it failed, or ''."""
    inputs = part.inputs()
    with torch.no_grad():
        answer = part.model(**inputs) if isinstance(inputs, Mapping) else part.model(inputs)
    outputs = [name for name, _ in _flat(answer)] if isinstance(answer, Mapping) else part.output_names
    args, kwargs = ((), inputs) if isinstance(inputs, Mapping) else ((inputs,), {})
    try:
        torch.onnx.export(
            part.model,
            args,
            path,
            kwargs=kwargs,
            input_names=[name for name, _ in _flat(inputs)] if kwargs else part.input_names,
            output_names=outputs,
            dynamic_shapes=_dynamic_shapes(part),
            dynamo=True,
            verbose=False,
        )
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:120]}"
    return ""


def _dynamic_shapes(part: Part) -> Any:
    """Dim.DYNAMIC for each axis whose length changes with the sizes, in the structure of the inputs."""
    sizes = {name: each.default for name, each in inspect.signature(part.inputs).parameters.items()}
    one, other = part.inputs(**sizes), part.inputs(**{name: size + 1 for name, size in sizes.items()})

    def compare(left: Any, right: Any) -> Any:
        if isinstance(left, torch.Tensor):
            pairs = enumerate(zip(left.shape, right.shape, strict=True))
            return {axis: torch.export.Dim.DYNAMIC for axis, (a, b) in pairs if a != b}
        if isinstance(left, Mapping):
            return {key: compare(left[key], right[key]) for key in left}
        return [compare(a, b) for a, b in zip(left, right, strict=True)]

    return compare(one, other) if isinstance(one, Mapping) else (compare(one, other),)


def choose_sizes(part: Part, limits: Mapping[str, int], count: int, seed: int) -> Iterator[dict[str, int]]:
    """Random sizes that keep the part's rules; `limits` has an end for dims that need a smaller or larger one."""
    draw = random.Random(seed)
    rules = [parse_condition(rule) for rule in part.where]
    names = list(inspect.signature(part.inputs).parameters)
    found = 0
    while found < count:
        sizes = {name: draw.randint(0 if name == "past" else 1, limits.get(name, _MOST)) for name in names}
        if all(holds(rule, sizes) for rule in rules if set(dims_of(rule)) <= set(names)):
            found += 1
            yield sizes


def find_difference(part: Part, path: Path, sizes: Mapping[str, int], seed: int) -> str:
    """What is wrong with the file at these sizes: '' if every output has eager's shape, dtype and values.

    Values are compared with those of the model in float64; as far from them as eager's float32 is no difference.
    """
    import onnxruntime

    torch.manual_seed(seed)
    inputs = part.inputs(**sizes)
    expected, exact = _answers(part, part.model, inputs), _answers(part, copy.deepcopy(part.model).double(), inputs)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    feeds = {name or part.input_names[0]: tensor.numpy() for name, tensor in _flat(inputs)}  # type: ignore[index]
    actual = dict(zip(names, session.run(None, feeds), strict=True))
    if set(actual) != set(expected):
        return f"outputs {sorted(actual)} in place of {sorted(expected)}"
    for name, tensor in expected.items():
        wanted, given = tensor.numpy(), actual[name]
        if wanted.shape != given.shape or wanted.dtype != given.dtype:
            return f"{name}: {given.dtype}{given.shape} in place of {wanted.dtype}{wanted.shape}"
        right = exact[name].numpy()
        if wanted.size and not np.abs(given - right).max() <= _allowed(wanted, right):
            return f"{name}: off by {np.abs(given - right).max():.2g}, eager's float32 by {np.abs(wanted - right).max():.2g}"
    return ""


def _allowed(wanted: Any, right: Any) -> float:
    return _TOLERANCE * max(1.0, float(np.abs(right).max())) + 2 * float(np.abs(wanted - right).max())


def _answers(part: Part, model: Any, inputs: Any) -> dict[str, torch.Tensor]:
    """The outputs by their names, from inputs of the model's own precision."""
    dtype = next(model.parameters()).dtype

    def cast(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(dtype) if value.is_floating_point() else value
        if isinstance(value, Mapping):
            return {name: cast(child) for name, child in value.items()}
        return [cast(child) for child in value]

    with torch.no_grad():
        answer = model(**cast(inputs)) if isinstance(inputs, Mapping) else model(cast(inputs))
    return dict(_flat(answer)) if isinstance(answer, Mapping) else {part.output_names[0]: answer}  # type: ignore[index]


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield path, value
        return
    items = value.items() if isinstance(value, Mapping) else enumerate(value)
    for name, child in items:
        yield from _flat(child, f"{path}.{name}" if path else str(name))
