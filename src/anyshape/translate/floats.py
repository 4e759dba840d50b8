"""What Python computes in double precision stays so until it meets a tensor, and beyond where that holds doubles.

    x * (seq / 7)     ->     Mul(x, number("seq over 7")), rounded to x's precision at the end
    x * 0.1           ->     Mul(x, a constant double)
    leaky_relu(x)     ->     what torch makes of it; attributes of ONNX operators are single precision

torch.onnx writes numbers in single precision and then casts them (seen to torch 2.13).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from anyshape.intercept.patching import standing
from anyshape.operators.whole import counted, number
from anyshape.translate.whole_numbers import ARITHMETIC, erase_unused_numbers, formula_of, is_float

WITH_ATTRIBUTES = (
    "addcdiv.default",
    "addcmul.default",
    "addmm.default",
    "celu.default",
    "elu.default",
    "fill.Scalar",
    "hardsigmoid.default",
    "hardswish.default",
    "hardtanh.default",
    "leaky_relu.default",
    "lerp.Scalar",
    "selu.default",
    "softplus.default",
)
"""Of aten: those whose translation in torch.onnx holds a number as an attribute. torch's own decompositions do not."""

_CASTS = ("Cast", "CastLike")
_DOUBLES = (torch.float64, torch.complex128)


def has_doubles(program: ExportedProgram) -> bool:
    return any(_has_doubles(node) for module in _graphs(program) for node in module.graph.nodes)


def write_floats(program: ExportedProgram) -> None:
    """In place: numbers made of sizes, wherever they meet tensors. For a program whose dtypes are final."""
    for module in _graphs(program):
        for node in list(module.graph.nodes):
            if is_float(node):
                _write(node)
        erase_unused_numbers(module)


def _write(node: Node) -> None:
    sizes: list[Node] = []
    try:
        formula = formula_of(node, sizes)
    except NotImplementedError:  # no plain arithmetic of sizes: torch.onnx has its way, and verification the last word
        return
    users = [user for user in node.users if user.op == "call_function" and user.target not in ARITHMETIC]
    for is_double in (True, False):
        meeting = [user for user in users if _meets_doubles(user) == is_double]
        if not meeting:
            continue
        with node.graph.inserting_after(node):
            written = node.graph.call_function(number, (json.dumps(formula), is_double, *sizes))
        # torch.onnx takes every open float for one of single precision.
        value = torch.empty((), dtype=torch.float64, device="meta") if is_double else node.meta["val"]
        written.meta = {**node.meta, "val": value}
        for user in meeting:
            user.replace_input_with(node, written)


@contextmanager
def constants_in_double(program: ExportedProgram, building: Any) -> Iterator[None]:
    """Python floats of which nothing tells the dtype are written as doubles, which are then cast to what is wanted.

    `building` is torch's module that writes them.
    """
    with _wide_constants(building) if has_doubles(program) else nullcontext():
        yield


def _wide_constants(building: Any) -> Any:
    import onnx_ir as ir

    theirs = building._process_python_constants

    def is_open(parameter: Any, type_binding: Any) -> bool:
        allowed = [each.dtype for each in parameter.type_constraint.allowed_types]
        return parameter.type_constraint not in type_binding and ir.DataType.DOUBLE in allowed and len(allowed) > 1

    def processed(signature: Any, named_inputs: dict[str, Any], type_binding: Any, *more: Any) -> Any:
        if signature.domain != "" or signature.name in _CASTS:  # other operators of ONNX take what stands beside them
            for name, value in named_inputs.items():
                if isinstance(value, float) and is_open(signature.params_map[name], type_binding):
                    named_inputs[name] = ir.tensor(value, dtype=ir.DataType.DOUBLE)
        return theirs(signature, named_inputs, type_binding, *more)

    return standing([(vars(building), "_process_python_constants", processed)])


def _meets_doubles(node: Node) -> bool:
    return node.target is counted or _has_doubles(node) or any(_has_doubles(each) for each in node.all_input_nodes)


def _has_doubles(node: Node) -> bool:
    value = node.meta.get("val")
    values = value if isinstance(value, (tuple, list)) else (value,)
    return any(isinstance(each, torch.Tensor) and each.dtype in _DOUBLES for each in values)


def _graphs(program: ExportedProgram) -> Iterator[torch.fx.GraphModule]:
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield module
