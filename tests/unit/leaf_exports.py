"""Export a module with our leaves, run it in onnxruntime at many sizes, and say where it differs from eager."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
import onnxscript.optimizer
import torch
from torch.export import Dim, ExportedProgram
from torch.fx.experimental import _config
from torch.onnx._internal.exporter import _core, _registration

from anyshape.leaves import leaf_translations, leaves
from anyshape.leaves.recurrent import admit_empty_batch, fold_leaf_weights
from anyshape.modules.state import kept

SIZES = ((3, 5), (1, 1), (1, 7), (2, 1), (7, 9), (4, 13), (5, 2), (1, 31), (8, 3), (2, 2), (6, 6), (16, 17))
"""Batch and time. The first is the one that is traced."""

TOLERANCE = {np.float16: 4e-3, np.float32: 2e-6, np.float64: 1e-13}


@dataclass(frozen=True)
class Variant:
    """A module, its inputs at a batch size and a number of steps, and which axes of each input are dynamic."""

    name: str
    make_module: Callable[[], torch.nn.Module]
    make_inputs: Callable[[int, int], tuple[torch.Tensor, ...]]
    axes: tuple[tuple[int, ...], ...] = ((0, 1),)
    tolerance: float | None = None


class Flat(torch.nn.Module):
    """Takes its inputs in one tuple, so that one list of dynamic axes fits every module."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.module(*inputs)


def capture(module: torch.nn.Module, inputs: Sequence[torch.Tensor], axes: Iterable[Iterable[int]]) -> ExportedProgram:
    dynamic = tuple(dict.fromkeys(each, Dim.AUTO) for each in axes)
    with _config.patch(backed_size_oblivious=True), kept(module), torch.no_grad(), leaves():
        return torch.export.export(Flat(module), tuple(inputs), dynamic_shapes=(dynamic,), strict=False)


def translate(program: ExportedProgram, *, with_empty_batch: bool = False) -> ir.Model:
    model = _core.exported_program_to_ir(program, registry=_registry())
    fold_leaf_weights(model)
    if with_empty_batch:
        admit_empty_batch(model)
    onnxscript.optimizer.optimize(model)
    return model


@lru_cache(maxsize=1)
def _registry() -> Any:
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # says that torchvision is absent
    registry = _registration.ONNXRegistry.from_torchlib(opset_version=18)
    for target, translation in leaf_translations().items():
        registry.register_op(target, translation)
    return registry


def export(variant: Variant, **options: bool) -> tuple[torch.nn.Module, ir.Model]:
    torch.manual_seed(0)
    module = variant.make_module().eval()
    program = capture(module, variant.make_inputs(*SIZES[0]), variant.axes)
    return module, translate(program, **options)


def operators(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph]


def run(model: ir.Model, inputs: Sequence[torch.Tensor]) -> list[Any]:
    return _run(_session(model), inputs)


def _session(model: ir.Model) -> onnxruntime.InferenceSession:
    data = ir.to_proto(model).SerializeToString()
    return onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])


def _run(session: onnxruntime.InferenceSession, inputs: Sequence[torch.Tensor]) -> list[Any]:
    names = [value.name for value in session.get_inputs()]
    return session.run(None, {name: value.numpy() for name, value in zip(names, inputs, strict=True)})


def find_differences(
    variant: Variant, sizes: Sequence[tuple[int, int]] = SIZES, **options: bool
) -> list[tuple[tuple[int, int], str]]:
    """Sizes at which the file and eager differ, and how. Empty when all is well."""
    module, model = export(variant, **options)
    return compare(module, model, variant, sizes)


def compare(
    module: torch.nn.Module, model: ir.Model, variant: Variant, sizes: Sequence[tuple[int, int]]
) -> list[tuple[tuple[int, int], str]]:
    session = _session(model)
    differences = []
    for size in sizes:
        inputs = variant.make_inputs(*size)
        with torch.no_grad():
            expected = [value.numpy() for value in torch.utils._pytree.tree_leaves(module(*inputs))]
        for one, other in zip(expected, _run(session, inputs), strict=True):
            difference = _difference(one, other, variant.tolerance)
            if difference:
                differences.append((size, difference))
    return differences


def _difference(expected: Any, actual: Any, tolerance: float | None) -> str:
    if (expected.shape, expected.dtype) != (actual.shape, actual.dtype):
        return f"{expected.dtype}{expected.shape} {actual.dtype}{actual.shape}"
    allowed = TOLERANCE.get(expected.dtype.type, 0.0) if tolerance is None else tolerance
    worst = np.abs(expected.astype(np.float64) - actual.astype(np.float64)).max(initial=0.0)
    return "" if worst <= allowed else f"differs by {worst}"
