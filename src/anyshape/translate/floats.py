"""Floats as torch computes them: Python's doubles, bfloat16 without kernels, logarithms of small values.

What Python computes in double precision stays so until it meets a tensor, and beyond where that holds doubles.

    x * (seq / 7)     ->     Mul(x, number("seq over 7")), rounded to x's precision at the end
    x * 0.1           ->     Mul(x, a constant double)
    leaky_relu(x)     ->     what torch makes of it; attributes of ONNX operators are single precision

torch.onnx writes numbers in single precision and then casts them (seen to torch 2.13).

bfloat16 inside of a model that takes and gives other types, or that takes other types and has no weights in bfloat16
(`autocast`): computed in single precision, and rounded.

    bfloat16 y = MatMul(a, w)     ->     float y' = MatMul(Cast<float>(a), Cast<float>(w))    bfloat16 y = Cast<bfloat16>(y')

That is what hardware does with bfloat16, and what a runtime can do that has no kernels of that type, as onnxruntime has
not on the CPU (to 1.31). A model that is in bfloat16 from input to output stays so: its users have such kernels.

Sigmoids in a captured program whose small values matter, written so that onnxruntime computes these, too.

    log(sigmoid(x))      ->  log(1 / (1 + exp(-x)))    also log2 and log10, in float32 and float64
    s / s.sum(-1)        ->  the same for s = sigmoid(x), and behind further sums, products and views

onnxruntime (to 1.31) computes Sigmoid of float32 by a formula that ends near -18, where the sigmoid is 1.5e-8: the logarithm
is -inf from there on, and a quotient by it inf or NaN. torch computes 1 / (1 + exp(-x)), whose logarithm is right down to
-88, and -inf below in torch as well; for this reason it is not replaced by log_sigmoid. Other uses of the sigmoid keep the
Sigmoid node: an error of 1.5e-8 has no effect on them.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch
from torch.export import ExportedProgram
from torch.fx import Node

from anyshape.intercept.patching import patched
from anyshape.leaves.own_operators import counted, number
from anyshape.records.export import Exported
from anyshape.translate.known_values import value_of
from anyshape.translate.lacking_forms import make_cast
from anyshape.translate.whole_numbers import ARITHMETIC, erase_unused_numbers, formula_of, is_float

if TYPE_CHECKING:
    from torch.export import ExportedProgram

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
_NARROW = ir.DataType.BFLOAT16
_KEPT = frozenset(
    {"Cast", "CastLike", "Identity", "If", "Loop", "Reshape", "Scan", "Shape", "Size", "Squeeze", "Unsqueeze"}
)
_TYPES = (torch.float32, torch.float64)


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
    """Python floats whose dtype nothing determines are written as doubles, which are then cast to what is wanted.

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

    return patched([(vars(building), "_process_python_constants", processed)])


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


def round_inside(exported: Exported, module: torch.nn.Module) -> Exported:
    """The model is changed in place, and given back; not so where the user's module is in bfloat16 itself."""
    model = exported.model
    held = (*module.parameters(), *module.buffers())
    is_narrow = any(tensor.dtype is torch.bfloat16 for tensor in held)
    ends = [*model.graph.inputs, *(model.graph.outputs if is_narrow else ())]
    if not any(value.dtype is _NARROW for value in ends):
        for node in list(model.graph.all_nodes()):
            if node.domain == "" and node.op_type not in _KEPT:
                _round(node)
    return exported


def _round(node: ir.Node) -> None:
    narrow = [place for place, value in enumerate(node.inputs) if value is not None and value.dtype is _NARROW]
    if not narrow or node.graph is None:
        return
    for place in narrow:
        wide = make_cast(node, node.inputs[place], ir.DataType.FLOAT, f"input_{place}")
        node.graph.insert_before(node, wide)
        node.replace_input_with(place, wide.outputs[0])
    for place, value in enumerate(node.outputs):
        if value.dtype is _NARROW:
            rounded = make_cast(node, value, _NARROW, f"rounded_{place}")
            if value.is_graph_output():  # its name is part of the contract
                value.name, rounded.outputs[0].name = rounded.outputs[0].name, value.name
            ir.convenience.replace_all_uses_with(value, rounded.outputs[0], replace_graph_outputs=True)
            rounded.replace_input_with(0, value)
            value.dtype = ir.DataType.FLOAT
            node.graph.insert_after(node, rounded)


_aten = torch.ops.aten
_MAGNIFY = {_aten.log.default, _aten.log2.default, _aten.log10.default, _aten.reciprocal.default, _aten.rsqrt.default}
_DIVIDE = {_aten.div.Tensor, _aten.div.Tensor_mode}
_STAY_SMALL = {operator.getitem} | {
    getattr(_aten, name)
    for name in (
        *("sum", "mean", "cumsum", "prod", "amax", "amin", "max", "min", "topk", "sort", "mul", "sqrt"),
        *(
            "view",
            "reshape",
            "_unsafe_view",
            "unsqueeze",
            "squeeze",
            "expand",
            "permute",
            "transpose",
            "clone",
            "flatten",
        ),
        *("slice", "select", "gather", "index", "index_select", "cat", "stack"),
    )
}
"""Operators whose results are small where what they take is."""


def write_out_small_sigmoids(program: ExportedProgram) -> None:
    """Rewrite the program in place."""
    graph = program.graph_module.graph
    sigmoids = [node for node in graph.nodes if _is_sigmoid(node)]
    magnified = {node.args[0] for node in sigmoids if _is_magnified(node)}
    found = [node for node in sigmoids if node.args[0] in magnified]
    for node in found:
        node.replace_all_uses_with(_write_out(node))
    if found:
        graph.eliminate_dead_code()
        program.graph_module.recompile()


def _is_magnified(node: Node) -> bool:
    """Whether the logarithm of a node's value is taken, or something divided by it, also behind operators of `_STAY_SMALL`."""
    waiting, seen = [node], {node}
    while waiting:
        small = waiting.pop()
        for user in small.users:
            if user.target in _MAGNIFY or (user.target in _DIVIDE and user.args[1] is small):
                return True
            stays_small = getattr(user.target, "overloadpacket", user.target) in _STAY_SMALL
            if stays_small and user not in seen:
                seen.add(user)
                waiting.append(user)
    return False


def _is_sigmoid(given: Node) -> bool:
    if given.target is not _aten.sigmoid.default:
        return False
    before, after = value_of(given.args[0]), value_of(given)
    return before is not None and after is not None and before.dtype == after.dtype and after.dtype in _TYPES


def _write_out(sigmoid: Node) -> Node:
    """1 / (1 + exp(-x)), in front of the sigmoid of x."""
    value = sigmoid.args[0]
    for function, more in (
        (_aten.neg.default, ()),
        (_aten.exp.default, ()),
        (_aten.add.Tensor, (1.0,)),
        (_aten.reciprocal.default, ()),
    ):
        with sigmoid.graph.inserting_before(sigmoid):
            made = sigmoid.graph.call_function(function, (value, *more))
        made.meta = dict(sigmoid.meta)
        value = made
    return made
