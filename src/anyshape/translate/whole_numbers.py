"""Sizes that are computed through floats: each rounding in a captured program, with all that leads to it, in one node.

    sym_float -> mul 1.1 -> ceil     ->     whole("ceil of 1.1 times it"), written in double precision
    arange(0, 1, 1 / size)           ->     counted(whole("ceil of 1 / (1 / size)"), 0, 1 / size)

torch.onnx writes each step by itself, and in single precision (seen to torch 2.13).
"""

from __future__ import annotations

import json
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18 as op
from torch.export import ExportedProgram
from torch.fx import Node

from anyshape.leaves.whole import FUNCTIONS, counted, whole
from anyshape.translate.operators.ranges import write_steps

_NAMES = {**{function: name for name, function in FUNCTIONS.items()}, torch.sym_int: "trunc"}
_ROUNDING = {function: name for function, name in _NAMES.items() if name in ("ceil", "floor", "trunc", "round")}
ARITHMETIC = {function: name for function, name in _NAMES.items() if function not in _ROUNDING}
_RANGES = (torch.ops.aten.arange.default, torch.ops.aten.arange.start, torch.ops.aten.arange.start_step)
_FLOAT, _INT64, _DOUBLE = 1, 7, 11
_DTYPES = {
    "float16": ir.DataType.FLOAT16,
    "bfloat16": ir.DataType.BFLOAT16,
    "float32": ir.DataType.FLOAT,
    "float64": ir.DataType.DOUBLE,
}
_WRITTEN = {"add": op.Add, "sub": op.Sub, "mul": op.Mul, "div": op.Div, "pow": op.Pow, "max": op.Max, "min": op.Min}
_OF_ONE = {
    "floor": op.Floor,
    "ceil": op.Ceil,
    "trunc": op.Identity,
    "round": op.Round,
    "neg": op.Neg,
    "sqrt": op.Sqrt,
    "log": op.Log,
    "log2": lambda number: _logarithm(number, 2.0),
    "log10": lambda number: _logarithm(number, 10.0),
    "exp": op.Exp,
}


def gather_whole_numbers(program: ExportedProgram) -> None:
    """In place. Raises NotImplementedError for a rounding of a float that is no plain arithmetic of sizes."""
    for module in program.graph_module.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        for node in list(module.graph.nodes):
            if node.target in _ROUNDING and is_float(node.args[0]):
                _gather(node)
            elif node.target in _RANGES and any(is_float(bound) for bound in node.args):
                _count(module.graph, node)
        erase_unused_numbers(module)


def erase_unused_numbers(module: torch.fx.GraphModule) -> None:
    """Steps that led to a number which is now written in one piece."""
    for node in reversed(list(module.graph.nodes)):
        if node.target in ARITHMETIC and not node.users:
            module.graph.erase_node(node)


def _gather(node: Node) -> None:
    sizes: list[Node] = []
    if node.target is round and len(node.args) > 1 and node.args[1] is not None:
        raise NotImplementedError("round() to digits of a size")
    formula = [_ROUNDING[node.target], formula_of(node.args[0], sizes)]  # type: ignore[index]
    node.target, node.args = whole, (json.dumps(formula), *sizes)  # the node stays: the program's signature names it


def _count(graph: torch.fx.Graph, node: Node) -> None:
    value = node.meta["val"]
    if not value.is_floating_point():
        return
    start, end = node.args[:2] if node.target is not torch.ops.aten.arange.default else (0, node.args[0])
    step = node.args[2] if len(node.args) > 2 else 1
    sizes: list[Node] = []
    formula = ["ceil", ["div", ["sub", formula_of(end, sizes), formula_of(start, sizes)], formula_of(step, sizes)]]
    with graph.inserting_before(node):
        length = graph.call_function(whole, (json.dumps(formula), *sizes))
    length.meta = {**node.meta, "val": value.shape[0]}
    node.target, node.kwargs = counted, {}
    node.args = (length, start, step, str(value.dtype).removeprefix("torch."))


def formula_of(value: Any, sizes: list[Node]) -> Any:
    """How a number is made of sizes, which are added to the list. NotImplementedError: by something else."""
    if not isinstance(value, Node):
        return value
    if not is_float(value):
        if value not in sizes:
            sizes.append(value)
        return ["size", sizes.index(value)]
    name = ARITHMETIC.get(value.target)  # type: ignore[arg-type]
    if name is None:
        raise NotImplementedError(f"a size that is computed by {getattr(value.target, '__name__', value.target)}")
    return [name, *(formula_of(part, sizes) for part in value.args)]


def is_float(value: Any) -> bool:
    """Whether it is a node for a Python float."""
    return isinstance(value, Node) and isinstance(value.meta.get("val"), (float, torch.SymFloat))


def translate_whole(formula: str, *sizes: Any) -> Any:
    """whole(formula, *sizes): doubles until the last step, which gives an int64."""
    return op.Cast(_written(json.loads(formula), sizes), to=_INT64)


def translate_counted(length: Any, start: Any, step: Any, dtype: str) -> Any:
    """counted(length, start, step, dtype): each number by itself, in double precision."""
    return write_steps(start, step, length, _DTYPES[dtype])


def translate_number(formula: str, is_double: bool, *sizes: Any) -> Any:
    """number(formula, is_double, *sizes): doubles until the last step."""
    result = _written(json.loads(formula), sizes)
    return result if is_double else op.Cast(result, to=_FLOAT)


def _written(formula: Any, sizes: tuple[Any, ...]) -> Any:
    if not isinstance(formula, list):
        return _double(float(formula))
    name, *parts = formula
    if name == "size":
        return op.Cast(sizes[parts[0]], to=_DOUBLE)
    values = [_written(part, sizes) for part in parts]
    if name == "float":
        return values[0]
    return _OF_ONE[name](values[0]) if name in _OF_ONE else _WRITTEN[name](*values)


def _logarithm(number: Any, base: float) -> Any:
    """As the C library has it: exact at whole powers of the base, where a quotient of two logarithms may not be."""
    quotient = op.Div(op.Log(number), op.Log(_double(base)))
    nearest = op.Round(quotient)
    return op.Where(op.Equal(op.Pow(_double(base), nearest), number), nearest, quotient)


def _double(number: float) -> Any:
    return op.Constant(value=ir.tensor(number, dtype=ir.DataType.DOUBLE))
