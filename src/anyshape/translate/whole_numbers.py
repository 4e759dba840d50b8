"""Sizes in the file: their arithmetic, exact in 64 bits, also through floats, and shapes in which a computed size may be 0.

    operator.pow(n, 7)         ->  products; onnxruntime's Pow goes through doubles, which are exact to 2**53 only
    operator.floordiv(a, b)    ->  (a - a mod b) / b where a or b may be negative; torch.onnx truncates (seen to 2.13)
    operator.lshift, rshift    ->  a product or a floor division by a power of two, from a table
    n % 0.7, n // 0.7          ->  in double precision, with the divisor's sign
    sym_float, mul 1.1, ceil   ->  whole("ceil of 1.1 times it"), written in double precision
    arange(0, 1, 1 / size)     ->  counted(whole("ceil of 1 / (1 / size)"), 0, 1 / size)
    Reshape(x, [n, n - 1])     ->  Reshape<allowzero = 1>(x, [n, n - 1]) where n may be 1: else 0 copies a size of the input

torch.onnx writes each step of a computation with floats by itself, and in single precision (seen to torch 2.13).
"""

# mypy: disable-error-code="no-any-return"
# onnxscript has no types.

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18 as op
from torch.export import ExportedProgram
from torch.fx import Node

from anyshape.domain import Domain
from anyshape.domain.intervals import Limits, interval_of, limits_of
from anyshape.domain.parse import parse_expr
from anyshape.findings import AnyshapeError
from anyshape.leaves.own_operators import FUNCTIONS, counted, whole
from anyshape.records.export import Exported
from anyshape.translate.lacking_forms import attribute_of
from anyshape.translate.operators.integers import floored_quotient, remainder_of
from anyshape.translate.operators.ranges import write_steps
from anyshape.translate.operators.size_values import constant

Size = ir.Value | int
_INT64_TYPE = ir.DataType.INT64
_SHIFTS = [2**exponent for exponent in range(63)]
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


def floored(numerator: Any, divisor: Any) -> Any:
    """`numerator // divisor`, where one of them may be negative."""
    return numerator // divisor


def mark_floors(program: ExportedProgram) -> None:
    """In place: operator.floordiv of integers that may be negative  ->  floored."""
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            if node.target is operator.floordiv and any(_may_be_negative(arg) for arg in node.args):
                node.target = floored


def _may_be_negative(argument: Any) -> bool:
    value = argument.meta.get("val") if isinstance(argument, torch.fx.Node) else argument
    if isinstance(value, torch.SymInt):
        return bool(value.node.shape_env.bound_sympy(value.node.expr).lower < 0)
    return isinstance(value, int) and value < 0


def size_translations() -> dict[Callable[..., Any], Callable[..., Any]]:
    """By the Python functions that a captured program calls; without types, which torch.onnx would try to read."""
    from torch.fx.experimental.symbolic_shapes import cast_symbool_to_symint_guardless

    return {
        cast_symbool_to_symint_guardless: lambda *args: translate_truth(*args),
        operator.pow: lambda *args: translate_power(*args),
        operator.lshift: lambda *args: translate_left_shift(*args),
        operator.rshift: lambda *args: translate_right_shift(*args),
        floored: lambda *args: translate_floored(*args),
    }


def translate_truth(truth: ir.Value) -> ir.Value:
    """1 or 0 for a truth value read from a tensor. torch 2.11 asserts on this number, later versions on a `sym_ite`."""
    return op.Cast(truth, to=_INT64)


def translate_floored(numerator: Size, divisor: Size) -> ir.Value:
    number, by = _value(numerator), _value(divisor)
    return op.Div(op.Sub(number, op.Mod(number, by)), by)


def translate_power(base: Size | float, exponent: Size | float) -> ir.Value:
    """Products by squaring, none larger than the result; with an exponent that varies, onnxruntime's Pow."""
    if not isinstance(exponent, int) or exponent < 1 or not isinstance(base, ir.Value) or base.dtype != _INT64_TYPE:
        return op.Pow(_value(base), _value(exponent))
    return op.Identity(base) if exponent == 1 else multiply_copies(base, exponent, op.Mul)


def multiply_copies(value: ir.Value, count: int, multiply: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    """The product of so many copies of a value, by squaring."""
    if count == 1:
        return value
    root = multiply_copies(value, count // 2, multiply)
    square = multiply(root, root)
    return multiply(square, value) if count % 2 else square


def translate_left_shift(number: Size, count: Size) -> ir.Value:
    return op.Mul(_value(number), _power_of_two(count))


def translate_right_shift(number: Size, count: Size) -> ir.Value:
    return translate_floored(number, _power_of_two(count))


def _power_of_two(count: Size) -> ir.Value:
    """At most 2**62: by that, 0 shifted left is 0, and what is below 2**62 shifted right is 0 or -1."""
    most = len(_SHIFTS) - 1
    if isinstance(count, int):
        return constant(_SHIFTS[min(count, most)], _INT64_TYPE)
    return op.Gather(constant(_SHIFTS, _INT64_TYPE), op.Min(count, constant(most, _INT64_TYPE)))


def _value(number: Size | float) -> ir.Value:
    if isinstance(number, ir.Value):
        return number
    return constant(number, _INT64_TYPE if isinstance(number, int) else ir.DataType.FLOAT)


_WRITTEN = {
    "add": op.Add,
    "sub": op.Sub,
    "mul": op.Mul,
    "div": op.Div,
    "floordiv": lambda x, by: floored_quotient(x, by, ir.DataType.DOUBLE),
    "mod": lambda x, by: remainder_of(x, by, ir.DataType.DOUBLE),
    "pow": op.Pow,
    "max": op.Max,
    "min": op.Min,
}
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
    "float32": lambda number: op.Cast(op.Cast(number, to=_FLOAT), to=_DOUBLE),
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
    """Whether the value is a node for a Python float."""
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
    """The logarithm of the C library: exact at whole powers of the base, where a quotient of two logarithms may not be."""
    quotient = op.Div(op.Log(number), op.Log(_double(base)))
    nearest = op.Round(quotient)
    return op.Where(op.Equal(op.Pow(_double(base), nearest), number), nearest, quotient)


def _double(number: float) -> Any:
    return op.Constant(value=ir.tensor(number, dtype=ir.DataType.DOUBLE))


def allow_zeros(exported: Exported, domain: Domain) -> Exported:
    """Sets `allowzero` where a computed size may be 0, and no size is -1 or a 0 that copies. Changes the model in place."""
    limits: Limits | None = None
    for node in exported.model.graph.all_nodes():
        if node.domain != "" or node.op_type != "Reshape" or attribute_of(node, "allowzero"):
            continue
        if not _has_computed_sizes(node.inputs[1]):
            continue
        limits = limits or limits_of(domain)
        if _may_be_empty(node.outputs[0].shape, limits):
            node.attributes["allowzero"] = ir.AttrInt64("allowzero", 1)
    return exported


def _may_be_empty(shape: ir.Shape | None, limits: Limits) -> bool:
    texts = [size.value for size in shape if isinstance(size, ir.SymbolicDim)] if shape is not None else []
    return any(text is not None and not _is_positive(text, limits) for text in texts)


def _is_positive(text: str, limits: Limits) -> bool:
    """Whether the size is known to be at least 1; one that values decide is not."""
    try:
        return interval_of(parse_expr(text), limits)[0] > 0
    except AnyshapeError:
        return False


def _has_computed_sizes(sizes: ir.Value | None) -> bool:
    """Whether the sizes are put together from numbers, and every constant among them is at least 1."""
    maker = sizes.producer() if sizes is not None else None
    if maker is None or maker.op_type != "Concat":
        return False
    constants = [ir.convenience.get_const_tensor(value) for value in maker.inputs if value is not None]
    return all((constant.numpy() > 0).all() for constant in constants if constant is not None)
