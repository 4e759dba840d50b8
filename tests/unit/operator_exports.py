"""Export a function with every axis open, run it in onnxruntime at other sizes, and say where it differs from eager."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
import onnxscript.optimizer
import torch
from torch.export import Dim
from torch.fx.experimental import _config
from torch.utils import _pytree as pytree

from anyshape.leaves import leaves
from anyshape.translate.registry import Translator

Inputs = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Row:
    """A function and its inputs at several sizes, the first of which is traced. `fixed` has the axes of input 0, 1, ...
    that stay as they are."""

    name: str
    function: Callable[..., Any]
    inputs: Sequence[Inputs]
    fixed: Mapping[int, Sequence[int]] = field(default_factory=dict)
    tolerance: float = 1e-4

    def __str__(self) -> str:
        return self.name


def sizes(*shapes: Sequence[int], make: Callable[..., torch.Tensor] = torch.randn) -> list[Inputs]:
    """One input, at each of these shapes; always the same numbers."""
    torch.manual_seed(0)
    return [(make(*shape),) for shape in shapes]


def integers(high: int) -> Callable[..., torch.Tensor]:
    return lambda *shape: torch.randint(0, high, shape)


class _Module(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


@lru_cache(maxsize=1)
def _translator() -> Translator:
    return Translator()


def export(row: Row) -> tuple[ir.Model, set[str]]:
    """The model, and the conditions under which it holds, in torch's symbols."""
    axes = tuple(
        {axis: Dim.AUTO for axis in range(value.dim()) if axis not in row.fixed.get(number, ())}
        for number, value in enumerate(row.inputs[0])
    )
    translator = _translator()
    with _config.patch(backed_size_oblivious=True), torch.no_grad():
        with leaves():
            program = torch.export.export(
                _Module(row.function).eval(), row.inputs[0], dynamic_shapes=(axes,), strict=False
            )
        program = translator.decompose(program)
    assert not translator.find_untranslatable(program)
    model = translator.translate(program)
    onnxscript.optimizer.optimize(model)
    value = next(node.meta["val"] for node in program.graph.nodes if isinstance(node.meta.get("val"), torch.Tensor))
    return model, {str(guard.expr) for guard in value.fake_mode.shape_env.guards}


def find_differences(row: Row) -> list[str]:
    """Where the file and eager differ, and how. Empty when all is well."""
    model, _ = export(row)
    return compare(row, model)


def compare(row: Row, model: ir.Model) -> list[str]:
    data = ir.to_proto(model).SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    found = []
    for inputs in row.inputs:
        with torch.no_grad():
            answers = pytree.tree_leaves(row.function(*inputs))
        actual = session.run(None, {name: _array(value) for name, value in zip(names, inputs, strict=True)})
        for number, (want, have) in enumerate(zip(answers, actual, strict=True)):
            difference = _difference(_array(want), have, row.tolerance)
            if difference:
                found.append(f"{[tuple(value.shape) for value in inputs]} output {number}: {difference}")
    return found


def _array(value: torch.Tensor) -> Any:
    return (torch.view_as_real(value.resolve_conj()) if value.is_complex() else value).numpy()


def _difference(expected: Any, actual: Any, tolerance: float) -> str:
    if (expected.shape, expected.dtype) != (actual.shape, actual.dtype):
        return f"{expected.dtype}{expected.shape} {actual.dtype}{actual.shape}"
    if expected.dtype.kind != "f":
        return "" if np.array_equal(expected, actual) else "values differ"
    same = np.allclose(actual, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    return "" if same else f"{expected.ravel()[:9]} expected, {actual.ravel()[:9]} given"
